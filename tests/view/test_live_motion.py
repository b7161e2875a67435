"""Live motions, run as a page runs them: equal to the runs of sl.simulate, and what the page changes acts."""

import copy
import json
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from live_page import LivePage
from sentences import says

import spanloop as sl
from spanloop.errors import InputError, SpanloopWarning, UnsupportedError
from spanloop.kernels import on_scalars
from spanloop.view.page.live.live_motion import LiveMotion
from spanloop.view.scene import poses

FOUR_BAR, CLOSED = sl.zoo.four_bar(), sl.zoo.four_bar_start()
STEPS = 60


def page_of(run, **options) -> LivePage:
    return LivePage(LiveMotion.of_run(run, **options).data())


def assert_equal(run, page: LivePage, tolerance: float = 2e-14) -> None:
    page.run(len(run) - 1).look()
    assert np.abs(page["q"] - run.q[-1]).max() < tolerance
    assert np.abs(page.velocity - run.v[-1]).max() < 10.0 * tolerance


# ---- equal to the run


class Integral(sl.control.Controller):
    inputs, memory = 1, 1

    def torques(self, t, q, v, u, z):
        return 5.0 * (u[0] - q) + 9.0 * z - v

    def update(self, t, h, q, v, u, z):
        return z + h * (u[0] - q)


def four_bar(**options):
    return sl.simulate(FOUR_BAR, CLOSED, duration=1e-3 * STEPS, **options)


def driven() -> sl.Model:
    joints = [replace(j, driven=j.name == "crank_hinge") for j in FOUR_BAR.joints]
    return replace(FOUR_BAR, joints=tuple(joints))


TABLE = 3.0 * np.sin(np.arange(3.0 * STEPS).reshape(STEPS, 3) / 30.0)

