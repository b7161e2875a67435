"""Chosen parameters as inputs of every step, and the compact schedule: the numbers of sl.simulate."""

import numpy as np
import pytest
from portable_code import WasmSteps
from sentences import says

import spanloop as sl
from spanloop.compiler.lower import Plan
from spanloop.errors import InputError
from spanloop.exports.portable_motion import PortableMotion
from spanloop.kernels import KernelSpec

NAMES = ("gravity.z", "crank.mass", "coupler_hinge.position.x", "crank_hinge.damping")
OTHERS = {"gravity.z": -3.0, "crank.mass": 2.5, "coupler_hinge.position.x": 1.02, "crank_hinge.damping": 0.3}


def moved(motion: PortableMotion, steps: int, **arrays) -> WasmSteps:
    """The module after some steps."""
    page = WasmSteps(motion.schedule)
    places, sizes = page.places.places, page.places.sizes
    for name, numbers in (motion.start | {"h": [motion.step]} | arrays).items():
        page.memory[places[name] : places[name] + sizes[name]] = numbers
    for k in range(steps):
        page.memory[places["t"]] = k * motion.step
        assert page.call("step") == 0
    return page


def array(page: WasmSteps, name: str) -> np.ndarray:
    first = page.places.places[name]
    return page.memory[first : first + page.places.sizes[name]].copy()


@pytest.mark.parametrize("compact", [False, True])
def test_a_motion_with_varied_parameters_is_that_of_the_model_that_has_them(compact):
    model = sl.zoo.four_bar()
    other = model.with_parameters(model.parameters().changed(OTHERS))
    q = sl.Dynamics(other).assemble(sl.zoo.four_bar_start())
    known = sl.simulate(other, q, duration=0.1)
    motion = PortableMotion.of(model, sl.zoo.four_bar_start(), varied=NAMES, compact=compact)
    found = moved(motion, 100, p=[OTHERS[n] for n in NAMES], q=q)
    assert np.abs(array(found, "q") - known.q[-1]).max() < 1e-14


def test_the_others_are_numbers_in_the_code():
    model = sl.zoo.puma()
    sizes = []
    for parameters in ("baked", ("gravity.z",), ("gravity.z", "link3.mass"), "live"):
        plan = KernelSpec.of(model, "forward_dynamics", parameters=parameters, lowering="unrolled").plan
        assert isinstance(plan, Plan)
        sizes.append(len(plan.nodes))
    assert sizes[0] <= sizes[1] < 1.02 * sizes[0]
    assert sizes[2] < 0.7 * sizes[3]


def test_a_kernel_of_chosen_parameters_is_that_of_the_model_that_has_them():
    model = sl.zoo.four_bar()
    other = model.with_parameters(model.parameters().changed(OTHERS))
    q = sl.Dynamics(other).assemble(sl.zoo.four_bar_start())
    spec = KernelSpec.of(model, "forward_dynamics", parameters=NAMES)
    assert spec.signature()[0][-1] == ("parameters", len(NAMES))
    found = spec.reference(q, np.zeros(3), np.ones(3), np.array([OTHERS[n] for n in NAMES]))
    known = sl.Dynamics(other).forward_dynamics(q, np.zeros(3), np.ones(3))
    np.testing.assert_allclose(found, known, rtol=1e-13)
    assert spec.reference(q, np.zeros(3), np.ones(3), np.array([-3.0, -2.5, 1.02, 0.3])) is None
    assert "'crank.mass' is -2.5; must be >= 0" in str(
        spec.explain(q, np.zeros(3), np.ones(3), [-3.0, -2.5, 1.02, 0.3])
    )


@pytest.mark.parametrize("compact", [False, True])
def test_a_step_refuses_what_no_mechanism_has(compact):
    motion = PortableMotion.of(sl.zoo.puma(), varied=("link3.mass",), compact=compact)
    page = moved(motion, 1)
    before = array(page, "q")
    page.memory[page.places.places["p"]] = -1e-6
    assert page.call("step") == 1
    np.testing.assert_array_equal(array(page, "q"), before)
    page.memory[page.places.places["p"]] = 0.0
    assert page.call("step") == 0


def test_names_are_checked():
    model = sl.zoo.four_bar()
    with says(InputError, "there is no parameter 'crank.mas'; did you mean 'crank.mass'?"):
        PortableMotion.of(model, sl.zoo.four_bar_start(), varied=("crank.mas",))
    with says(InputError, "parameter 'gravity.z' is named twice"):
        PortableMotion.of(model, sl.zoo.four_bar_start(), varied=("gravity.z", "gravity.z"))
    with says(InputError, "parameters are given as numbers and vary, too"):
        PortableMotion.of(model, sl.zoo.four_bar_start(), varied=("gravity.z",), parameters=model.parameters().values)


def test_the_mass_of_a_flexible_body_does_not_vary_alone():
    from flexible_mechanisms import tree

    model = tree()
    body = next(j.child for j in model.joints if j.kind.bends)
    with says(InputError, f"parameter '{body}.mass' cannot vary alone: mass, centre and inertia of the flexible body"):
        PortableMotion.of(model, varied=(f"{body}.mass",))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "integrator"), [("five_bar", "rk4"), ("stewart", "rk4"), ("bricard", "midpoint"), ("puma", "euler")]
)
def test_a_compact_schedule_is_shorter_and_moves_the_same(name, integrator):
    model = getattr(sl.zoo, name)()
    q = getattr(sl.zoo, f"{name}_start", model.neutral)()
    known = sl.simulate(model, q, duration=0.05, integrator=integrator, limits="ignore")
    whole, compact = (
        PortableMotion.of(model, q, integrator=integrator, limits="ignore", compact=x) for x in (False, True)
    )
    found = moved(compact, 50)
    assert np.abs(array(found, "q") - known.q[-1]).max() < 1e-14
    lengths = [sum(len(p.nodes) for p in m.schedule.plans()) for m in (whole, compact)]
    assert lengths[1] <= 1.01 * lengths[0] if name == "puma" else lengths[1] < 0.9 * lengths[0]
