"""A leg from a URDF file, which describes trees only; a rod that drives the knee closes a loop."""

import tempfile
from pathlib import Path

import numpy as np

import spanloop as sl

LEG = """
<robot name="leg">
  <link name="thigh"><inertial><origin xyz="0 0 -0.2"/><mass value="3"/>
    <inertia ixx="0.04" iyy="0.04" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="shank"><inertial><origin xyz="0 0 -0.2"/><mass value="1.5"/>
    <inertia ixx="0.02" iyy="0.02" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="crank"><inertial><origin xyz="0.03 0 0"/><mass value="0.2"/>
    <inertia ixx="1e-5" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="rod"><inertial><origin xyz="0 0 -0.2"/><mass value="0.3"/>
    <inertia ixx="4e-3" iyy="4e-3" izz="1e-5" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="pelvis"/> <link name="rod_tip"/> <link name="shank_lever"/>
  <joint name="hip" type="continuous"><parent link="pelvis"/><child link="thigh"/><axis xyz="0 1 0"/></joint>
  <joint name="knee" type="revolute"><parent link="thigh"/><child link="shank"/><origin xyz="0 0 -0.4"/>
    <axis xyz="0 1 0"/><limit lower="0" upper="2.5" effort="100" velocity="20"/></joint>
  <joint name="motor" type="continuous"><parent link="thigh"/><child link="crank"/><axis xyz="0 1 0"/></joint>
  <joint name="crank_pin" type="continuous"><parent link="crank"/><child link="rod"/><origin xyz="0.06 0 0"/>
    <axis xyz="0 1 0"/></joint>
  <joint name="tip" type="fixed"><parent link="rod"/><child link="rod_tip"/><origin xyz="0 0 -0.4"/></joint>
  <joint name="lever" type="fixed"><parent link="shank"/><child link="shank_lever"/><origin xyz="0.06 0 0"/></joint>
</robot>
"""

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "leg.urdf"
    path.write_text(LEG)
    open_leg = sl.load(path)

# the rod's tip is free; a ball joint to the lever on the shank closes the loop
leg = open_leg.with_loop("rod_tip", "shank_lever", joint="spherical", name="rod_ball")
robot = sl.Dynamics(leg)

# a rough guess suffices: bend the knee by about 0.6 rad and assemble the loop around it
guess = leg.neutral()
guess[leg.q_slice("knee")] = 0.6
q = robot.assemble(guess, fixed=["hip", "knee"])
print("closed to", f"{np.abs(robot.closure_error(q)).max():.0e}", "m")
print(robot.diagnose(q))

# hip and motor move; knee and rod follow
v = robot.complete_velocity(q, {"hip": 0.5, "motor": -2.0})
print("the knee turns at", v[leg.v_slice("knee")].round(3), "rad/s")

# 5 N m at the motor: accelerations with the loop closed, and the force in the rod
tau = np.zeros(leg.nv)
tau[leg.v_slice("motor")] = 5.0
a = robot.forward_dynamics(q, v, tau)
print("accelerations", dict(zip((j.name for j in leg.joints if j.kind.nv), a.round(2), strict=True)))
found = robot.solve(q, v, tau)
print("force of the ball on the lever", found.loop_forces["rod_ball"][3:].round(1), "N")
np.testing.assert_allclose(robot.closure_jacobian(q) @ a + robot.closure_bias(q, v), 0.0, atol=1e-9)

# the open leg accelerates differently
print("without the rod", sl.Dynamics(open_leg).forward_dynamics(q, v, tau).round(1))
