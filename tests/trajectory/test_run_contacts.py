"""Contacts of a run: gaps, forces, slip and states by name, and what is derived from the forces."""

from __future__ import annotations

import numpy as np
import pytest
from sentences import says
from touching_motions import EDGES, FRICTION, MASS, G, H, bouncing_ball, sliding_box

import spanloop as sl
from spanloop.errors import InputError

WEIGHT = MASS * G


def near(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, np.broadcast_to(expected, np.shape(found)), rtol=0, atol=tolerance)


def test_a_box_that_slides_presses_with_its_weight_and_rubs_against_its_motion():
    run = sliding_box()
    crate = run.contacts["touch"]
    near(crate.gap, 0.0)
    near(crate.force[1:], [-FRICTION * WEIGHT, 0.0, WEIGHT], 1e-11)
    near(crate.normal_force[1:], WEIGHT, 1e-11)
    near(crate.friction_force[1:], [-FRICTION * WEIGHT, 0.0, 0.0], 1e-11)
    near(crate.slip[1:, 0], run.v[1:, 3])
    near(crate.normal, [0.0, 0.0, 1.0])
    assert set(crate.state[1:]) == {"slips"}


def test_the_centre_of_pressure_of_a_box_that_slides_lies_ahead_of_its_centre():
    run = sliding_box()
    crate = run.contacts["touch"]
    ahead = FRICTION * 0.5 * EDGES[2]
    near(crate.point[1:] - run.q[1:, 4:], [ahead, 0.0, -0.5 * EDGES[2]])
    near(crate.torque[1:], 0.0, 1e-11)


def test_points_have_names_and_numbers():
    run = sliding_box()
    assert len(run.contacts["touch"]) == 8
    for k, point in enumerate(run.contacts["touch"]):
        assert point.name == f"touch.{k}"
        near(point.force, run.contacts[f"touch.{k}"].force)
        low = point.gap[-1] < 0.1
        assert point.state[-1] == ("slips" if low else "open")
    total = sum(point.force[1:] for point in run.contacts["touch"])
    near(total, run.contacts["touch"].force[1:])


def test_accelerations_of_a_box_that_slides_are_those_of_friction():
    near(sliding_box().a[1:], [0.0, 0.0, 0.0, -FRICTION * G, 0.0, 0.0], 1e-10)


def test_a_box_that_slides_needs_no_force_from_its_free_joint():
    near(sliding_box().reactions()["root"][1:], 0.0, 1e-10)


def test_forces_that_are_not_known_make_derived_quantities_nan_and_not_wrong():
    run = sliding_box()
    assert np.isnan(run.contacts["touch"].force[0]).all() or np.allclose(run.contacts["touch"].force[0, 2], WEIGHT)
    assert np.isnan(run.a[0]).all() or np.allclose(run.a[0, 5], 0.0)


def test_a_ball_in_the_air_has_no_force_at_the_start():
    run = bouncing_ball()
    near(run.contacts["touch"].force[0], 0.0)
    near(run.a[0], [0.0, 0.0, 0.0, 0.0, 0.0, -G])


def test_a_ball_that_bounces_is_open_but_where_it_rests():
    ball = bouncing_ball().contacts["touch"]
    assert set(ball.state) == {"open"}
    rests = bouncing_ball(0.0).contacts["touch"]
    assert rests.state[-1] == "sticks"
    assert rests.state[0] == "open"
    near(rests.normal_force[-1], WEIGHT, 1e-9)


@pytest.mark.slow
def test_samples_keep_their_contacts():
    run = sliding_box()
    part = run[100:200]
    near(part.contacts["touch"].force, run.contacts["touch"].force[100:200])
    at = run.at(0.0105 + H * np.arange(5))
    near(at.contacts["touch"].force[:, 2], WEIGHT, 1e-9)
    near(at.v[:, 3], 2.0 - FRICTION * G * at.times, 1e-9)
    near(at.q[:, 4], 2.0 * at.times - 0.5 * FRICTION * G * at.times**2, 1e-9)


@pytest.mark.parametrize("extension", [".npz", ".nc"])
def test_files_keep_contacts_bit_for_bit(extension, tmp_path):
    run = sliding_box()
    run.save(tmp_path / f"run{extension}")
    again = sl.load_run(tmp_path / f"run{extension}")
    for name in ("contact_forces", "contact_checks"):
        one, other = (getattr(r.segments[0], name) for r in (run, again))
        assert one.tobytes() == other.tobytes()
    assert again.model.contacts == run.model.contacts


def test_a_table_of_numbers_has_columns_of_contacts(tmp_path):
    sliding_box().save(tmp_path / "run.csv")
    lines = [x for x in (tmp_path / "run.csv").read_text().splitlines() if not x.startswith("#")]
    names, last = lines[0].split(","), lines[-1].split(",")
    assert "touch.gap [m]" in names
    assert "touch.slip.x [m/s]" in names
    assert float(last[names.index("touch.force.z [N]")]) == pytest.approx(WEIGHT)


@pytest.mark.slow
def test_the_printout_lists_contacts():
    text = str(sliding_box().contacts)
    assert text.splitlines()[0].split()[:3] == ["contact", "points", "open"]
    assert "touch" in text
    assert "19.62 N" in text
    assert "at the end touch pushes" in str(sliding_box())
    assert str(sl.simulate(sl.zoo.pendulum(), [0.1], duration=0.01).contacts) == "no contacts"


def test_a_wrong_name_is_answered_with_the_nearest():
    with says(InputError, "model 'touching' has no contact 'tuch'; did you mean 'touch'?"):
        sliding_box().contacts["tuch"]
    with says(InputError, "no joint, frame, body, loop or coupling 'touch'; contacts are in run.contacts['touch']"):
        sliding_box()["touch"]
    with says(InputError, "contact 'touch' has 8 points; there is no point 8"):
        sliding_box().contacts["touch"][8]
