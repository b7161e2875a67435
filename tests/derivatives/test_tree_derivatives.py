"""Derivatives of the dynamics of trees: beside Pinocchio, beside the differentiated tape, and in every form of code."""

from __future__ import annotations

import importlib.metadata
import warnings
from dataclasses import replace

import numpy as np
import pytest
from pinocchio_peer import KINDS, Peer, with_known_kinds

import spanloop as sl
from spanloop.compiler.lower import Looped, PairSystem, Plan
from spanloop.derivatives.tree_dynamics import FORWARD, INVERSE, TreeDerivatives
from spanloop.errors import Reason, StateError
from spanloop.kernels import KernelSpec
from spanloop.kernels.compile import machine_kernel
from spanloop.kernels.derivative_spec import DerivativeSpec

ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", "fixed"),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", "free"),
    "talos": ("talos_data/robots/talos_reduced.urdf", "free"),
}


def plain(model: sl.Model) -> sl.Model:
    """Without dampers and springs, which Pinocchio does not have."""
    return replace(
        model,
        joints=tuple(replace(j, damping=(0.0,) * j.kind.nv, stiffness=(0.0,) * j.kind.nv) for j in model.joints),
    )


def numbers(model: sl.Model, seed: int = 1):
    q, v = model.random_state(seed=seed)
    return q, v, np.random.default_rng(seed).normal(size=model.nv)


def taped(model: sl.Model, function: str, **inputs) -> np.ndarray:
    """All derivatives of a function by the differentiated tape, evaluated on floats, side by side."""
    loads = inputs.get("forces", {})
    bodies = tuple(b.name for b in model.bodies if b.name in loads)
    if bodies:
        inputs["forces"] = np.concatenate([loads[b] for b in bodies])
    spec = DerivativeSpec.of(KernelSpec.of(model, function, forces=bodies), "jacobian", [*inputs][:3])
    found = spec.reference(*inputs.values())
    assert found is not None
    return found


def close(found, wanted, bound: float = 1e-11) -> None:
    assert np.abs(found - wanted).max() <= bound * np.abs(wanted).max()


def beside_pinocchio(model: sl.Model, bound: float = 1e-11) -> None:
    import pinocchio as pin

    robot, peer, (q, v, x) = sl.Dynamics(model), Peer(model), numbers(model)
    state = (peer.order.q_to(q), peer.order.v_to(v), peer.order.v_to(x))
    found = robot.derivatives(q, v, x)
    theirs = pin.computeABADerivatives(peer.model, peer.data, *state)
    inverse = np.triu(theirs[2]) + np.triu(theirs[2], 1).T
    for ours, other in zip((found.da_dq, found.da_dv, found.da_dtau), (*theirs[:2], inverse), strict=True):
        close(ours, peer._square(np.array(other)), bound)
    torques = robot.inverse_dynamics_derivatives(q, v, x)
    theirs = pin.computeRNEADerivatives(peer.model, peer.data, *state)
    mass = np.triu(theirs[2]) + np.triu(theirs[2], 1).T
    for ours, other in zip((torques.dtau_dq, torques.dtau_dv, torques.dtau_da), (*theirs[:2], mass), strict=True):
        close(ours, peer._square(np.array(other)), bound)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_derivatives_of_random_trees_are_those_of_pinocchio(seed):
    kinds = tuple(k for k in KINDS if k not in ("cylindrical", "universal"))
    beside_pinocchio(with_known_kinds(plain(sl.zoo.random_model(seed, 6, kinds))))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["puma", "stanford", "quadruped"])
def test_derivatives_of_the_zoo_are_those_of_pinocchio(name):
    beside_pinocchio(plain(getattr(sl.zoo, name)()))


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_derivatives_of_robots_are_those_of_pinocchio(name):
    try:
        wheel = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    path, base = ROBOTS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sl.load(wheel.locate_file(f"cmeel.prefix/share/example-robot-data/robots/{path}"), base=base)
    if name == "panda":
        model = model.lock("panda_finger_joint1", "panda_finger_joint2")
    beside_pinocchio(plain(model.without_losses()))


def test_a_puma_is_as_pinocchio_has_it():
    beside_pinocchio(plain(sl.zoo.puma()))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_every_kind_of_joint_with_springs_and_dampers_agrees_with_the_tape(seed):
    model = sl.zoo.random_model(seed, 6)
    robot, (q, v, x) = sl.Dynamics(model), numbers(model)
    close(robot.derivatives(q, v, x).da, taped(model, "forward_dynamics", q=q, v=v, tau=x))
    close(robot.inverse_dynamics_derivatives(q, v, x).dtau, taped(model, "inverse_dynamics", q=q, v=v, a=x), 1e-13)


@pytest.mark.slow
def test_external_forces_keep_their_directions_in_the_world():
    model = sl.zoo.random_model(3, 5)
    robot, (q, v, x) = sl.Dynamics(model), numbers(model)
    forces = {model.bodies[-1].name: np.arange(6.0), model.bodies[1].name: np.ones(6)}
    found = robot.derivatives(q, v, x, forces=forces)
    close(found.da, taped(model, "forward_dynamics", q=q, v=v, tau=x, forces=forces))
    torques = robot.inverse_dynamics_derivatives(q, v, x, forces=forces)
    close(torques.dtau, taped(model, "inverse_dynamics", q=q, v=v, a=x, forces=forces), 1e-13)


