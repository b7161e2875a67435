"""Every mechanism of the zoo could exist, and is the same each time."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from frames import body_pose
from sentences import says

from spanloop import zoo
from spanloop.errors import InputError
from spanloop.joints import KINDS

MODELS = {
    "pendulum": lambda: zoo.pendulum(),
    "pendulum 3": lambda: zoo.pendulum(3),
    "puma": zoo.puma,
    "stanford": zoo.stanford,
    "tree": lambda: zoo.tree(9, branching=3),
    "star": lambda: zoo.star(5),
    "quadruped": zoo.quadruped,
    **{f"chain {kind}": lambda kind=kind: zoo.chain(4, kind) for kind in KINDS},
    **{f"chain {kind} seed": lambda kind=kind: zoo.chain(4, kind, seed=1) for kind in KINDS},
    **{f"random {seed}": lambda seed=seed: zoo.random_model(seed) for seed in range(50)},
}


@pytest.mark.parametrize("name", MODELS)
def test_inertias_are_possible(name):
    """Mass > 0; no principal moment is more than the sum of the others, to rounding of the data."""
    for body in MODELS[name]().bodies:
        a, b, c = np.linalg.eigvalsh(np.array(body.inertia.matrix()))
        assert body.inertia.mass > 0.0
        assert a >= 0.0
        assert a + b >= c * (1.0 - 1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_model_comes_each_time(name):
    assert MODELS[name]() == MODELS[name]()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_can_be_printed(name):
    text = str(MODELS[name]())
    assert "nq, nv" in text
    assert not any(line.endswith(" ") for line in text.splitlines())


def test_names_are_the_functions():
    for name in zoo.names():
        assert inspect.isfunction(getattr(zoo, name))
    assert "puma" in zoo.names()


def test_random_models_have_every_kind_and_several_children_of_the_world():
    models = [zoo.random_model(seed) for seed in range(100)]
    assert {j.kind.name for m in models for j in m.joints} == set(KINDS)
    assert any(sum(j.parent == "world" for j in m.joints) > 1 for m in models)
    assert any(len(set(m.parents)) < m.n_bodies for m in models)
    assert any(any(j.stiffness) for m in models for j in m.joints)
    assert all(m.nv > 0 for m in models)


def test_random_model_arguments_are_kept():
    model = zoo.random_model(4, n_bodies=7, kinds=["revolute", "prismatic"], free=True)
    assert model.n_bodies == 7
    assert model.joints[0].kind.name == "free"
    assert {j.kind.name for j in model.joints[1:]} <= {"revolute", "prismatic"}
    assert all(j.kind.name != "free" for s in range(30) for j in zoo.random_model(s, free=False).joints)
    with says(InputError, "no kind of joint is called 'revolut'; did you mean 'revolute'?"):
        zoo.random_model(0, kinds=["revolut"])


@pytest.mark.parametrize("seed", range(30))
def test_a_universal_joint_of_a_random_model_has_two_directions(seed):
    for j in zoo.random_model(seed, kinds=["universal"]).joints:
        assert abs(np.dot(j.kind.axis, j.kind.second_axis)) < 0.86


def test_an_empty_family_is_refused():
    with says(InputError, "zoo: chain: 0 is asked for; expected at least 1"):
        zoo.chain(0)


def test_rods_of_a_pendulum_hang_in_line():
    tip = body_pose(zoo.pendulum(3, length=0.5), np.zeros(3), "tip")
    np.testing.assert_allclose(tip[:3, 3], (0.0, 0.0, -1.5), atol=1e-15)


def test_feet_of_the_quadruped_stand_in_a_rectangle():
    model = zoo.quadruped()
    feet = [body_pose(model, model.neutral(), f"{leg}_foot")[:3, 3] for leg in ("fl", "fr", "hl", "hr")]
    np.testing.assert_allclose([f[2] for f in feet], -0.44, atol=1e-15)
    np.testing.assert_allclose(np.sum(feet, axis=0)[:2], 0.0, atol=1e-15)


def test_every_mass_centre_of_the_puma_is_on_its_link():
    """The reading of Saha's Table 3 that the table itself confirms."""
    model = zoo.puma()
    # bounds of a_i and b_i between the two joints, plus 0.2 m of counterweight
    for body, reach in zip(model.bodies, (0.06, 0.46, 0.2, 0.44, 0.01, 0.05), strict=True):
        assert np.linalg.norm(body.inertia.center) < reach


def test_the_puma_reaches_as_its_table_says():
    """At q = 0 the tool is at a₂ + a₃ along x, b₂ along y, −b₄ + b₆ along z (by hand from the table)."""
    tool = body_pose(zoo.puma(), np.zeros(6), "tool")
    np.testing.assert_allclose(tool[:3, 3], (0.452, 0.149, -0.432 + 0.05), atol=1e-15)


def test_stanford_starts_from_the_text_or_from_the_table():
    assert zoo.stanford_start()[1] == np.pi / 2
    assert not zoo.stanford_start("table").any()
    with says(InputError, "there is no start 'tabel'; did you mean 'table'?"):
        zoo.stanford_start("tabel")


def test_a_name_that_the_zoo_lacks_gets_the_nearest():
    with pytest.raises(AttributeError, match="the zoo has no 'pumma'; did you mean 'puma'"):
        zoo.pumma  # noqa: B018
