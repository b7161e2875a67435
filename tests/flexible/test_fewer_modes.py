"""sl.flexible.fewer: modes that matter are kept, and the change of the response is that of the reduced model."""

import numpy as np
import pytest

import spanloop as sl
from spanloop.dynamics.fewer_modes import some_modes

BOOM = sl.flexible.beam(1.0, E=7e10, density=2700.0, section=sl.flexible.rectangle(0.01, 0.02), elements=4)


GUESS = {"hinge": 0.4, "wrist": -0.9, "pivot": 0.3}


def arm(part, closed=False):
    b = sl.Builder("arm", gravity=(0, 0, 0)).body("boom", flexible=part).body("load", 0.2, inertia=(1e-3,) * 3)
    b.revolute("hinge", "world", "boom", "z").fixed("grip", "boom.tip", "load")
    if closed:
        b.body("coupler", 0.1, (0.15, 0, 0), (1e-4, 1e-3, 1e-3)).revolute("wrist", "load", "coupler", "z")
        b.body("rod", 0.1, (0, 0.25, 0), (2e-3, 1e-4, 2e-3))
        b.revolute("pivot", "world", "rod", "z", position=(1.3, -0.5, 0.0))
        b.frame("far", "coupler", (0.3, 0.0, 0.0)).frame("end", "rod", (0.0, 0.5, 0.0))
        b.loop("end", "far", "revolute", name="pin")
    return b.build()


@pytest.fixture(scope="module")
def part():
    fe = sl.flexible.to_matrices(BOOM)
    return sl.flexible.from_matrices(fe, interfaces={"root": 0, "tip": 8}, modes=3, damping=0.01)


@pytest.mark.slow
def test_a_hinge_in_the_plane_keeps_the_modes_in_the_plane(part):
    model = arm(part)
    found = sl.flexible.fewer(model, keep=3, up_to=200.0)
    assert found.model.nv == 4
    moved = np.abs(np.array(found.model.joint("boom.tip").kind.shape.translations))
    assert moved[:, 1].min() > 1e3 * moved[:, 2].max()  # bending in y, about the hinge
    out_of_plane = [x for _, _, x in found.changes[:4]]
    assert max(out_of_plane) < 1e-9
    # the response of the reduced model itself, at rest
    linear = sl.Dynamics(found.model).linearize(found.model.neutral(), inputs=["hinge"], outputs=["hinge"])
    s = 2 * np.pi * found.frequencies * (0.02 + 1j)
    own = np.array([linear.C @ np.linalg.solve(x * np.eye(len(linear.A)) - linear.A, linear.B) for x in s])
    np.testing.assert_allclose(found.after[0], own, rtol=1e-8)
    response, f = np.abs(found.before[0, :, 0, 0]), found.frequencies
    local = [response[np.abs(np.log2(f / x)) <= 1.0 / 6.0].max() for x in f]
    expected = (np.abs(own - found.before[0])[:, 0, 0] / local).max()
    assert found.change == pytest.approx(expected, rel=1e-6)
    assert expected > 2.0 * np.abs(own - found.before[0]).max() / response.max()  # not hidden by 1/ω² of the hinge
    whole = sl.Dynamics(model).modes(model.neutral()).frequencies
    near = whole[(whole > f[0]) & (whole < 0.98 * f[-1])]
    assert len(near)
    assert all(np.abs(f / x - 1.0).min() < 5e-3 for x in near)  # resonances are among the frequencies
    assert "boom keeps" in str(found)


@pytest.mark.slow
def test_in_a_loop_the_change_is_that_of_the_reduced_mechanism(part):
    model = arm(part, closed=True)
    q = sl.Dynamics(model).assemble(GUESS)
    found = sl.flexible.fewer(model, {"boom": 4}, at=[q], inputs=["hinge"], outputs=["pivot"])
    robot = sl.Dynamics(found.model)
    linear = robot.linearize(robot.assemble(GUESS), inputs=["hinge"], outputs=["pivot"])
    s = 2 * np.pi * found.frequencies * (0.02 + 1j)
    own = np.array([linear.C @ np.linalg.solve(x * np.eye(len(linear.A)) - linear.A, linear.B) for x in s])
    np.testing.assert_allclose(found.after[0], own, rtol=1e-7, atol=1e-9 * np.abs(own).max())


def test_what_cannot_be_is_refused(part):
    model = arm(part)
    with pytest.raises(sl.errors.InputError, match="keep names 'bom'"):
        sl.flexible.fewer(model, {"bom": 2})
    with pytest.raises(sl.errors.InputError, match="has 9 modes; 20"):
        sl.flexible.fewer(model, 20)
    with pytest.raises(sl.errors.InputError, match="no body from finite elements"):
        sl.flexible.fewer(sl.zoo.puma(), 2)


def test_what_a_body_with_fewer_modes_moves_and_leaves_out_is_that_of_the_modes_it_has():
    fe, ends = sl.flexible.to_matrices(BOOM), {"root": 0, "tip": 8}
    with pytest.warns(sl.errors.SpanloopWarning, match="32 modes"):
        whole = sl.flexible.from_matrices(fe, interfaces=ends, basis="cantilever", modes=40)
    assert whole.left_out < 1e-9
    for n in (10, 3):
        few = some_modes(whole, range(n))
        expected = sl.flexible.from_matrices(fe, interfaces=ends, basis="cantilever", modes=n)
        np.testing.assert_allclose(few.effective, expected.effective, atol=1e-9)
        assert few.left_out == pytest.approx(expected.left_out, abs=1e-8)
        assert few.left_out > 0.1