RUNS = {
    "nothing acts": four_bar,
    "memory and a table of inputs": lambda: sl.simulate(
        sl.zoo.pendulum(), [1.0], duration=1e-3 * STEPS, controller=Integral(), inputs=TABLE[:, :1]
    ),
    "torques of every step": lambda: four_bar(tau=TABLE),
    "forces": lambda: four_bar(forces=lambda t, q, v: {"coupler": [0.0, 0.0, 0.0, 50.0 * t, 1.0, 2.0]}),
    "forces read torques": lambda: four_bar(tau=TABLE, forces=lambda t, q, v, u: {"coupler": [0, 0, 0, u[0], 0, 0]}),
    "forces read inputs": lambda: four_bar(
        inputs=TABLE[:, :1], forces=lambda t, q, v, u: {"coupler": [0, 0, 0, 9.0 * u[0], 0, 0]}
    ),
    "forces read as many inputs as there are degrees of freedom": lambda: four_bar(
        inputs=TABLE, forces=lambda t, q, v, u: {"coupler": [0, 0, 0, 9.0 * u[0], 0, 0]}
    ),
    "forces read torques that nobody gives": lambda: four_bar(
        forces=lambda t, q, v, u: {"coupler": [0, 0, 0, 5.0 + u[2], 0, 0]}
    ),
    "forces along loops": lambda: four_bar(closures=sl.Closures(loop_forces=lambda t, q, v: {"closing": [t]})),
    "a later start": lambda: four_bar(start=2.0, controller=lambda t, q, v: {"crank_hinge": t}),
    "other parameters": lambda: four_bar(parameters=FOUR_BAR.parameters().changed({"crank.mass": 9.0})),
    "a driven joint": lambda: sl.simulate(driven(), CLOSED, duration=1e-3 * STEPS, tau={"crank_hinge": 2.0}),
    "implicit": lambda: four_bar(integrator="implicit"),
    "no projection": lambda: four_bar(closures="feedback"),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_live_motion_is_the_run(name):
    run = RUNS[name]()
    page = page_of(run)
    assert_equal(run, page)
    if page.data["torques"]:
        np.testing.assert_allclose(page[page.data["torques"]], run.tau[-1], atol=1e-12)


@pytest.mark.slow
def test_the_demo_moves_live():
    from spanloop.simulation.control.periodic_motion import lead

    robot = sl.Dynamics(sl.zoo.three_pumas())
    led = lead(robot, sl.zoo.three_pumas_start(), sl.zoo.three_pumas_path, 6.0)
    run = sl.simulate(robot, led.q, led.v, duration=0.1, controller=led.control)
    page = page_of(run)
    assert_equal(run, page, 1e-13)
    assert len(page.data["wasm"]) < 115_000  # the page is to have 200 kB more than the dead one at most
    loops = page.data["kernels"]["loop_forces"]["loops"]
    known = run.reactions()
    for loop in loops:
        six = known[loop["name"]][-1]
        found = page["loop_forces"][loop["first"] : loop["first"] + 2]
        np.testing.assert_allclose(found, [np.linalg.norm(six[3:]), np.linalg.norm(six[:3])], rtol=1e-9)
    assert len(loops) == 3


@pytest.mark.slow
def test_kernels_are_those_of_the_mechanism():
    run = four_bar(tau=TABLE)
    page = page_of(run)
    page.run(STEPS).look()
    robot, q, v = sl.Dynamics(FOUR_BAR), page["q"], page.velocity
    np.testing.assert_allclose(page["energy"], robot.energy(q, v), rtol=1e-13)
    np.testing.assert_allclose(page["closure"], robot.closure_error(q), atol=1e-15)
    at = poses(robot, q)
    np.testing.assert_allclose(page["poses"].reshape(-1, 12)[:, :9], at[:, :3, :3].reshape(-1, 9), atol=1e-15)
    np.testing.assert_allclose(page["poses"].reshape(-1, 12)[:, 9:], at[:, :3, 3], atol=1e-15)
    force, torque = page["loop_forces"]
    six = run.reactions()["closing"][-1]
    assert abs(force - np.linalg.norm(six[3:])) < 1e-9 * force
    assert abs(torque - np.linalg.norm(six[:3])) < 1e-9


@pytest.mark.slow
def test_segments_of_flexible_bodies_are_posed_and_grabbed():
    from flexible_mechanisms import tree

    model = tree()
    run = sl.simulate(model, duration=0.02)
    page = page_of(run)
    assert_equal(run, page)
    at = poses(sl.Dynamics(model), page["q"])
    assert len(at) == page.data["kernels"]["poses"]["bodies"] == len(page.data["grab"]) > model.n_bodies + 1
    known = np.concatenate([at[:, :3, :3].reshape(-1, 9), at[:, :3, 3]], axis=1)
    np.testing.assert_allclose(page["poses"].reshape(-1, 12), known, atol=1e-14)
    nodes = {model.body_number[j.child] for j in model.joints if j.kind.rides}
    assert {x["about"] for x in page.data["grab"][model.n_bodies + 1 :]} <= nodes


# ---- what the page changes


@pytest.mark.slow
def test_a_grabbed_body_is_pulled_by_the_force():
    page = page_of(four_bar())
    grab = page.data["grab"][FOUR_BAR.body_number["coupler"]]
    six = [0.0, 0.2, 0.0, 5.0, 0.0, -3.0]
    page.set_input(grab["place"], six)
    assert_equal(four_bar(forces={"coupler": six}), page)
    assert grab["about"] == FOUR_BAR.body_number["coupler"]
    assert page.data["grab"][0] == {"why": "the world does not move"}


def test_bodies_that_are_fixed_in_the_world_cannot_be_grabbed_and_welded_ones_share_a_force():
    made = sl.Builder("stand").body("foot", 1.0, (0, 0, 0), (1, 1, 1)).body("arm", 1.0, (0.5, 0, 0), (1, 1, 1))
    made = made.body("hand", 0.5, (0, 0, 0), (1, 1, 1)).fixed("bolts", "world", "foot")
    made = made.revolute("hinge", "foot", "arm", "y").fixed("wrist", "arm", "hand", (1.0, 0.0, 0.0))
    data = LiveMotion.of(sl.Dynamics(made.build())).data()
    names = [b.name for b in made.build().bodies]
    grab = dict(zip(names, data["grab"][1:], strict=True))
    assert grab["foot"] == {"why": "'foot' is fixed in the world"}
    assert grab["hand"] == grab["arm"]
    assert grab["arm"]["about"] == 1 + names.index("arm")


def test_sliders_of_torques_and_damping_act():
    page = page_of(four_bar())
    slider = page.data["inputs"]["torques"][0]
    page.set_input(slider["place"], 2.5)
    page.set_input(page.data["inputs"]["damping"]["place"], 4.0)
    momentum = on_scalars(FOUR_BAR, "mass_matrix")

    def slowed(t, q, v):
        torques = [-4.0 * sum(x * y for x, y in zip(row, v, strict=True)) for row in momentum(q)]
        return [torques[0] + 2.5, *torques[1:]]

    assert_equal(four_bar(controller=slowed), page, 1e-12)
    assert slider["joint"] == "crank_hinge"
    assert slider["unit"] == "N m"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["puma", "four_bar", "stewart"])
