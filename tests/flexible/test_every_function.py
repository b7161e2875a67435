"""Every function of the catalog, by every method, on a tree and on a loop with flexible bodies, against dense algebra.

Expected answers come from energies, momenta and poses in dual numbers (support/flexible_reference.py). A function that
is new in the catalog needs a line in EXPECTED; a method that is marked `rigid_only` must refuse with a sentence.
"""

from __future__ import annotations

import numpy as np
import pytest
from flexible_mechanisms import ENDS, Case, case
from flexible_reference import STEP

import spanloop as sl
from spanloop.algorithms import catalog
from spanloop.errors import UnsupportedError
from spanloop.kernels import KernelSpec
from spanloop.topology import mechanism

FRAMES = ("tool", "boom.middle", "boom", "whip.tip")  # of a rigid body, nodes, and the frame of a flexible body
AGREE = 1e-12  # of the largest entry, for plain algebra


# ---- expected answers: of a case, for the inputs of the kernel by name and the options


def accelerations(c: Case, x, **options):
    """M a + h = tau + Jᵀ λ with J a + γ = 0."""
    J, n = c.rows, c.model.nv
    whole = np.block([[c.M, J.T], [J, np.zeros((len(J), len(J)))]])
    return np.linalg.solve(whole, np.concatenate([x["tau"] - c.h, -c.row_bias]))[:n]


def stacked(c: Case, frames):
    return np.vstack([c.jacobian(f) for f in frames])


def link_jacobian(c: Case, frames):
    """Velocities of the links that carry the frames, at their origins in their axes."""
    m, rows = mechanism(c.model), []
    by_link = {m.anchors[name].link: name for name in frames}
    for _, name in sorted(by_link.items()):
        anchor, (R, _) = m.anchors[name], c.reference.frames(c.q, 0.0 * c.v)[name]
        axes = R.value @ np.array(anchor.rotation).T
        J, lever = c.jacobian(name), -axes @ np.array(anchor.position)
        rows += [axes.T @ J[:3], axes.T @ (J[3:] + np.cross(J[:3].T, lever).T)]
    return np.vstack(rows)


def frame_acceleration(c: Case, x, frame):
    return c.jacobian(frame) @ x["a"] + c.reference.jacobian_bias(frame, c.q, c.v)


def spatial_acceleration(c: Case, x, frame):
    omega_v = c.reference.velocity(frame, c.q, c.v)
    return frame_acceleration(c, x, frame) - [0, 0, 0, *np.cross(omega_v[:3], omega_v[3:])]


def pose(c: Case, x, frame):
    R, p = c.reference.frames(c.q, c.v)[frame]
    return np.block([[R.value, p.value[:, None]], [np.eye(4)[3:]]])


def momentum(c: Case, v, q=None):
    """[angular; linear] about the centre of mass."""
    q = c.q if q is None else q
    total, (centre, _) = c.reference.momenta(q, v).sum(axis=0), c.reference.center_of_mass(q)
    return np.concatenate([total[:3] - np.cross(centre, total[3:]), total[3:]])


def center_of_mass_jacobian(c: Case):
    mass = c.reference.center_of_mass(c.q)[1]
    return np.array([momentum(c, e)[3:] for e in np.eye(c.model.nv)]).T / mass


def in_child_axes(c: Case, x):
    """Rows of the ball are in the axes of its child frame."""
    return c.reference.frames(c.q, c.v)[ENDS[0]][0].value.T @ x


def correction(c: Case, error):
    J, M = c.rows, c.M
    if not len(J):
        return np.zeros(len(M))
    return -np.linalg.solve(M, J.T @ np.linalg.solve(J @ np.linalg.solve(M, J.T), error))


def impact(c: Case, x):
    """delta, impulses, u: here every row stops."""
    if not c.model.loops:
        return np.zeros(c.model.nv)
    J, M = c.rows, c.M
    impulses = -np.linalg.solve(J @ np.linalg.solve(M, J.T), J @ x["v"])
    parts = (np.linalg.solve(M, J.T @ impulses), in_child_axes(c, impulses), in_child_axes(c, J @ x["v"]))
    return np.concatenate(parts)


