"""Bring a tool to poses, points and directions; keep loops closed; follow a path; learn what is out of reach.

docs/inverse_kinematics.md explains targets and results.
"""

import numpy as np

import spanloop as sl

robot = sl.Dynamics(sl.zoo.puma())
there = robot.pose([0.3, -0.6, 0.7, 0.2, 0.8, -0.4], "tool")

# one pose
found = robot.inverse_kinematics({"tool": there})
assert found.converged
print("the pose is missed by", f"{np.abs(robot.pose(found.q, 'tool') - there).max():.0e}")

# many: batch axes come first, and restarts find those that the first start misses
rng = np.random.default_rng(0)
poses = robot.pose(rng.uniform(-2.0, 2.0, (1000, 6)), "tool")
found = robot.inverse_kinematics({"tool": poses})
print(f"{found.converged.sum()} of 1000 poses, with {found.restarts.sum()} restarts")

# a point and a direction: the tool points down, and turns about that axis as it likes
down = [sl.targets.Position("tool", (0.5, 0.2, 0.1)), sl.targets.Direction("tool", (0, 0, -1))]
found = robot.inverse_kinematics(down)
print("the tool's axis is", robot.pose(found.q, "tool")[:3, 2].round(9) + 0.0)

# out of reach: how far, and which
found = robot.inverse_kinematics({"tool": (2.0, 0.0, 0.0)})
assert not found.converged
print(f"a point at 2 m is missed by {found.residual['tool'].distance:.3f} m")

# along a path, with loops that stay closed: a Stewart platform moves in a circle
robot, start = sl.Dynamics(sl.zoo.stewart()), sl.zoo.stewart_start()
s = np.linspace(0.0, 2 * np.pi, 101)
poses = np.repeat(robot.pose(start, "platform")[None], 101, axis=0)
poses[:, :3, 3] += 0.1 * np.stack([np.cos(s) - 1, np.sin(s), 0 * s], axis=1)
found = robot.inverse_kinematics_path({"platform": poses}, start)
legs = [robot.model.q_slice(f"slide{k}").start for k in range(1, 7)]
print("the first leg slides from", found.q[:, legs[0]].min().round(4), "to", found.q[:, legs[0]].max().round(4), "m")
assert found.converged.all()
assert np.abs(robot.closure_error(found.q)).max() < 1e-12
