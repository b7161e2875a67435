"""Linear models and modes of mechanisms with flexible bodies: equilibria, names, closed loops against differences."""

import numpy as np
import pytest

import spanloop as sl
from spanloop.cli.main import main
from spanloop.errors import StateError

pytestmark = pytest.mark.slow

E, DENSITY = 7e10, 2700.0


def boom(gravity, **options):
    """A beam that is clamped at one end and carries a load at the other."""
    recipe = sl.flexible.beam(1.0, E=E, density=DENSITY, section=sl.flexible.rectangle(0.02, 0.01), **options)
    b = sl.Builder("boom", gravity=gravity).body("boom", flexible=recipe).fixed("wall", "world", "boom")
    return b.body("load", 0.3, inertia=(1e-3, 1e-3, 1e-3)).fixed("weld", "boom.tip", "load").build()


@pytest.mark.slow
def test_modes_with_gravity_are_about_the_deflected_shape():
    model = boom((0.0, 0.0, -9.81), modes={"z": 1})
    robot = sl.Dynamics(model)
    with pytest.raises(
        StateError, match=r"most at 'boom\.modes\[z1\]'.*robot\.static_deflection\(q\) has that of flex"
    ):
        robot.modes(np.zeros(model.nq))
    found = robot.modes(robot.static_deflection(np.zeros(model.nq)))
    free = sl.Dynamics(boom((0.0, 0.0, 0.0), modes={"z": 1})).modes(np.zeros(model.nq))
    assert found.dofs == ("boom.modes[z1]", "boom.modes[z2]", "boom.modes[z3]")
    assert found.is_stable
    assert found.residual < 1e-6
    np.testing.assert_allclose(found.frequencies, free.frequencies, rtol=0.02)  # slopes of 0.1 rad change little


@pytest.mark.slow
def test_the_shape_of_the_first_mode_names_the_modal_coordinate():
    found = sl.Dynamics(boom((0.0, 0.0, 0.0), modes={"y": 1, "z": 0})).modes(np.zeros(5))
    assert found.dofs == tuple(f"boom.modes[{x}]" for x in ("y1", "y2", "y3", "z1", "z2"))
    assert "boom.modes[z1] 1" in str(found)


def test_one_mode_has_its_name_too():
    recipe = sl.flexible.beam(1.0, E=E, density=DENSITY, area=2e-4, I=1e-9, modes={"y": 1}, basis="cantilever")
    b = sl.Builder("one", gravity=(0.0, 0.0, 0.0)).body("boom", flexible=recipe).revolute("hinge", "world", "boom", "z")
    found = sl.Dynamics(b.build()).linearize(np.zeros(2), inputs=["hinge"], outputs=["boom.modes[y1]"])
    assert found.states == ("hinge", "boom.modes[y1]", "hinge.v", "boom.modes[y1].v")
    np.testing.assert_array_equal(found.C, [[0.0, 1.0, 0.0, 0.0]])


@pytest.mark.slow
def test_the_command_takes_the_deflected_shape(tmp_path, capsys):
    file = tmp_path / "boom.toml"
    boom((0.0, 0.0, -9.81), modes={"z": 0}).save(file)
    assert main(["modes", str(file)]) == 0
    assert "boom.modes[z1] 1" in capsys.readouterr().out


# ---- closed loops: the linear model against differences of forward dynamics between closed states


def four_bar():
    """A parallelogram of two flexible bars and a rigid coupler between, in the plane of x and y."""
    recipe = sl.flexible.beam(0.5, E=E, density=DENSITY, section=sl.flexible.rectangle(0.02, 0.02), modes={"y": 0})
    b = sl.Builder("four_bar", gravity=(0.0, -9.81, 0.0))
    for name, x in (("left", 0.0), ("right", 0.7)):
        b.body(name, flexible=recipe).revolute(
            f"{name}_hinge", "world", name, "z", position=(x, 0.0, 0.0), stiffness=20.0
        )
    b.body("coupler", 0.4, center=(0.35, 0.0, 0.0), inertia=(1e-3, 2e-2, 2e-2))
    b.revolute("top", "left.tip", "coupler", "z").frame("end", "coupler", position=(0.7, 0.0, 0.0))
    return sl.Dynamics(b.loop("end", "right.tip", "revolute", name="closing").build())


@pytest.mark.slow
def test_derivatives_along_closed_motions_are_differences_between_closed_states():
    robot = four_bar()
    model = robot.model
    q = robot.assemble({"left_hinge": 1.1, "right_hinge": 1.1, "top": -1.1})
    tau = np.zeros(model.nv)
    joints = ("left_hinge", "left.modes", "right.modes")
    chosen = robot.derivatives(q, tau, tau, dofs=joints).dofs
    v = robot.complete_velocity(q, dict(zip(chosen.names, np.linspace(0.2, -0.1, len(chosen)), strict=True)))
    found = robot.derivatives(q, v, tau, dofs=chosen)
    assert len(chosen) == model.nv - 2
    step = 1e-5
    for k, name in enumerate(chosen.names):
        ends = []
        for sign in (1.0, -1.0):
            moved = robot.assemble(q + sign * step * found.dq[:, k], fixed=joints)
            rates = robot.complete_velocity(moved, {n: v[d] for n, d in zip(chosen.names, chosen.dofs, strict=True)})
            ends.append(robot.forward_dynamics(moved, rates, tau))
        wanted = (ends[0] - ends[1]) / (2.0 * step)
        np.testing.assert_allclose(found.da_dq[:, k], wanted, rtol=0.0, atol=1e-5 * np.abs(wanted).max(), err_msg=name)