def impulse_response(c: Case, x, frames):
    J = link_jacobian(c, frames)
    change = c.response(J.T @ x["impulse"])
    return np.concatenate([change, J @ change])


def free_response(c: Case, x, points):
    """Accelerations of the tree, then pose, velocity and acceleration of every point, then Λ = J M⁻¹ Jᵀ."""
    a = np.linalg.solve(c.M, x["tau"] - c.h)
    of_points = [
        [*pose(c, x, f)[:3].ravel(), *c.reference.velocity(f, c.q, c.v), *frame_acceleration(c, {"a": a}, f)]
        for f in points
    ]
    J = stacked(c, points)
    return np.concatenate([a, np.ravel(of_points), (J @ np.linalg.solve(c.M, J.T)).ravel()])


EXPECTED = {
    "free_response": free_response,
    "forced_response": lambda c, x, points: c.response(stacked(c, points).T @ x["push"]),
    "forward_dynamics": accelerations,
    "closure_error": lambda c, x: np.zeros(3),
    "closure_facing": lambda c, x: np.ones(1),
    "closure_jacobian": lambda c, x: in_child_axes(c, c.rows),
    "closure_bias": lambda c, x: in_child_axes(c, c.row_bias),
    "grasp_accelerations": lambda c, x: grasp_accelerations(c, x),
    "position_correction": lambda c, x: correction(c, _world(c, x["error"])),
    "velocity_correction": lambda c, x: correction(c, c.rows @ x["v"]),
    "impact": impact,
    "impulse_response": impulse_response,
    "link_velocities": lambda c, x, frames: link_jacobian(c, frames) @ x["v"],
    "inverse_dynamics": lambda c, x: c.M @ x["a"] + c.h,
    "tree_inverse_dynamics": lambda c, x: c.M @ x["a"] + c.h,
    "mass_matrix": lambda c, x: c.M,
    "mass_matrix_inverse": lambda c, x: np.linalg.inv(c.M),
    "bias": lambda c, x: c.h,
    "operational_inverse_inertia": lambda c, x, frames: stacked(c, frames) @ c.response(stacked(c, frames).T),
    "force_response": lambda c, x, frames: c.response(stacked(c, frames).T),
    "gravity_torques": lambda c, x: c.reference.gravity_torques(c.q),
    "reactions": lambda c, x: c.reference.reactions(c.q, c.v, x["a"]),
    "pose": pose,
    "poses": lambda c, x: np.array([pose(c, x, name) for name in mechanism(c.model).anchors]),
    "jacobian": lambda c, x, frame: c.jacobian(frame),
    "jacobian_bias": lambda c, x, frame: c.reference.jacobian_bias(frame, c.q, c.v),
    "frame_velocity": lambda c, x, frame: c.reference.velocity(frame, c.q, c.v),
    "frame_acceleration": frame_acceleration,
    "frame_spatial_acceleration": spatial_acceleration,
    "energy": lambda c, x: np.array(c.reference.energies(c.q, c.v)),
    "momentum": lambda c, x: momentum(c, c.v),
    "center_of_mass": lambda c, x: c.reference.center_of_mass(c.q)[0],
    "center_of_mass_jacobian": lambda c, x: center_of_mass_jacobian(c),
    "centroidal_momentum_matrix": lambda c, x: np.array([momentum(c, e) for e in np.eye(c.model.nv)]).T,
    "centroidal_momentum_bias": lambda c, x: momentum(c, c.v.astype(complex), c.q + 1j * STEP * c.v).imag / STEP,
    "integrate": lambda c, x: x["q"] + x["delta"],
    "difference": lambda c, x: x["q"] - x["start"],
}
WITH_CONTACTS = ("contact_geometry", "contact_velocities")  # tested below, with shapes


