"""Two soft fingers lift a box ever faster until a friction cone is left and the box slips out.

The hand rises with an acceleration that grows, a = J t; the fingers press with F. The finger with the lower friction µ
holds as long as m (g + a) < 2 µ F: it slips at t = (2 µ F/m − g)/J. The grasp that breaks is an event, located inside
the step, that opens its loop; the box swings on the other finger, slips from it too, and flies; the fingers close up to
their stops. A squeeze that keeps a margin to the cones prevents it.

The page, with figures: docs/examples/23_finger_grasp.md
"""

import math

import numpy as np

import spanloop as sl

MASS, HALF, GRAVITY = 0.8, 0.03, 9.81  # kg, m (half the width of the box), m/s²
JERK, FORCE = 8.0, 12.0  # m/s³, N
FRICTION = {"hold_left": 0.6, "hold_right": 0.5}

# ---- a hand whose rise is prescribed, two fingers that close along x, a free box

b = sl.Builder("gripper")
b.body("hand", 1.0, inertia=(1e-3,) * 3).prismatic("lift", "world", "hand", "z", driven=True)
b.body("left", 0.1, inertia=(1e-4,) * 3)
b.prismatic("close_left", "hand", "left", "x", (-HALF, 0, 0), limits=(-0.05, 0.025))
b.body("right", 0.1, inertia=(1e-4,) * 3)
b.prismatic("close_right", "hand", "right", "-x", (HALF, 0, 0), limits=(-0.05, 0.025))
b.body("box", MASS, inertia=(5e-4,) * 3).free("floating", "world", "box")
model = b.build().actuate(["lift", "close_left", "close_right"])
for side, sign in (("left", 1), ("right", -1)):
    turned = (0, sign * math.pi / 2, 0)  # z is the normal, into the box
    model = model.with_frame(f"{side}_pad", side, (0, 0, 0), turned)
    model = model.with_frame(f"{side}_face", "box", (-sign * HALF, 0, 0), turned)
    model = model.with_loop(f"{side}_pad", f"{side}_face", "soft_finger", name=f"hold_{side}", switchable=True)


def pressing(t, q, v):
    """The acceleration of the hand, and the forces of the fingers."""
    return {"lift": JERK * t, "close_left": FORCE, "close_right": FORCE}


# ---- margins beforehand: at the state at which the hand starts

robot, still = sl.Dynamics(model), np.zeros(model.nv)
start = np.zeros(model.nv)
start[1:3] = FORCE
print("at the start:")
print(robot.grasp_margin(model.neutral(), still, start, FRICTION, math.inf))

# ---- the grasp breaks where the cone is left, and lets go


def grasps(on_break):
    return [sl.events.Grasp(name, friction=mu, torsion=math.inf, on_break=on_break) for name, mu in FRICTION.items()]


slip = (2.0 * FRICTION["hold_right"] * FORCE / MASS - GRAVITY) / JERK
run = sl.simulate(model, duration=1.0, controller=pressing, events=grasps("release"), limits="stop")
print(run.events)
first, last = run.events.time[run.events.kind == "break"]
print(f"slips at {first:.9f} s; m (g + a) = 2 µ F at {slip:.9f} s")
assert abs(first - slip) < 1e-8

# the box then flies: its centre follows a parabola
flying = run.times > last
t, place, speed = run.times[flying], run["box"].position[flying, 2], run["box"].velocity[flying, 5]
parabola = place[0] + speed[0] * (t - t[0]) - 0.5 * GRAVITY * (t - t[0]) ** 2
print(f"flies as a parabola to {np.abs(place - parabola).max():.0e} m")

# ---- the least squeeze that holds, and a law that keeps a margin

ended = sl.simulate(model, duration=1.0, controller=pressing, events=grasps("end"))
print(ended.outcome)
rising = np.zeros(model.nv)
rising[:3] = JERK * 1.0, FORCE, FORCE  # a second after the start
more = robot.least_squeeze(model.neutral(), still, rising, {"hold_left": 1.0}, FRICTION, math.inf, margin=2.0)
print(f"a squeeze of {more:.3f} N more holds it for a second with 2 N to spare")
law = sl.control.together(model, pressing, sl.control.squeeze(model, {"hold_left": lambda t: more * t}))
held = sl.simulate(model, duration=1.0, controller=law, events=grasps("end"))
margins = held.grasp_margin(FRICTION, math.inf)["hold_right"]
print(f"with it: {held.outcome}; margins from {margins[0]:.2f} N to {margins[-1]:.2f} N")
assert abs(margins[-1] - 2.0) < 1e-9

# ---- a batch: the moment over the force of the fingers

forces = np.linspace(8.5, 14.0, 12)
many = sl.simulate(
    model,
    np.tile(model.neutral(), (len(forces), 1)),
    duration=1.0,
    controller=lambda t, q, v, u: {"lift": JERK * t, "close_left": u[0], "close_right": u[0]},
    inputs=forces[:, None, None],
    events=grasps("end"),
)
moments = np.array([x.time for x in many.outcomes])
expected = (2.0 * FRICTION["hold_right"] * forces / MASS - GRAVITY) / JERK
print(f"{len(forces)} forces: moments agree with the closed form to {np.abs(moments - expected).max():.0e} s")