def test_the_most_damping_stops_and_does_not_shake(name):
    model = getattr(sl.zoo, name)()
    q = getattr(sl.zoo, f"{name}_start", model.neutral)()
    page = LivePage(LiveMotion.of(sl.Dynamics(model), q, limits="ignore").data())
    page.run(100).look("energy")
    before = page["energy"].sum()
    page.set_input(page.data["inputs"]["damping"]["place"], page.data["inputs"]["damping"]["high"])
    for _ in range(5):
        page.run(100).look("energy")
        assert page["energy"].sum() < before
        before = page["energy"].sum()


@pytest.mark.slow
def test_gains_and_targets_of_a_law_have_sliders():
    arm = sl.zoo.puma()
    for law in (sl.control.pd, lambda m, kp, kd, target: sl.control.computed_torque(m, target, kp, kd)):

        def run(kp, kd, aim, law=law):
            return sl.simulate(arm, duration=0.05, controller=law(arm, kp, kd, [0.2] * 5 + [aim]))

        page = page_of(run(80.0, 8.0, 0.2))
        inputs = page.data["inputs"]
        page.set_input(inputs["gains"][0]["place"], 0.5)
        page.set_input(inputs["gains"][1]["place"], 1.5)
        page.set_input(inputs["targets"][-1]["place"], 0.3)
        assert inputs["targets"][-1]["joint"] == "joint6"
        assert_equal(run(40.0, 12.0, 0.5), page)


def test_gains_that_steps_take_implicitly_are_fixed():
    arm = sl.zoo.puma()
    run = sl.simulate(arm, duration=0.02, controller=sl.control.pd(arm, 1e5, 1e4, [0.2] * 6))
    assert run.settings["integrator"] == "implicit"
    page = page_of(run)
    assert page.data["inputs"]["gains"] == []
    assert "gains are fixed: the steps of this motion take them implicitly" in page.data["not_live"]
    page.set_input(page.data["inputs"]["targets"][0]["place"], 0.1)
    moved = sl.simulate(arm, duration=0.02, controller=sl.control.pd(arm, 1e5, 1e4, [0.3] + [0.2] * 5))
    assert_equal(moved, page, 1e-12)


# ---- events, stops, contacts


@pytest.mark.slow
def test_joints_stop_at_their_limits():
    joints = [replace(j, lower=(0.9,)) if j.name == "crank_hinge" else j for j in FOUR_BAR.joints]
    model = replace(FOUR_BAR, joints=tuple(joints))
    ended = sl.simulate(model, CLOSED, duration=0.5)
    assert ended.outcome.reason == "limit"
    page = page_of(ended)
    assert "joints stop at their limits, where the run would end" in page.data["not_live"]
    known = sl.simulate(model, CLOSED, duration=0.5, limits="stop")
    assert_equal(known, page)
    page.reset()
    log, moments = page.data["log"], []
    for _ in range(500):
        page["logged"] = 0.0
        assert page.step() == 0
        for row in page["log"].reshape(log["rows"], log["width"])[: int(page["logged"][0])]:
            fired = row[slice(*np.cumsum(log["arrays"]["fired"]))] > 0.0
            moments.append(
                (row[log["arrays"]["t"][0]], [w["name"] for w, f in zip(log["watchers"], fired, strict=True) if f])
            )
    assert len(moments) == len(known.events) > 0
    assert np.abs([t for t, _ in moments] - known.events.time).max() < 1e-12
    assert all("crank_hinge" in names for _, names in moments)


def test_an_event_of_the_user_ends_the_motion():
    run = sl.simulate(FOUR_BAR, CLOSED, duration=0.5, events={"low": lambda t, q, v: q[0] - 0.95})
    page = page_of(run)
    while (status := page.step()) == 0:
        assert page.steps < 500
    assert status == 2
    assert page.data["events"] == page.data["ends"]["names"] == ["low"]
    assert page[page.data["ends"]["array"]][0] in (-1.0, 1.0)  # negative where it ended, or 1 plus the number 0
    assert page.data["status"]["2"] == "an event ends the motion"
    assert abs(page.steps * page.data["step"] - run.duration) < page.data["step"]


@pytest.mark.slow
def test_a_body_falls_on_the_ground():
    from contact_stories import at, box

    run = sl.simulate(box(0.5), at(z=0.15), duration=0.2)
    page = page_of(run)
    assert_equal(run, page, 1e-12)
    contacts = page.data["contacts"]
    impulses = page[contacts["impulses"]].reshape(len(contacts["points"]), contacts["numbers"])
    known = run.segments[0].contact_forces[-1].reshape(impulses.shape)  # how four corners share the load is not unique
    np.testing.assert_allclose(impulses[:, 0].sum() / 1e-3, known[:, 0].sum(), rtol=1e-9)
    assert known[:, 0].sum() > 1.0