def grasp_accelerations(c: Case, x):
    """Angular acceleration of b on a about the axes of b, as seen in b."""
    spin = [c.reference.velocity(n, c.q, c.v)[:3] for n in ENDS]
    turn = [frame_acceleration(c, x, n)[:3] for n in ENDS]
    return in_child_axes(c, turn[0] - turn[1] - np.cross(spin[1], spin[0] - spin[1]))


def _world(c: Case, rows):
    return c.reference.frames(c.q, c.v)[ENDS[0]][0].value @ rows if c.model.loops else rows


def methods(closed: bool):
    for name, entry in catalog.FUNCTIONS.items():
        for method, algorithm in (entry.closed if closed and entry.closed is not None else entry.methods).items():
            yield name, method, algorithm


def known(closed: bool):
    """What is not refused: functions of loops on the loop, functions of trees on the tree."""
    for name, method, algorithm in methods(closed):
        entry = catalog.FUNCTIONS[name]
        of_loops = entry.needs_closures or name.startswith(("closure_", "grasp_"))
        if (
            not algorithm.rigid_only
            and name not in WITH_CONTACTS
            and (not entry.needs_tree if closed else not of_loops)
        ):
            yield name, method, algorithm


CASES = [(kind, name, method) for kind in ("tree", "loop") for name, method, _ in known(kind == "loop")]
REFUSED = [(kind, x) for kind in ("tree", "loop") for x in methods(kind == "loop") if x[2].rigid_only]


def answers(kind: str, name: str, method: str, **made):
    """What the kernel finds and what is expected, for each choice of frames."""
    c, rng = case(kind), np.random.default_rng(3)
    takes = catalog.algorithm(name, method, kind == "loop")[1].takes
    choices = [{}]
    if "frame" in takes:
        choices = [{"frame": f} for f in FRAMES]
    elif "frames" in takes or "points" in takes:
        choices = [{"frames" if "frames" in takes else "points": FRAMES}]
    for options in choices:
        spec = KernelSpec.of(c.model, name, method=method, **options)
        given = {n: {"q": c.q, "v": c.v}.get(n, rng.normal(size=k)) for n, k in spec.signature()[0]}
        if name in ("velocity_correction", "impact"):
            given["v"] = rng.normal(size=c.model.nv)
        if made:
            found = sl.compile(c.model, name, method=method, **options, **made)(*given.values())
        else:
            found = spec.reference(*given.values())
        assert found is not None, spec.explain(*given.values())
        yield found, EXPECTED[name](c, given, **options)


def near(found, expected, bound=AGREE):
    """Relative to the largest number, and to 1 where all are small: what they are made of (rates, lengths) is of order
    1, and the reference has the rounding of its terms where the answer is zero."""
    assert np.shape(found) == np.shape(expected)
    assert np.abs(found - expected).max() <= bound * max(np.abs(expected).max(), 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "method"), CASES)
def test_every_function_agrees_with_dense_algebra(kind, name, method):
    """Inverses lose the digits of the condition of M, of 1e6."""
    solved = name in ("forward_dynamics", "mass_matrix_inverse") or "response" in name or "correction" in name
    for found, expected in answers(kind, name, method):
        near(found, expected, 1e-9 if solved or name in ("impact", "operational_inverse_inertia") else AGREE)


@pytest.mark.parametrize(("kind", "row"), REFUSED)
def test_methods_for_rigid_bodies_refuse(kind, row):
    name, method, _ = row
    entry = catalog.FUNCTIONS[name]
    if entry.needs_tree and kind == "loop":
        pytest.skip("refused for its loop")
    words = f"^{name} by '{method}' is for rigid bodies: body 'boom' of 'flexible {kind}' bends. Use "
    with pytest.raises(UnsupportedError, match=words) as refusal:
        KernelSpec.of(case(kind).model, name, method=method)
    assert not str(refusal.value).endswith("Use ")
