"""Parameters that a live page changes: gravity, masses, and lengths by continuation."""

import numpy as np
import pytest
from live_page import LivePage
from sentences import says

import spanloop as sl
from spanloop.errors import InputError, ModelError
from spanloop.view.page.live.live_motion import LiveMotion

FOUR_BAR, CLOSED = sl.zoo.four_bar(), sl.zoo.four_bar_start()
CRANK = "coupler_hinge.position.x"  # the length of the crank


def live(parameters=(), **options) -> LivePage:
    return LivePage(LiveMotion.of(sl.Dynamics(FOUR_BAR), CLOSED, parameters=parameters, **options).data())


def with_crank(length: float) -> sl.Model:
    return FOUR_BAR.with_parameters(FOUR_BAR.parameters().changed({CRANK: length}))


def side(model: sl.Model, q: np.ndarray) -> float:
    """On which side of the line from the crank's end to the rocker's pivot the coupler's end is."""
    robot = sl.Dynamics(model)
    a, b = (robot.pose(q, name)[:3, 3] for name in ("coupler", "rocker"))
    loop = FOUR_BAR.loops[0]
    end = robot.pose(q, loop.b) @ np.append(loop.placement_b.position, 1.0)
    return float(np.cross(b - a, end[:3] - a) @ (0.0, 1.0, 0.0))


def test_gravity_has_a_factor():
    page = live()
    gravity = page.data["gravity"]
    assert gravity == {"places": [0], "values": [-9.81], "factor": 1.0, "most": 2.0}
    page["p"] = [0.5 * x for x in gravity["values"]]
    half = FOUR_BAR.with_parameters(FOUR_BAR.parameters().changed({"gravity.z": 0.5 * -9.81}))
    run = sl.simulate(half, CLOSED, duration=0.1)
    page.run(100).look()
    assert np.abs(page["q"] - run.q[-1]).max() < 1e-14


def test_a_mechanism_without_gravity_can_have_some():
    weightless = FOUR_BAR.with_parameters(FOUR_BAR.parameters().changed({"gravity.z": 0.0}))
    page = LivePage(LiveMotion.of(sl.Dynamics(weightless), CLOSED).data())
    assert page.data["gravity"]["factor"] == 0.0
    page.run(50)
    np.testing.assert_allclose(page["q"], CLOSED, atol=1e-15)
    page["p"] = page.data["gravity"]["values"]
    page.run(50)
    assert np.abs(page["q"] - CLOSED).max() > 1e-3
    assert live(gravity=False).data["gravity"] is None


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.8, 1.25])
def test_a_length_changes_by_continuation(share):
    page = live([CRANK])
    slider = page.data["parameters"][0]
    assert (slider["low"], slider["high"], slider["unit"]) == (0.8, 1.25, "m")
    before = side(FOUR_BAR, page["q"])
    assert page.change(slider["place"], share * slider["value"])
    page.look("closure")
    assert np.abs(page["closure"]).max() < 1e-15
    other = with_crank(share)
    assert np.abs(sl.Dynamics(other).closure_error(page["q"])).max() < 2e-15
    assert side(other, page["q"]) * before > 0.0
    again = page.change(slider["place"], slider["value"])
    assert again
    assert np.abs(page["q"] - CLOSED).max() < 0.05  # back, beside the way that it went


def test_a_length_that_cannot_be_assembled_stops_at_the_last_good_one():
    page = live({CRANK: (0.5, 10.0)})
    place = page.data["parameters"][0]["place"]
    assert not page.change(place, 9.0)
    reached = page["p"][place]
    assert 4.0 < reached < 6.0  # beyond it the other three bars are too short
    page.look("closure")
    assert np.abs(page["closure"]).max() < 1e-15
    assert np.isfinite(page["q"]).all()
    assert page.change(place, 1.0)
    page.run(20)


def test_a_length_that_changes_in_motion_keeps_velocities_consistent():
    page = live([CRANK])
    page.run(200).look()
    speed = page.velocity[0]
    assert page.change(page.data["parameters"][0]["place"], 1.1)
    page.look()
    other = with_crank(1.1)
    rates = sl.Dynamics(other).closure_jacobian(page["q"]) @ page.velocity
    assert np.abs(rates).max() < 1e-14
    assert 0.5 < page.velocity[0] / speed < 2.0
    run = sl.simulate(other, page["q"], page.velocity, duration=0.2)
    page.run(200).look()
    assert np.abs(page["q"] - run.q[-1]).max() < 1e-13
    assert page["closure"].max() < 1e-15


def test_a_length_changes_beside_stops():
    from dataclasses import replace

    joints = [replace(j, lower=(0.9,)) if j.name == "crank_hinge" else j for j in FOUR_BAR.joints]
    model = replace(FOUR_BAR, joints=tuple(joints))
    page = LivePage(LiveMotion.of(sl.Dynamics(model), CLOSED, parameters=[CRANK]).data())
    page.run(400)
    assert page.change(page.data["parameters"][0]["place"], 1.05)
    page.run(100).look()
    assert np.abs(page["closure"]).max() < 1e-14
    assert page["q"][0] > 0.9 - 1e-9


def test_a_mass_that_no_mechanism_has_is_refused_by_the_step():
    page = live(["crank.mass"])
    place = page.data["parameters"][0]["place"]
    good = page["p"]
    page["p"] = np.where(np.arange(len(good)) == place, -1.0, good)
    assert page.step() == 1
    page["p"] = good
    assert page.step() == 0