def test_the_acceleration_of_a_driven_joint_is_its_input():
    model = sl.zoo.puma()
    model = model.with_joint(model.joints[2].name, driven=True)
    robot, (q, v, x) = sl.Dynamics(model), numbers(model)
    found = robot.derivatives(q, v, x)
    k = next(model.v_slice(j.name).start for j in model.joints if j.driven)
    assert np.array_equal(found.da[k], np.eye(3 * model.nv)[2 * model.nv + k])
    M = robot.mass_matrix(q)
    free = [i for i in range(model.nv) if i != k]
    column = -np.linalg.solve(M[np.ix_(free, free)], M[free, k])  # how the others follow it
    close(found.da_dtau[free, k], column, 1e-12)
    close(found.da, taped(model, "forward_dynamics", q=q, v=v, tau=x))


FORMS = {"written out": (sl.zoo.chain(3), Plan, Plan), "pairs": (sl.zoo.quadruped(), PairSystem, Plan)}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_machine_code_agrees_with_plain_floats_one_by_one_and_in_batches(name, dtype):
    model, form, front = FORMS[name]
    q, v, x = numbers(model)
    kernel_of = TreeDerivatives.of(model, FORWARD, single=dtype == "float32")
    assert isinstance(kernel_of.plan, form)
    assert isinstance(kernel_of.system.front, front)
    wanted, bound = kernel_of.reference(q, v, x), 1e-12 if dtype == "float64" else 1e-3
    robot = sl.Dynamics(model, dtype=dtype)
    close(robot.derivatives(q, v, x).da, wanted, bound)
    found = robot.derivatives(np.tile(q, (3, 7, 1)), v, x)
    assert found.da.shape == (3, 7, *wanted.shape)
    close(found.da, wanted, bound)


@pytest.mark.slow
@pytest.mark.parametrize("name", [FORWARD, INVERSE])
def test_loops_over_links_agree_with_operations_written_out(name):
    model = sl.zoo.chain(20)
    inputs = numbers(model)
    looped, unrolled = (TreeDerivatives.of(model, name, lowering=x) for x in ("looped", "unrolled"))
    assert isinstance(looped.system.front, Looped)
    wanted = unrolled.reference(*inputs)
    kernel = machine_kernel(looped)
    close(kernel(*inputs), wanted, 1e-11)
    close(kernel(*(np.tile(x, (9, 1)) for x in inputs)), wanted, 1e-11)


@pytest.mark.slow
def test_long_chains_compile_to_short_code():
    sizes = [len(machine_kernel(TreeDerivatives.of(sl.zoo.chain(n), FORWARD)).source) for n in (60, 120)]
    assert sizes[1] < 2.5 * sizes[0]  # tables of pairs grow with n, instructions do not


def test_a_large_angle_is_answered_and_a_bad_state_is_refused():
    robot = sl.Dynamics(sl.zoo.chain(3))
    q, v, x = numbers(robot.model)
    far = q.copy()
    far[0] += 2.0 * np.pi * 2.0**50
    assert np.isfinite(robot.derivatives(far, v, x).da).all()
    rows = np.tile(q, (4, 1))
    rows[2, 1] = np.nan
    with pytest.warns(sl.SpanloopWarning, match="1 of 4 states"):
        found = robot.derivatives(rows, v, x)
    assert np.isnan(found.da[2]).all()
    close(found.da[3], robot.derivatives(q, v, x).da, 1e-14)
    with pytest.raises(StateError, match=r"derivatives: q\[1\]") as caught:
        robot.derivatives(rows[2], v, x)
    assert caught.value.reason is Reason.NOT_FINITE


def test_a_singular_mass_matrix_is_refused_with_its_joint():
    b = sl.Builder("hanging").body("arm", 1.0, inertia=(1.0, 1.0, 1.0)).body("ghost", 0.0)
    b.revolute("shoulder", "world", "arm", axis="x").revolute("wrist", "arm", "ghost", axis="x", position=(0, 0, -1))
    robot = sl.Dynamics(b.build())
    with pytest.raises(StateError, match="joint 'wrist'") as caught:
        robot.derivatives([0.1, 0.2], [0.0, 0.0], [0.0, 0.0])
    assert caught.value.reason is Reason.SINGULAR_MASS
    assert np.isfinite(robot.inverse_dynamics_derivatives([0.1, 0.2], [0.3, 0.1], [0.0, 0.0]).dtau).all()


def test_derivatives_are_views_of_the_array_that_is_given():
    robot = sl.Dynamics(sl.zoo.chain(3))
    q, v, x = numbers(robot.model)
    out = np.empty((3, 9))
    found = robot.derivatives(q, v, x, out=out)
    assert found.da is out
    assert np.shares_memory(found.da_dv, out)
    torques = robot.inverse_dynamics_derivatives(q, v, x, out=np.empty((3, 9)))
    close(torques.dtau_da, robot.mass_matrix(q), 1e-14)
    close(found.da_dtau @ torques.dtau_da, np.eye(3), 1e-12)


@pytest.mark.slow
def test_places_far_from_the_origin_lose_no_digits():
    model = sl.zoo.quadruped()
    robot, (q, v, x) = sl.Dynamics(model), numbers(model)
    near = robot.inverse_dynamics_derivatives(q, v, x).dtau
    place = model.q_slice(next(j.name for j in model.joints if j.kind.name == "free"))
    q[place][4:] += 1e6
    close(robot.inverse_dynamics_derivatives(q, v, x).dtau, near, 1e-12)


def test_a_model_that_cannot_move_has_empty_derivatives():
    model = sl.zoo.pendulum(1).lock("hinge1")
    robot = sl.Dynamics(model)
    none = np.zeros(0)
    assert robot.derivatives(none, none, none).da.shape == (0, 0)
    assert robot.inverse_dynamics_derivatives(np.zeros((4, 0)), none, none).dtau.shape == (4, 0, 0)
