"""Arms and the object that they hold as two systems: a new object does not recompile the kernels of the arms.

[Rodriguez, Jain & Kreutz, sections 2.3 and 3]
"""

from dataclasses import replace

import numpy as np

import spanloop as sl

# the zoo's two arms with an object, taken apart: the arms are the primary system, the object is the secondary
whole = sl.zoo.arms_with_object(2, grasp="spherical")
arms = replace(whole.remove("object"), name="arms")
box = sl.Builder("box").body("box", 5.0, inertia=(0.08, 0.08, 0.13)).free("floating", "world", "box").build()
for i in (1, 2):
    side = whole.frame(f"grasp{i}").placement
    box = box.with_frame(f"side{i}", "box", side.position, side.rotation)

balls = [("arm1_tool", "side1", "spherical"), ("arm2_tool", "side2", "spherical")]
pair = sl.ClosedTopology(arms, box, balls)

# in q, v, tau and a the arms' entries come first, then the box's, as in pair.model
start = sl.zoo.arms_with_object_start(2, grasp="spherical")
q = np.concatenate((start[7:], start[:7]))
v, tau = np.zeros(pair.model.nv), np.concatenate((np.linspace(-5.0, 5.0, arms.nv), np.zeros(6)))
a_arms, a_box = pair.split(pair.forward_dynamics(q, v, tau))
print("the box accelerates at", a_box[3:].round(2), "m/s²; cheap step D:", pair.step_d.cheap)
np.testing.assert_allclose(
    np.concatenate((a_arms, a_box)), sl.Dynamics(pair.model).forward_dynamics(q, v, tau), rtol=1e-9, atol=1e-9
)

# another object: only its own steps are compiled
crate = replace(box.with_inertia("box", mass=20.0, inertia=(0.4, 0.5, 0.6)), name="crate")
heavy = pair.with_secondary(crate)
print("the crate accelerates at", heavy.split(heavy.forward_dynamics(q, v, tau))[1][3:].round(2), "m/s²")
assert heavy.primary is pair.primary
assert heavy.step_d.kernel is pair.step_d.kernel

# other closures between the same points: only step D is compiled
welded = pair.with_closures([("arm1_tool", "side1", "fixed"), ("arm2_tool", "side2", "revolute")])
print("with rigid grasps it accelerates at", welded.split(welded.forward_dynamics(q, v, tau))[1][3:].round(2), "m/s²")
assert welded.primary is pair.primary
assert welded.secondary is pair.secondary

# the same as one line of operators, 3.13: the two systems as one, at rest
S = sl.operators(pair.model, q)
A, Lam, b, H, psi, K, D_root = S.A, S.Lam, S.b, S.H, S.psi, S.K, S.D_root
half = D_root.inverse()  # D^(-1/2)
beta_dot = (1 - H @ psi @ K).T @ half.T @ (1 - b @ (A @ Lam @ A.T).inverse() @ b.T) @ half @ (1 - H @ psi @ K)
print(A.picture(), Lam.picture(), sep="\n")
free_torque = tau - sl.Dynamics(pair.model).gravity_torques(q)  # T̂
np.testing.assert_allclose(beta_dot @ free_torque, pair.forward_dynamics(q, v, tau), rtol=1e-8, atol=1e-8)
kernel = sl.compile(pair.model, beta_dot)
print(kernel)
np.testing.assert_allclose(kernel(q, free_torque), beta_dot @ free_torque, rtol=1e-8, atol=1e-8)
