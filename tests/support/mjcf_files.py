"""MJCF files of several shapes, written for these tests."""

from __future__ import annotations

ARM = """<mujoco model="arm">
<compiler angle="degree"/>
<option gravity="0 0.3 -9.5"/>
<default><joint damping="0.1"/><default class="thin"><geom type="capsule" size="0.02 0.1"/></default></default>
<worldbody>
 <geom type="plane" size="1 1 1"/>
 <site name="ground" pos="1 0 0" euler="0 0 45"/>
 <body name="upper" pos="0.1 0.2 1" euler="10 20 30">
  <joint name="shoulder" axis="0 1 0" pos="0 0 0.1" range="-90 90" armature="0.01"/>
  <joint name="twist" axis="1 0 0" pos="0.05 0 0" ref="30" stiffness="3" springref="10"/>
  <joint name="lift" type="slide" axis="0 0 1"/>
  <inertial pos="0.01 0 0" mass="3" fullinertia="0.03 0.04 0.05 0.001 0.002 -0.001"/>
  <geom class="thin"/>
  <site name="elbow" pos="0 0 0.4"/>
  <body name="fore" pos="0 0 0.4">
   <joint type="ball" pos="0 0 0.02" damping="0.2" stiffness="1"/>
   <geom type="box" size=".1 .05 .02" pos="0 0 0.05"/>
   <body name="finger" pos="0.1 0 0" quat="1 0.2 0 0.3">
    <joint name="grip" type="slide" axis="1 1 0" ref="0.1" stiffness="20"/>
    <geom type="sphere" size="0.03"/>
   </body>
  </body>
 </body>
</worldbody>
<actuator>
 <motor name="m1" joint="shoulder" gear="5" ctrlrange="-1 1"/>
 <position joint="twist" kp="10" kv="1"/>
 <velocity joint="grip" kv="2" forcerange="-3 3"/>
 <general joint="lift" gainprm="3" biastype="affine" biasprm="1 2 3"/>
</actuator>
<sensor><jointpos joint="shoulder"/><gyro site="elbow" noise="0.01"/><clock/></sensor>
</mujoco>"""

FLOATING = """<mujoco model="floating">
<compiler angle="radian"/>
<worldbody>
 <body name="trunk" pos="0.1 -0.2 1" quat="0.9 0.1 0.2 0.3">
  <freejoint name="root"/>
  <inertial pos="0.02 0.01 0" mass="8" diaginertia="0.1 0.2 0.25" quat="1 0.1 0 0"/>
  <body name="leg" pos="0.2 0 -0.1"><joint name="hip" axis="0 1 0"/><joint name="roll" axis="1 0 0"/>
   <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03"/>
   <body name="foot" pos="0 0 -0.3"><joint name="ankle" axis="0 1 0" damping="0.5"/>
    <geom type="box" size=".1 .05 .02"/></body>
  </body>
  <body name="tail" pos="-0.2 0 0"><joint name="wag" type="ball"/><geom type="cylinder" size="0.02 0.1"/></body>
 </body>
 <body name="ball" pos="2 0 0.5"><freejoint/><geom size="0.2"/></body>
 <body name="post" pos="0 2 0"><geom type="box" size=".1 .1 .5"/>
  <body name="door" pos="0 0.1 0"><joint name="hinge" axis="0 0 1" ref="0.4"/><geom type="box" size=".2 .01 .4"/></body>
 </body>
 <body name="guide" mocap="true" pos="0 1 0"><geom size="0.1"/></body>
</worldbody>
</mujoco>"""

SOFT = '<equality solref="0.0002 1" solimp="IMPEDANCE IMPEDANCE 0.001"/>'

FOUR_BAR = f"""<mujoco model="four_bar">
<option gravity="0 -9.81 0" timestep="1e-4"/>
<default><geom contype="0" conaffinity="0"/>{SOFT}</default>
<worldbody>
 <body name="crank"><joint name="j1" axis="0 0 1"/><geom type="capsule" size="0.03" fromto="0 0 0 0.3 0.4 0"/>
  <body name="coupler" pos="0.3 0.4 0"><joint name="j2" axis="0 0 1"/>
   <geom type="capsule" size="0.03" fromto="0 0 0 1 0.2 0"/></body></body>
 <body name="rocker" pos="1.2 0 0"><joint name="j3" axis="0 0 1"/>
  <geom type="capsule" size="0.03" fromto="0 0 0 0.1 0.6 0"/></body>
</worldbody>
<equality><connect name="pin" body1="coupler" body2="rocker" anchor="1 0.2 0"/></equality>
</mujoco>"""

CARRIED = f"""<mujoco model="two_arms_carry_a_box">
<option timestep="1e-4"/>
<default><geom contype="0" conaffinity="0"/>{SOFT}</default>
<worldbody>
 <body name="box" pos="0.5 0 0.5"><freejoint name="root"/><geom type="box" size=".2 .1 .1"/>
  <site name="left" pos="-0.2 0 0"/><site name="right" pos="0.2 0 0" euler="0 0 30"/></body>
 <body name="a1" pos="0 0 0"><joint name="a_yaw" axis="0 0 1"/><joint name="a_pitch" axis="0 1 0"/>
  <geom type="capsule" size="0.1" fromto="0 0 0 0 0 0.5"/>
  <body name="a2" pos="0 0 0.5"><joint name="a_elbow" axis="0 1 0"/>
   <geom type="capsule" size="0.1" fromto="0 0 0 0.3 0 0"/><site name="a_hand" pos="0.3 0 0"/></body></body>
 <body name="b1" pos="1 0 0"><joint name="b_yaw" axis="0 0 1" pos="0 0 0.1"/>
  <joint name="b_pitch" axis="0 1 0" pos="0 0 0.1"/>
  <geom type="capsule" size="0.1" fromto="0 0 0 0 0 0.5"/>
  <body name="b2" pos="0 0 0.5"><joint name="b_elbow" axis="0 1 0"/><joint name="b_wrist" type="ball" pos="-0.3 0 0"/>
   <geom type="capsule" size="0.1" fromto="0 0 0 -0.3 0 0"/></body></body>
</worldbody>
<equality><connect site1="left" site2="a_hand"/><weld name="grasp" body1="box" body2="b2" anchor="-0.3 0 0"/></equality>
</mujoco>"""

GEARED = f"""<mujoco model="geared">
<option timestep="1e-4"/>
<default><geom contype="0" conaffinity="0"/>{SOFT}</default>
<worldbody>
 <body name="a"><joint name="motor" axis="0 1 0" ref="0.2"/>
  <geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0"/></body>
 <body name="b" pos="0 0 1"><joint name="wheel" axis="0 1 0" ref="-0.1"/>
  <geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0.2"/>
  <body name="c" pos="0.3 0 0.2"><joint name="locked" axis="1 0 0" ref="0.3"/>
   <geom type="box" size=".1 .1 .1"/></body></body>
</worldbody>
<equality><joint joint1="wheel" joint2="motor" polycoef="0.1 -0.5 0 0 0"/>
 <joint name="brake" joint1="locked" polycoef="0.2 1 0 0 0"/></equality>
</mujoco>"""


def impedance(text: str, d: float) -> str:
    """The file with constraints of impedance d, 1 being rigid."""
    return text.replace("IMPEDANCE", str(d))


TREES = {"arm": ARM, "floating": FLOATING}
CLOSED = {"four_bar": FOUR_BAR, "carried": CARRIED, "geared": GEARED}