# ---- runs that a page cannot repeat


def test_a_run_remembers_how_it_was_made_in_memory_only(tmp_path):
    run = four_bar(controller=lambda t, q, v: -v)
    assert run.recipe is not None
    run.save(tmp_path / "run.npz")
    for other in (
        run[3:20],
        run.every(0.01),
        sl.Trajectory.load(tmp_path / "run.npz"),
        pickle.loads(pickle.dumps(run)),
    ):
        assert other.recipe is None
    assert copy.copy(run).recipe is None
    page = page_of(run[3:20])
    assert page.data["not_live"][0].startswith("this run does not know what acted in it")
    np.testing.assert_array_equal(page["q"], run.q[3])
    assert_equal(sl.simulate(FOUR_BAR, run.q[3], run.v[3], duration=0.02), page)


def test_what_a_page_does_otherwise_is_said():
    for options, words in (
        ({"controller": sl.control.callback(lambda t, q, v: -v)}, "the controller is a Python function"),
        ({"integrator": "DOP853"}, "'DOP853', which chooses its steps; the page takes fixed ones"),
        ({"integrator": sl.Integrator("rk4", dtype="float32")}, "the run was computed in float32"),
    ):
        assert any(words in x for x in LiveMotion.of_run(four_bar(**options)).not_live)


def test_a_continued_run_says_that_it_does_not_know_what_acted():
    run = four_bar(tau=[1.0, 0.0, 0.0])
    found = LiveMotion.of_run(run.continued(duration=0.01, tau=[1.0, 0.0, 0.0])).not_live
    assert "this run does not know what acted in it (it is of a file, of a batch, continued from another" in found[0]


def test_forces_that_read_the_torques_of_a_callback_read_zero():
    def push(t, q, v, u):
        return {"coupler": [0.0, 0.0, 0.0, 5.0 + 20.0 * u[2], 0.0, 0.0]}

    called = four_bar(controller=sl.control.callback(lambda t, q, v: [1.0, 2.0, 3.0]), forces=push)
    assert_equal(four_bar(tau=np.zeros(3), forces=push), page_of(called))
    words = "the function of forces reads an entry that is not there (index 3 is out of bounds for axis 0 with size 3)"
    with says(InputError, words):
        four_bar(controller=sl.control.callback(lambda t, q, v: -v), forces=lambda t, q, v, u: {"coupler": [u[3]] * 6})


def test_a_long_table_of_inputs_is_left_out():
    rows = np.ones((20_000, 3))
    run = sl.simulate(FOUR_BAR, CLOSED, duration=20.0, tau=rows, sample=1.0)
    live = LiveMotion.of_run(run)
    assert live.data()["inputs"]["own"]["values"] is None
    assert "more than the 50000 that a page carries" in live.not_live[0]


def test_batches_and_large_mechanisms_are_refused():
    batch = sl.simulate(FOUR_BAR, [CLOSED, CLOSED], duration=0.01)
    with says(InputError, "this is a batch of 2 runs; a live page shows one of them: run[0]"):
        LiveMotion.of_run(batch)
    with says(UnsupportedError, "has 130 DoF; a live page takes 120 at most"):
        LiveMotion.of(sl.Dynamics(sl.zoo.chain(130)))


def test_the_page_of_a_run_does_not_repeat_its_warnings():
    arm = sl.zoo.puma()
    law = sl.control.pd(arm, 0.0, 40.0, [0.0] * 6)
    with pytest.warns(SpanloopWarning, match="ask for steps below"):
        run = sl.simulate(arm, duration=0.002, controller=law, integrator="rk4")
    with warnings.catch_warnings():
        warnings.simplefilter("error", SpanloopWarning)
        page = page_of(run)
    assert page.data["integrator"] == "rk4"


def test_accelerations_that_are_given_cannot_decay():
    page = LivePage(LiveMotion.of(driven(), CLOSED).data())
    assert page.data["inputs"]["damping"] is None
    assert page.data["inputs"]["torques"] == []


def test_the_data_is_plain_json():
    data = LiveMotion.of_run(four_bar(tau=TABLE), parameters=["crank.mass"]).data()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert set(data["start"]) >= {*data["state"], "p", "u"}
    assert data["inputs"]["count"] == data["sizes"]["u"]
