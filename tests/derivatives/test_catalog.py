"""Every function of the catalog by every method: its derivatives forward, reverse and written out agree with each
other and with differences in extended precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from catalog import ON_LOOPS, ON_TREES, Question, closed_state, question, tree_state
from extended import evaluate
from mechanisms import ZOO, model_of

import spanloop as sl
from spanloop import zoo
from spanloop.algorithms.catalog import FUNCTIONS
from spanloop.errors import Reason, StateError
from spanloop.kernels import KernelSpec

KINDS = [name for name in ZOO if name.startswith("chain_")]
ON_WHICH = {  # mechanisms that take turns, so that each function meets some of them
    "tree": ["puma", "chain_universal", "random3", "chain_free", "random7", "chain_planar", "chain_spherical"],
    "loop": ["four_bar", "slider_crank", "five_bar", "bricard", "governor sprung"],
}
OF_ARMS = "arms 1"  # for methods that need arms on an object
OF_LEGS = ("parallel_legs",)


def cases(names: list[str], group: str) -> list[tuple[str, str, str]]:
    out = []
    for name in names:
        entry = FUNCTIONS[name]
        methods = list(entry.methods if group == "tree" else (entry.closed or entry.methods))
        for k, method in enumerate(methods):
            first = ON_WHICH[group][(len(out) + k) % len(ON_WHICH[group])]
            if method.startswith("arms_on_object"):
                first = OF_ARMS
            if method in OF_LEGS or method == "simple_closed_chain":
                first = "five_bar"
            out.append((name, method, first))
    return out


def agree(asked: Question, bound: float = 1e-11) -> None:
    """Forward = reverse (dot products), = written out, = differences; all in extended precision."""
    rng = np.random.default_rng(5)
    directions = asked.directions(rng)
    along = np.concatenate(list(directions.values()))
    value = asked.value(asked.inputs)
    assert np.isfinite(value).all()
    weights = rng.normal(size=value.size)
    forward = asked.derivative("jvp", *directions.values())
    reverse = asked.derivative("vjp", weights)
    whole = asked.derivative("jacobian").reshape(value.size, along.size)
    size = np.abs(whole).max() * np.abs(along).max() + 1e-3 * np.abs(value).max() + 1e-12
    assert abs(weights @ forward - reverse @ along) < 1e-15 * size * along.size * value.size
    assert np.abs(whole @ along - forward).max() < 1e-15 * size * along.size
    assert np.abs(asked.differences(directions) - forward).max() < bound * size


@pytest.mark.slow
@pytest.mark.parametrize(("function", "method", "name"), cases(ON_TREES, "tree"))
def test_derivatives_of_trees(function, method, name):
    model, state = tree_state(name)
    agree(question(model, function, state, method, ("forces",)))


@pytest.mark.slow
@pytest.mark.parametrize(("function", "method", "name"), cases(ON_LOOPS, "loop"))
def test_derivatives_of_mechanisms_with_loops(function, method, name):
    """At closed states, by all coordinates of the tree: the function as it is computed."""
    model, state = closed_state(name)
    agree(question(model, function, state, method, ("forces",)), 1e-10)


@pytest.mark.parametrize("function", ["forward_dynamics", "tree_inverse_dynamics", "energy", "integrate"])
@pytest.mark.parametrize("name", KINDS)
def test_derivatives_of_every_kind_of_joint_with_springs_and_dampers(name, function):
    model, state = tree_state(name)
    agree(question(sprung(model), function, state))


def sprung(model):
    """The model with springs, dampers and armatures at all joints that take them."""

    def of(j):
        stiff = (3.0,) * j.kind.nv if j.kind.takes_springs else j.stiffness
        return replace(j, stiffness=stiff, damping=(0.1,) * j.kind.nv, armature=(0.05,) * j.kind.nv)

    return replace(model, joints=tuple(map(of, model.joints)))


def special(name: str):
    """A mechanism with couplings, driven joints or loops, or loops that can be switched off, and a state of it."""
    rng, arm = np.random.default_rng(3), zoo.puma()
    if name == "coupling":
        model = arm.with_coupling("joint5", "joint4", 2.0)
    elif name == "driven joint":
        model = arm.drive("joint2")
    elif name == "driven loop":
        model = zoo.four_bar()
        model = model.drive(model.loops[0].name)
        return model, (zoo.four_bar_start(), np.zeros(3), rng.normal(size=3))
    else:
        model = arm.with_frame("anchor", "world", position=(0.4, 0.0, 0.5))
        model = model.with_loop("tool", "anchor", "spherical", name="grip", switchable=True)
    robot = sl.Dynamics(model)
    q = robot.assemble([0.1, -0.9, 0.4, 0.2, 0.3, 0.1])
    return model, (q, robot.project(q, rng.normal(size=6))[1], rng.normal(size=6))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["coupling", "driven joint", "driven loop", "closed switch", "open switch"])
def test_derivatives_of_couplings_drives_and_switches(name):
    model, state = special(name)
    asked = question(model, "forward_dynamics", state, None, ("forces",))
    if name == "open switch":
        asked = asked.at(active=np.zeros_like(asked.inputs["active"]))
    agree(asked, 1e-9)


SHAPES = {
    "sphere": sl.contacts.Sphere(0.1),
    "capsule": sl.contacts.Capsule(0.1, 0.3),
    "box": sl.contacts.Box(0.1, 0.2, 0.3),
    "cylinder": sl.contacts.Cylinder(0.1, 0.3),
}
PAIRS = [("sphere", name) for name in SHAPES] + [("capsule", "capsule")] + [(name, "ground") for name in SHAPES]


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_derivatives_of_contacts(pair):
    """Apart from each other, where they are smooth; also finite where the shapes have one centre or are parallel."""
    b = sl.Builder("two").body("a", 1.0, inertia=[0.01] * 3).body("b", 1.0, inertia=[0.01] * 3)
    model = b.free("fa", "world", "a").free("fb", "world", "b").build()
    model = model.with_contact(
        "touch", ("a", SHAPES[pair[0]]), "ground" if pair[1] == "ground" else ("b", SHAPES[pair[1]])
    )
    moving = KernelSpec.of(model, "integrate").plan
    apart, v = np.random.default_rng(3).normal(size=(2, model.nv))
    asked = question(model, "contact_geometry", (np.asarray(evaluate(moving, model.neutral(), apart), float), v, v))
    agree(asked, 1e-9)
    for still in (0.0 * apart, 0.5 * np.eye(12)[5], 0.5 * np.eye(12)[3]):
        here = asked.at(q=np.asarray(evaluate(moving, model.neutral(), still), float))
        assert np.isfinite(here.derivative("jacobian")).all()
        assert np.isfinite(here.derivative("vjp", np.ones(here.value(here.inputs).size))).all()


# ---- parameters and forces


@pytest.mark.parametrize("function", ["forward_dynamics", "tree_inverse_dynamics", "energy", "bias"])
@pytest.mark.parametrize("name", ["pendulum", "random3", "chain_spherical", "stanford"])
def test_derivatives_by_parameters_and_forces_of_trees(name, function):
    """Masses, centres, inertias, lengths, armatures, dampers, springs, gravity."""
    model, state = tree_state(name)
    agree(question(sprung(model), function, state, None, ("forces", "parameters")), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "five_bar", "governor sprung"])
def test_derivatives_by_parameters_and_forces_of_loops(name):
    model, state = closed_state(name)
    agree(question(model, "forward_dynamics", state, None, ("forces", "parameters")), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pendulum", "four_bar"])
def test_a_user_asks_for_derivatives_by_parameters(name):
    """Of a tree and of a loop: the longer link, the heavier body, stronger gravity, an outside force."""
    if name == "pendulum":
        model, (q, v, tau) = tree_state("pendulum")
    else:
        model, (q, v, tau) = closed_state(name)
    robot, p = sl.Dynamics(model), model.parameters()
    body = model.bodies[-1].name
    inputs = {"q": q, "v": v, "tau": tau, "forces": {body: [0.1, 0.2, 0.3, 1.0, 2.0, 3.0]}}
    by = robot.derivative("forward_dynamics", inputs, wrt=("parameters", "forces"))
    assert by["parameters"].shape == (model.nv, len(p))
    assert by["forces"][body].shape == (model.nv, 6)
    for changed in (f"{body}.mass", "gravity.z"):
        k, h = p.index(changed), 1e-5
        one, other = (
            sl.Dynamics(model.with_parameters({changed: p.values[k] + s})).forward_dynamics(
                q, v, tau, forces=inputs["forces"]
            )
            for s in (h, -h)
        )
        np.testing.assert_allclose(by["parameters"][:, k], (one - other) / (2 * h), rtol=1e-6, atol=1e-7)


@pytest.mark.slow
def test_torques_change_with_a_mass_as_the_regressor_says():
    """∂tau/∂(mass), at a fixed centre: the columns of mass and first moments."""
    model, (q, v, a) = tree_state("puma")
    robot, phi = sl.Dynamics(model), model.inertial_parameters()
    by = robot.derivative("inverse_dynamics", {"q": q, "v": v, "a": a}, wrt="parameters")["parameters"]
    found = by[:, model.parameters().index("link3.mass")]
    center = np.array(model.body("link3").inertia.center)
    I = np.eye(3) * (center @ center) - np.outer(center, center)
    step = np.array([1.0, *center, I[0, 0], I[0, 1], I[0, 2], I[1, 1], I[1, 2], I[2, 2]])
    first = phi.index("link3.mass")
    expected = robot.regressor(q, v, a)[:, first : first + 10] @ step
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(by).max())


# ---- where functions have guards: derivatives are finite wherever the function is

GUARDED = ["forward_dynamics", "tree_inverse_dynamics", "energy", "integrate", "difference", "poses"]
TURNS = (0.0, 1e-170, 1e-9, 9.9e-3, 1.01e-2, 0.0999, 0.1001)  # by which series begin and end


@pytest.mark.slow
@pytest.mark.parametrize("function", GUARDED)
@pytest.mark.parametrize("name", KINDS)
def test_derivatives_are_finite_and_right_at_rest_and_where_series_begin(name, function):
    """Springs at rest, rotations by 0, differences of equal states, and states beside the ends of series."""
    model = sprung(model_of(name))
    if function == "difference" and name == "chain_general":
        pytest.skip("a general joint has no difference")
    rest, still = model.neutral(), np.zeros(model.nv)
    unit = np.random.default_rng(2).normal(size=model.nv)
    unit /= np.linalg.norm(unit)
    asked = question(model, function, (rest, still, still))
    moving = KernelSpec.of(model, "integrate").plan
    for turn in TURNS:
        q = np.asarray(evaluate(moving, rest, turn * unit), float)
        agree(asked.at(q=q, start=rest, delta=turn * unit), 1e-9)


@pytest.mark.slow
def test_derivatives_at_closed_states_at_rest_are_finite():
    """Closure errors of exactly 0, of closures of several kinds, and the corrections that they ask for."""
    for case in ("four_bar", "four_bar ball", "four_bar universal", "slider_crank"):
        model, (q, _, _) = closed_state(case)
        still = np.zeros(model.nv)
        for function in ("forward_dynamics", "closure_error", "closure_bias", "position_correction"):
            asked = question(model, function, (q, still, still))
            agree(asked.at(error=np.zeros_like(asked.inputs.get("error", still))), 1e-9)


# ---- states without a derivative


def test_a_state_that_the_function_refuses_has_no_derivative_and_says_why():
    robot = sl.Dynamics(zoo.four_bar())
    q = np.stack([zoo.four_bar_start(), zoo.four_bar_start() + [0.3, 0.0, 0.0]])
    v = tau = np.zeros((2, 3))
    with pytest.warns(sl.SpanloopWarning, match="forward_dynamics") as seen:
        found = robot.jvp("forward_dynamics", {"q": q, "v": v, "tau": tau}, {"tau": np.ones(3)})
    assert len(seen) == 1
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()


def test_a_derivative_that_is_not_finite_is_no_silent_nan():
    robot = sl.Dynamics(zoo.pendulum())
    inputs = {"q": [0.3], "v": [1.0], "tau": [0.0]}
    with pytest.raises(StateError) as error:
        robot.jvp("forward_dynamics", inputs, {"q": [1e308], "v": [1e308]})
    assert error.value.reason is Reason.NOT_SMOOTH
    rows = {n: np.stack([x, x]) for n, x in inputs.items()}
    with pytest.warns(sl.SpanloopWarning, match="not finite"):
        found = robot.jvp("forward_dynamics", rows, {"q": np.array([[1.0], [1e308]]), "v": np.array([[1.0], [1e308]])})
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[0]).all()


@pytest.mark.parametrize("method", ["virtual_work", "simple_closed_chain"])
def test_by_an_armature_of_zero_methods_with_its_root_have_the_derivative_of_the_default(method):
    """Their rows are √armature; kernels answer themselves, without those that refine a refused state."""
    if method == "virtual_work":
        model = zoo.chain(1, "revolute", seed=5)
        state = [0.3], [0.2], [0.1]
    else:
        model = zoo.four_bar()
        q = zoo.four_bar_start()
        state = q, sl.Dynamics(model).complete_velocity(q, {"crank_hinge": 0.7}), [0.1, -0.2, 0.3]
    given = [*map(np.asarray, state), model.parameters().values]
    options = {"derivative": "jacobian", "wrt": "parameters"}
    kernel, default = (sl.compile(model, "forward_dynamics", method=m, **options) for m in (method, None))
    found = np.empty(kernel.shape)
    assert kernel.attempt(given, found)
    columns = [k for k, n in enumerate(model.parameters().names) if ".position." not in n]  # they open loops
    assert np.allclose(found[:, columns], default(*given)[:, columns], rtol=1e-9, atol=1e-9)
