"""Figures: what is drawn is what was asked for, with names and units, and pyplot never hears of it."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from motions import batch_of, flying_run, four_bar_run
from sentences import says

import spanloop as sl
from spanloop.algorithms.catalog import FUNCTIONS
from spanloop.errors import InputError, UnsupportedError, printable
from spanloop.trajectory.files import labels

matplotlib = pytest.importorskip("matplotlib", reason="plots need matplotlib")
from matplotlib.figure import Figure  # noqa: E402

from spanloop.view import plots  # noqa: E402
from spanloop.view.plots.canvas import figure_of, line_styles  # noqa: E402
from spanloop.view.plots.operation_counts import total  # noqa: E402
from spanloop.view.plots.series import spread  # noqa: E402
from spanloop.view.plots.topology_diagram import arcs_of  # noqa: E402


@pytest.fixture(autouse=True)
def _windowless():
    with matplotlib.rc_context({"backend": "agg"}):
        yield
    if "matplotlib.pyplot" in sys.modules:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == [], "a figure was left with pyplot"


def lines(ax):
    """The labelled lines of axes by name."""
    return {line.get_label(): line for line in ax.get_lines() if not line.get_label().startswith("_")}


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_coordinates_are_drawn_as_they_are_with_their_joints_names():
    run = four_bar_run()
    ax = run.plot("q")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time [s]", "angle [rad]")
    assert legend(ax) == [j.name for j in run.model.joints]
    for k, joint in enumerate(run.model.joints):
        np.testing.assert_array_equal(lines(ax)[joint.name].get_xdata(), run.times)
        np.testing.assert_array_equal(lines(ax)[joint.name].get_ydata(), run.q[:, k])


def test_units_have_panels_of_their_own():
    run = flying_run()
    axes = run.plot("q")
    assert [ax.get_ylabel() for ax in axes] == ["quaternion [1]", "displacement [m]", "angle [rad]"]
    drawn = {name: line for ax in axes for name, line in lines(ax).items()}
    assert list(drawn) == [labels.joined(*name) for name in labels.coordinates(run.model)]
    np.testing.assert_array_equal(drawn["root.pz"].get_ydata(), run["root"].q[:, 6])


@pytest.mark.parametrize(
    ("what", "label", "values"),
    [
        ("v", "angular velocity [rad/s]", lambda run: run.v),
        ("a", "angular acceleration [rad/s²]", lambda run: run.a),
    ],
)
def test_rates_are_drawn_with_their_units(what, label, values):
    run = four_bar_run()
    ax = run.plot(what)
    assert ax.get_ylabel() == label
    np.testing.assert_array_equal([line.get_ydata() for line in lines(ax).values()], values(run).T)


def test_torques_leave_out_passive_joints_unless_named():
    run = four_bar_run()
    actuated = [j.name for j in run.model.joints if j.actuated]
    ax = run.plot("tau")
    assert (list(lines(ax)), ax.get_ylabel()) == (actuated, "torque [N m]")
    assert list(lines(run.plot("tau", "rocker_hinge"))) == ["rocker_hinge"]


def test_a_driven_joints_entry_is_an_acceleration():
    model = sl.zoo.four_bar().drive("crank_hinge")
    run = sl.simulate(model, sl.zoo.four_bar_start(), duration=0.01)
    assert run.plot("tau", "crank_hinge").get_ylabel() == "prescribed acceleration [rad/s²]"


def test_reactions_are_norms_of_forces_and_torques():
    run = four_bar_run()
    force, torque = run.plot("reactions")
    assert (force.get_ylabel(), torque.get_ylabel()) == ("force [N]", "torque [N m]")
    assert len(lines(force)) == len(lines(torque)) == len(run.model.joints) + len(run.model.loops)
    six = run["crank_hinge"].force
    drawn = [ax.get_lines()[0] for ax in (force, torque)]
    np.testing.assert_array_equal(drawn[0].get_ydata(), np.linalg.norm(six[:, 3:], axis=1))
    np.testing.assert_array_equal(drawn[1].get_ydata(), np.linalg.norm(six[:, :3], axis=1))
    along, _ = run.plot("reactions", "crank_hinge", component="z")
    assert along.get_ylabel() == "force, along z [N]"
    np.testing.assert_array_equal(along.get_lines()[0].get_ydata(), six[:, 5])


def test_forces_that_are_not_unique_are_marked():
    run = four_bar_run()
    stars = {name for name in lines(run.plot("reactions")[0]) if name.endswith(" (not unique)")}
    assert stars == {f"{name} (not unique)" for name, alone in run.reactions().unique.items() if not alone}
    assert stars  # a planar loop of hinges in space has redundant rows


def test_energy_is_drawn_with_its_sum():
    run = four_bar_run()
    ax = run.plot("energy")
    assert ax.get_ylabel() == "energy [J]"
    drawn = {name: line.get_ydata() for name, line in lines(ax).items()}
    np.testing.assert_array_equal(drawn["kinetic"], run.energy[:, 0])
    np.testing.assert_array_equal(drawn["total"], run.energy.sum(axis=1))


def test_closure_errors_are_drawn_loop_by_loop_on_powers_of_ten():
    run = four_bar_run()
    ax = run.plot("closure_residual")
    assert (ax.get_yscale(), ax.get_ylabel()) == ("log", "closure error [m or rad]")
    np.testing.assert_array_equal(lines(ax)["closing"].get_ydata(), np.abs(run["closing"].error).max(axis=1))
    assert "bound of the audit" in lines(ax)


def test_a_phase_portrait_is_velocity_over_coordinate():
    run = four_bar_run()
    ax = run.plot("phase", "crank_hinge")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("angle [rad]", "velocity [rad/s]")
    line = lines(ax)["crank_hinge"]
    np.testing.assert_array_equal(line.get_xdata(), run["crank_hinge"].q)
    np.testing.assert_array_equal(line.get_ydata(), run["crank_hinge"].v)


def test_a_batch_is_drawn_as_median_and_band():
    one = four_bar_run()
    run = batch_of(one, (len(one), len(one) - 50, len(one)))
    ax = run.plot("q")
    assert ax.get_legend().get_title().get_text() == "median and 5–95 %\nof 3 runs"
    assert (len(lines(ax)), len(ax.collections)) == (3, 3)
    np.testing.assert_allclose(lines(ax)["crank_hinge"].get_ydata(), one["crank_hinge"].q)


def test_the_band_is_of_the_runs_that_still_go_on():
    values = np.arange(101.0)[:, None] * np.array([1.0, 2.0, 0.0])
    values[:, 2] = np.nan
    values[50:, 1] = np.nan
    low, middle, high = spread(values)
    np.testing.assert_allclose((low[0], middle[0], high[0]), (5.0, 50.0, 95.0))
    np.testing.assert_allclose(middle[1], 49.0)
    assert np.isnan([low[2], middle[2], high[2]]).all()


def test_lines_are_distinct_however_many_there_are():
    for count in (1, 7, 30, 64):
        assert len({(str(p["color"]), str(p["linestyle"])) for p in line_styles(count)}) == count


@pytest.mark.slow
def test_thirty_joints_have_a_legend_inside_the_picture():
    run = sl.simulate(sl.zoo.chain(30), duration=0.01)
    ax = run.plot("q")
    assert len(legend(ax)) == 30
    figure = figure_of(ax)
    figure.draw_without_rendering()
    seen = ax.get_legend().get_window_extent()
    assert seen.y0 >= 0.0
    assert seen.x1 <= figure.bbox.x1


def test_given_axes_are_used_and_returned():
    ax = Figure().subplots()
    assert four_bar_run().plot("q", ax=ax) is ax
    assert len(lines(ax)) == 3
    with says(InputError, "plot: ax holds 1 axis; this figure has 3 panels, one for each unit"):
        flying_run().plot("q", ax=ax)
    with says(InputError, "plot: ax is a int; expected axes of matplotlib"):
        four_bar_run().plot("q", ax=3)


def test_topology_names_every_body_joint_and_loop():
    model = sl.zoo.arms_with_object(2)
    ax = plots.topology(model)
    shown = " ".join(text.get_text() for text in ax.texts)
    for name in (*(b.name for b in model.bodies), *(j.name for j in model.joints), *(x.name for x in model.loops)):
        assert name in shown
    assert ax.get_title(loc="left") == "arms_with_object2: 13 joints with 18 DoF, 2 loops"


def test_arcs_in_one_lane_never_overlap():
    model = sl.zoo.stewart()
    arcs = arcs_of(model)
    assert [a.name for a in arcs] == [x.name for x in model.loops]
    for i, a in enumerate(arcs):
        for b in arcs[:i]:
            assert a.lane != b.lane or a.bottom < b.top or b.bottom < a.top


@pytest.mark.slow
def test_sparsity_shows_the_entries_that_there_are():
    robot = sl.Dynamics(sl.zoo.arms_with_object(2))
    ax = plots.sparsity(robot)
    M = np.max([np.abs(robot.mass_matrix(robot.model.random_state(k)[0])) for k in range(3)], axis=0)
    shown = ~np.ma.getmaskarray(np.ma.masked_invalid(ax.collections[0].get_array())).reshape(M.shape)
    np.testing.assert_array_equal(shown, 1e-10 * M.max() < M)
    assert not shown[:6, 6:].any()  # the object hangs on no arm
    assert [t.get_text() for t in ax.get_xticklabels()][6] == "arm1_turn"
    assert plots.sparsity(robot, "closure_admittance").get_title(loc="left").startswith("closure admittance: ")
    with says(InputError, "it has no loops"):
        plots.sparsity(sl.zoo.chain(2), "closure_jacobian")


@pytest.mark.slow
def test_counts_are_those_of_the_kernels():
    model = sl.zoo.chain(3)
    ax = plots.counts(model)
    methods = [t.get_text() for t in ax.get_yticklabels()]
    assert methods == list(FUNCTIONS["forward_dynamics"].methods)
    ends = [max(b.get_x() + b.get_width() for bars in ax.containers for b in [bars[k]]) for k in range(len(methods))]
    kernels = [sl.compile(model, "forward_dynamics", method=m).operations for m in methods]
    np.testing.assert_allclose(ends, [total(x) for x in kernels])


@pytest.mark.slow
def test_scaling_draws_a_line_for_each_method():
    ax = plots.scaling(sl.zoo.chain, (2, 4))
    drawn = lines(ax)
    assert list(drawn) == [*FUNCTIONS["forward_dynamics"].methods, "proportional to n"]
    expected = [total(sl.compile(sl.zoo.chain(n), "forward_dynamics").operations) for n in (2, 4)]
    np.testing.assert_array_equal(drawn["articulated_body"].get_ydata(), expected)


def test_an_operator_is_drawn_as_its_matrix():
    ops = sl.operators(sl.zoo.tree(5, 2, seed=1), np.zeros(5))
    ax = plots.operator_sparsity(ops.phi)
    mesh = ax.collections[0].get_array()
    expected = np.abs(ops.phi.matrix()) > 1e-10 * np.abs(ops.phi.matrix()).max()
    assert np.array_equal(~np.ma.getmaskarray(np.ma.masked_invalid(mesh)).reshape(expected.shape), expected)
    assert "phi" in ax.get_title(loc="left")


def test_a_wrong_name_is_answered_with_the_nearest_one():
    run = four_bar_run()
    with says(InputError, "plot: there is no figure 'energie'; did you mean 'energy'?"):
        run.plot("energie")
    with says(InputError, "model 'four_bar' has no joint 'crank'; did you mean 'crank_hinge'?"):
        run.plot("q", "crank")
    with says(InputError, "plot: there is no joint or loop 'closin'; did you mean 'closing'?"):
        run.plot("reactions", "closin")
    with says(InputError, "plot: energy shows the whole mechanism and takes no names"):
        run.plot("energy", "crank_hinge")
    with says(InputError, "plot: joint 'root' has 6 DoF; a phase portrait needs joints with one"):
        flying_run().plot("phase", "root")
    with says(InputError, "has no loops, so there is no closure error"):
        flying_run().plot("closure_residual")


def test_without_matplotlib_the_error_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with says(UnsupportedError, "plots need matplotlib, which is not installed; try: pip install matplotlib"):
        four_bar_run().plot("q")


@pytest.mark.parametrize("name", ["$\\frac$", "_hidden", "$x$", "tab\x1b[2J"])
def test_names_are_neither_mathematics_nor_hidden(name, tmp_path):
    b = sl.Builder(name).body(name, 1.0, center=(0, 0, 1), inertia=(0.1, 0.1, 0.1)).revolute(name, "world", name, "y")
    run = sl.simulate(b.build(), [0.3], duration=0.01)
    for axes in (run.plot("q"), run.plot("phase", name), plots.topology(run.model), plots.sparsity(run.model)):
        axes.figure.savefig(tmp_path / "x.png")
    (shown,) = [t.get_text() for t in run.plot("q").get_legend().get_texts()]
    assert shown.strip().replace(r"\$", "$") == printable(name)


def test_a_workspace_is_drawn_in_its_plane_or_in_space_with_its_points():
    flat = sl.Dynamics(sl.zoo.pendulum(2)).workspace("tip", 50)
    ax = plots.workspace(flat)
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.name) == ("x [m]", "z [m]", "rectilinear")
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), flat.points[:, [0, 2]])
    assert ax.get_title() == "tip: 50 of 50 states"
    space = plots.workspace(sl.Dynamics(sl.zoo.puma()).workspace("tool", 50), color=None)
    assert (space.name, space.get_zlabel()) == ("3d", "z [m]")
    with says(InputError, "workspace: color is 'red'; expected 'manipulability' or None"):
        plots.workspace(flat, color="red")
    with says(InputError, "workspace: a Dynamics is given; expected what robot.workspace(frame) returns"):
        plots.workspace(sl.Dynamics(sl.zoo.puma()))
