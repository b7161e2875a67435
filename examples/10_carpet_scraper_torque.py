"""Saha's carpet scraper: the torque that turns its crank at 45 rpm, over one turn (his figure 20).

Hoeken's four-bar draws a nearly straight line, a pantograph enlarges it. The numbers are those of his Table 5; our
reading of them, and what the text leaves open (the side of the pantograph), is in `spanloop/zoo/saha.py`.

The page, with figures: docs/examples/10_carpet_scraper_torque.md
"""

import numpy as np

import spanloop as sl

robot = sl.Dynamics(sl.zoo.carpet_scraper())

# the spanning tree has three branches; one of them is solved first, then the others in turn
print(robot.subsystems())

speed = 45.0 * 2.0 * np.pi / 60.0
t = np.linspace(0.0, 2.0 * np.pi / speed, 181)
crank = {"crank_hinge": (speed * t, np.full_like(t, speed), np.zeros_like(t))}
column = robot.model.v_slice("crank_hinge").start

torques = {}
for assembly in ("left", "right"):
    q, v, a = robot.follow(sl.zoo.carpet_scraper_start(assembly=assembly), crank)
    tau = robot.inverse_dynamics(q, v, a, by_subsystems=True)
    np.testing.assert_allclose(tau, robot.inverse_dynamics(q, v, a), atol=1e-9)  # all subsystems at once
    torque = torques[assembly] = tau[:, column]
    print(f"pantograph {assembly}: torque from {torque.min():7.2f} to {torque.max():7.2f} N m")
    # without losses the crank does no work over a turn
    assert abs(np.mean(torque[:-1])) < 1e-6 * np.abs(torque).max()

# the stroke of the tool, and forces in hinges that close loops and in one that does not
stroke = robot.pose(q, "scraper")[:, :2, 3]
print("the tool moves from x =", stroke[:, 0].min().round(3), "to", stroke[:, 0].max().round(3), "m")
forces = robot.reactions(q[0], v[0], tau[0])
for name in ("crank_pin", "rod_pin", "link_pin", "arm_hinge"):
    print(f"{name}: {forces[name][3:5].round(1)} N")