def test_the_stiffest_end_of_sliders_chooses_the_steps():
    stiff = {"crank_hinge.damping": (0.0, 1e5)}
    motion = LiveMotion.of(sl.Dynamics(FOUR_BAR), CLOSED, parameters=stiff)
    assert motion.motion.integrator == "implicit"
    assert any("steps are implicit" in x and "'crank_hinge'" in x for x in motion.not_live)
    page = LivePage(motion.data())
    place = page.data["parameters"][0]["place"]
    page["p"] = np.where(np.arange(len(page["p"])) == place, 1e5, page["p"])
    page.run(100).look()
    assert 0.0 < np.abs(page.velocity).max() < 1e-3  # it creeps
    page.reset()
    run = sl.simulate(FOUR_BAR, CLOSED, duration=0.05, integrator="implicit")
    page.run(50).look()
    assert np.abs(page["q"] - run.q[-1]).max() < 1e-13


def test_a_light_body_beside_a_damper_makes_steps_implicit():
    """Neither the damper nor the inertia alone is too stiff for explicit steps."""
    body = sl.Builder("rod").body("rod", 1.0, (0.0, 0.0, 0.0), (0.5, 0.5, 0.5))
    robot = sl.Dynamics(body.revolute("hinge", "world", "rod", "y").build())
    damper, light = {"hinge.damping": (0.0, 500.0)}, {"rod.inertia.yy": (0.05, 1.0)}
    for parameters, expected in ((damper, "rk4"), (light, "rk4"), (damper | light, "implicit")):
        assert LiveMotion.of(robot, parameters=parameters).motion.integrator == expected


def test_a_range_too_stiff_for_steps_that_a_user_chose_is_refused():
    stiff = {"crank_hinge.damping": (0.0, 1e5)}
    words = "live: at an end of the sliders' ranges the damping of joint 'crank_hinge'"
    with says(InputError, words):
        live(stiff, integrator="rk4")
    chosen = sl.simulate(FOUR_BAR, CLOSED, duration=0.01, integrator="rk4")
    with says(InputError, words):
        LiveMotion.of_run(chosen, parameters=stiff)
    free = sl.simulate(FOUR_BAR, CLOSED, duration=0.01)
    assert LiveMotion.of_run(free, parameters=stiff).motion.integrator == "implicit"
    assert LiveMotion.of_run(free, parameters=["crank_hinge.damping"]).motion.integrator == "rk4"


MOMENTS = ("xx", "xy", "xz", "yy", "yz", "zz")


def test_ranges_of_inertias_end_where_no_body_has_them():
    page = live([f"crank.inertia.{axes}" for axes in MOMENTS])
    known = FOUR_BAR.parameters()
    for slider in page.data["parameters"]:
        assert slider["low"] < slider["value"] < slider["high"]
        beyond = 0.01 * (slider["high"] - slider["low"])
        for end, way in ((slider["low"], -1.0), (slider["high"], 1.0)):
            FOUR_BAR.with_parameters(known.changed({slider["name"]: end}))
            if slider["name"] != "crank.inertia.xx":  # the others end where a body does, not the slider
                with pytest.raises(ModelError):
                    FOUR_BAR.with_parameters(known.changed({slider["name"]: end + way * beyond}))
    ends = {p["name"][-2:]: (p["low"], p["high"]) for p in page.data["parameters"]}
    xx, yy = known.changed({}).values[[known.index(f"crank.inertia.{a}") for a in ("xx", "yy")]]
    np.testing.assert_allclose(ends["yy"], (yy - xx, yy + xx), rtol=1e-5)  # no moment exceeds the sum of the others
    np.testing.assert_allclose(ends["yz"], (-0.5 * xx, 0.5 * xx), rtol=1e-3)


def test_an_inertia_that_cannot_change_alone_is_refused():
    b = sl.Builder("rod").body("rod", 1.0, (0.5, 0.0, 0.0), (0.0, 0.1, 0.1))
    model = b.revolute("hinge", "world", "rod", "y").build()
    with says(InputError, "parameter 'rod.inertia.yy' cannot change alone (body 'rod'"):
        LiveMotion.of(sl.Dynamics(model), parameters=["rod.inertia.yy"])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"crank.mass": (0.0, 2.0)}, "the range of 'crank.mass' begins at 0; a mass must be > 0. Try 0.01"),
        ({"crank.inertia.yy": (0.01, 0.2)}, "parameter 'crank.inertia.yy' cannot be 0.01: body 'crank'"),
        ("crank.mass", "parameters is 'crank.mass'; expected names"),
        (["crank.mas"], "there is no parameter 'crank.mas'"),
        ({"crank.mass": (-1.0, 2.0)}, "parameter 'crank.mass' cannot be -1"),
        ({"crank.mass": (3.0, 2.0)}, "the range of 'crank.mass' is from 3 to 2; the first must be less"),
        ({"crank.mass": 2.0}, "the range of 'crank.mass' is 2.0; expected (low, high)"),
        ({"crank.mass": (100.0, 200.0)}, "outside of its range from 100 to 200"),
    ],
)
def test_parameters_are_checked(parameters, words):
    with says(InputError, words):
        live(parameters)


def test_a_length_needs_projection():
    with says(InputError, "opens loops, which closures='project' alone closes again"):
        live([CRANK], closures="feedback")
