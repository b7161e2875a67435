"""Three arms on one object, with each grasp of Kreutz & Rodriguez: rigid, one DoF, three DoF, soft finger.

Compares all methods for closed chains, computes the accelerations Ẇ(0) along the degrees of freedom of the grasps,
redundant arms, and a motion of half a second with the forces at the contacts. The paper gives neither arms nor object
nor numbers: arms are `sl.zoo.arms_with_object`, six hinges each, around a block of 5 kg. Contacts are two-sided here;
the forces show afterwards whether a one-sided contact with friction would have held.

The page, with figures: docs/examples/14_arms_with_each_grasp.md
"""

import numpy as np

import spanloop as sl
from spanloop.joints.soft_finger import SoftFinger

METHODS = ("simple_closed_chain", "closed_topology", "arms_on_object_1", "arms_on_object_2", "arms_on_object_3")
SOLVERS = ("articulated_body", "composite_body", "decoupled_complement", "unit_vector", "virtual_work")  # of CCFD
ANGLES = 2.0 * np.pi * np.arange(3) / 3.0  # of the contacts around the block
INWARD = -np.stack([np.cos(ANGLES), np.sin(ANGLES), 0.0 * ANGLES], axis=-1)  # normals, in the object's axes
HOLDING = ("holding1", "holding2", "holding3")
SQUEEZE = 60.0  # N, of each contact along its normal
STIFFNESS = np.tile((400.0, 400.0, 400.0, 20.0, 20.0, 5.0), 3)  # N m/rad, of springs that hold the arms' posture
start = sl.zoo.arms_with_object_start(3)


def soft_fingers():
    """The same arms on soft fingers, whose normals are fixed in the object and point into it."""
    model = sl.zoo.arms_with_object(3, grasp="spherical").remove(*HOLDING)
    for k, angle in enumerate(ANGLES, 1):
        rim = (0.25 * np.cos(angle), 0.25 * np.sin(angle), 0.0)
        model = model.with_frame(f"normal{k}", "object", rim, (0.0, -np.pi / 2, angle))
        model = model.with_loop(f"arm{k}_tool", f"normal{k}", SoftFinger(), name=HOLDING[k - 1])
    return model


GRASPS = {
    "rigid": sl.zoo.arms_with_object(3, grasp="fixed"),
    "one DoF": sl.zoo.arms_with_object(3, grasp="revolute"),
    "three DoF": sl.zoo.arms_with_object(3, grasp="spherical"),
    "soft finger": soft_fingers(),
}


def pushed(robot, q):
    """Velocities of a moving object, with arm velocities of least norm."""
    J = robot.closure_jacobian(q)
    v = np.zeros(robot.model.nv)
    v[:6] = 0.1, -0.2, 0.4, 0.15, 0.1, 0.05  # rad/s, m/s
    v[6:] = -np.linalg.pinv(J[:, 6:]) @ J[:, :6] @ v[:6]
    return v


def apart(model, q, v, tau):
    """Largest difference of the methods from the dense solution, relative to the largest acceleration."""

    def result(method, **options):
        return sl.compile(model, "forward_dynamics", method=method, target="python", **options)(q, v, tau)

    dense = result("dense")
    found = [result("elimination"), *(result(m) for m in METHODS)]
    found += [result("arms_on_object", open_chain=solver) for solver in SOLVERS]
    return max(np.abs(a - dense).max() for a in found) / np.abs(dense).max()


def held_by(tau):
    """A controller: these torques, and springs to the initial posture."""

    def torques(t, q, v):
        springs = [k * (home - x) for k, home, x in zip(STIFFNESS, start[7:], list(q)[7:], strict=True)]
        return [*tau[:6], *(x + y for x, y in zip(tau[6:], springs, strict=True))]

    return torques


def turning(robot, q, v, a, frame):
    """Angular velocity and acceleration of a frame, world axes."""
    J, b = robot.jacobian(q, frame), robot.jacobian_bias(q, v, frame)
    return J[:3] @ v, J[:3] @ a + b[:3]


def contact_forces(run):
    """Along the normals, into the object, and across them: (3, n) each [N]."""
    found, R = run.reactions(), run.robot.pose(run.q, "object")[:, :3, :3]
    force = np.stack([found[name][:, 3:] for name in HOLDING])
    normals = np.einsum("nij,kj->kni", R, INWARD)
    pressing = (force * normals).sum(axis=-1)
    return pressing, np.linalg.norm(force - pressing[..., None] * normals, axis=-1)


runs, forces = {}, {}
for name, model in GRASPS.items():
    robot = sl.Dynamics(model, target="python")  # for a few states, without compiling
    v = pushed(robot, start)

    # torques that hold the object at rest and squeeze it, as far as this grasp allows
    wrenches = np.concatenate([np.zeros_like(INWARD), SQUEEZE * INWARD], axis=1)  # the object starts level
    tau = robot.inverse_dynamics(start, 0.0 * v, 0.0 * v, internal_forces=dict(zip(HOLDING, wrenches, strict=True)))

    # compare all methods
    rows, difference = len(robot.closure_error(start)), apart(model, start, v, tau)
    print(f"{name}: {rows} rows on {model.nv} DoF, mobility {robot.mobility(start)}")
    print(f"    {len(METHODS) + len(SOLVERS) + 1} methods agree with the dense equations to {difference:.0e}")
    assert difference < 1e-10

    # Ẇ(0): accelerations of the object relative to the arm, along the degrees of freedom of the grasps
    a = robot.forward_dynamics(start, v, tau)
    along = sl.papers.grasp_accelerations(robot, start, v, a).reshape(3, -1)
    if along.size:
        print("    along the DoF of holding1:", along[0].round(3), "rad/s²")
    if name == "three DoF":  # compare with the accelerations of the two frames, in the object's contact frame
        (spin, alpha), (arm_spin, arm_alpha) = (turning(robot, start, v, a, x) for x in ("grasp1", "arm1_tool"))
        relative = alpha - arm_alpha - np.cross(spin, spin - arm_spin)
        np.testing.assert_allclose(along[0], robot.pose(start, "grasp1")[:3, :3].T @ relative, atol=1e-9)

    # half a second under those torques and springs, which conserve energy
    run = runs[name] = sl.simulate(model, start, v, controller=held_by(tau), duration=0.5)
    moved = run.q[:, 7:] - start[7:]
    stored = run.energy.sum(axis=1) - moved @ tau[6:] + 0.5 * moved**2 @ STIFFNESS
    print(f"    after 0.5 s: loops closed to {run.residual:.0e} m, energy conserved to {np.ptp(stored):.0e} J")
    assert run.residual < 1e-12
    assert np.ptp(stored) < 1e-6

    pressing, sliding = forces[name] = contact_forces(run)
    print(f"    contacts press with {pressing.min():.1f} to {pressing.max():.1f} N;", end=" ")
    print(f"one-sided ones would need friction of {(sliding / pressing).max():.2f}")

# ---- redundant arms: eight hinges each, rigid grasps; they can move while the object rests

eight = {"arm": sl.zoo.chain(8), "posture": np.linspace(0.3, 1.0, 8)}
model, q = sl.zoo.arms_with_object(2, **eight), sl.zoo.arms_with_object_start(2, **eight)
robot = sl.Dynamics(model, target="python")
v = pushed(robot, q)
difference = apart(model, q, v, np.zeros(model.nv))
print(f"two arms of eight: mobility {robot.mobility(q)}, all methods agree to {difference:.0e}")
assert difference < 1e-10
