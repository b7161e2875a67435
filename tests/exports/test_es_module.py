"""ES modules and WebAssembly modules that sl.export writes, in node: answers, motions, names, refusals."""

from __future__ import annotations

import json
import os

import chromium
import firefox
import numpy as np
import pytest
from es_runtime import evaluated, needs_node
from event_motions import ball_model
from portable_code import Wasm

import spanloop as sl
from spanloop.errors import FileError, InputError, UnsupportedError

RNG = np.random.default_rng(5)
STEP = 2e-3


def custom_section(binary: bytes, wanted: str) -> bytes:
    """The content of a custom section of a WebAssembly module."""

    def number(at):
        value = shift = 0
        while True:
            byte = binary[at]
            value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                return value, at

    at = 8
    while at < len(binary):
        kind, (size, begin) = binary[at], number(at + 1)
        at = begin + size
        if kind == 0:
            length, begin = number(begin)
            if binary[begin : begin + length].decode() == wanted:
                return binary[begin + length : at]
    raise KeyError(wanted)


# ---- functions


@needs_node
def test_functions_answer_as_the_kernels_do(tmp_path):
    model = sl.zoo.puma()
    names = ["forward_dynamics", "mass_matrix", "jacobian"]
    path = sl.export(model, names, tmp_path / "arm.mjs", frame=model.bodies[-1].name, forces=model.bodies[-1].name)
    q, v, tau, f = RNG.normal(size=6), RNG.normal(size=6), RNG.normal(size=6), RNG.normal(size=6)
    data = {"q": q.tolist(), "v": v.tolist(), "tau": tau.tolist(), "f": f.tolist()}
    calls = "[m.forwardDynamics(q, v, tau, f), m.massMatrix(q), m.jacobian(q), api.functions.jacobian.answer.shape]"
    a, M, J, shape = evaluated(path, calls, **data)
    last = model.bodies[-1].name
    kernel = sl.compile(model, "forward_dynamics", forces=last)
    assert np.abs(np.array(a) - kernel(q, v, tau, f)).max() < 1e-11
    assert np.abs(np.array(M).reshape(6, 6) - sl.compile(model, "mass_matrix")(q)).max() < 1e-13
    assert np.abs(np.array(J).reshape(shape) - sl.compile(model, "jacobian", frame=last)(q)).max() < 1e-14


@needs_node
def test_functions_have_names_and_options_of_their_own_and_derivatives_are_functions(tmp_path):
    model = sl.zoo.pendulum(2)
    rate = {"function": "forward_dynamics", "derivative": "jvp"}
    names = {"tip": {"function": "pose", "frame": "rod2"}, "root": {"function": "pose", "frame": "rod1"}, "rate": rate}
    path = sl.export(model, names, tmp_path / "two.mjs")
    given = [RNG.normal(size=2) for _ in range(6)]
    script = "[m.tip(x[0]), m.root(x[0]), m.rate(...x), api.functions.rate.inputs.map((i) => i.name)]"
    tip, root, found, inputs = evaluated(path, script, x=[x.tolist() for x in given])
    for frame, pose in (("rod2", tip), ("rod1", root)):
        assert pose == pytest.approx(sl.compile(model, "pose", frame=frame)(given[0]).ravel().tolist(), abs=1e-14)
    assert inputs == ["q", "v", "tau", "dQ", "dV", "dTau"]
    kernel = sl.compile(model, "forward_dynamics", derivative="jvp")
    assert [n for n, _ in kernel.inputs] == ["q", "v", "tau", "d.q", "d.v", "d.tau"]
    assert found == pytest.approx(kernel(*given).tolist(), rel=1e-11)


@needs_node
def test_names_units_and_sizes_are_those_of_the_model(tmp_path):
    path = sl.export(sl.zoo.quadruped(), ["energy"], tmp_path / "dog.mjs")
    found = evaluated(path, "api.model")
    assert (found["nq"], found["nv"]) == (19, 18)
    assert [c["unit"] for c in found["coordinates"]][:8] == ["1"] * 4 + ["m"] * 3 + ["rad"]
    assert found["coordinates"][0]["part"] == "quaternion w"
    assert [(d["unit"], d["effort"]) for d in found["dofs"]][2:4] == [("rad/s", "N m"), ("m/s", "N")]
    assert len(found["coordinates"]) == 19
    assert found["neutral"] == sl.zoo.quadruped().neutral().tolist()


@needs_node
def test_live_parameters_are_an_input_and_refused_where_negative(tmp_path):
    model = sl.zoo.pendulum()
    path = sl.export(model, ["forward_dynamics"], tmp_path / "p.mjs", parameters="live", step=STEP, q=[0.3])
    heavy = model.parameters().values.copy()
    heavy[model.parameters().names.index("hinge1.damping")] = 3.0
    script = """{
        const own = api.model.parameters.values, bad = own.slice();
        bad[api.model.parameters.names.indexOf("rod1.mass")] = -1;
        const answers = [m.forwardDynamics([0.3], [0.1], [0], own), m.forwardDynamics([0.3], [0.1], [0], heavy)];
        m.motion.parameters = heavy;
        m.motion.step(50);
        return [...answers, caught(() => m.forwardDynamics([0.3], [0.1], [0], bad)),
                caught(() => { m.motion.parameters = bad; }), m.motion.q];
    }"""
    own, damped, refused, refused_motion, q = evaluated(path, script, heavy=heavy.tolist())
    kernel = sl.compile(model, "forward_dynamics", parameters="live")
    for found, numbers in ((own, model.parameters().values), (damped, heavy)):
        assert found == pytest.approx(kernel([0.3], [0.1], [0.0], numbers).tolist(), rel=1e-13)
    assert "negative" in refused[1]
    assert "negative" in refused_motion[1]
    run = sl.simulate(model, [0.3], step=STEP, duration=50 * STEP, parameters=heavy, integrator="rk4")
    assert np.abs(np.array(q) - run.q[-1]).max() < 1e-13


@needs_node
def test_refusals_say_what_and_where(tmp_path):
    path = sl.export(sl.zoo.four_bar(), ["forward_dynamics"], tmp_path / "f.mjs", step=STEP, q=sl.zoo.four_bar_start())
    script = """[
        () => m.forwardDynamics([1, 2], q, q), () => m.forwardDynamics(q, [0, NaN, 0], q), () => m.forwardDynamics(),
        () => m.forwardDynamics(q, q, q, new Float64Array(2)), () => m.forwardDynamics([1, 0.3, 2], [0, 0, 0], q),
        () => m.forwardDynamics([1e7, 0, 0], q, q), () => m.motion.step(1.5), () => { m.motion.u = [1]; },
        () => { m.motion.u[0] = Infinity; m.motion.step(); }, () => m.motion.setState([1, 1, 1]),
    ].map(caught)"""
    found = evaluated(path, script, q=list(sl.zoo.four_bar_start()))
    assert found == [
        ["RangeError", "forwardDynamics: q has 2 numbers; expected 3"],
        ["TypeError", "forwardDynamics: v[1] ('coupler_hinge') is NaN; expected a finite number"],
        ["TypeError", "forwardDynamics: q is undefined; expected an array of 3 numbers"],
        ["RangeError", "forwardDynamics: out has 2 numbers; expected 3"],
        ["StateError", "forwardDynamics: the state has no answer: a position is singular, or a loop is open"],
        ["StateError", "forwardDynamics: an angle is beyond the range of the sine; take whole turns off"],
        ["RangeError", "motion: step(1.5); expected a whole number of steps"],
        ["RangeError", "motion: u has 1 numbers; expected 3"],
        ["TypeError", "motion: u[0] ('crank_hinge') is Infinity; expected a finite number"],
        ["StateError", "motion: the state cannot be set: the loops cannot be closed here, or the mechanism cannot move "
         "there; begin nearer"],
    ]  # fmt: skip


# ---- motions


@needs_node
def test_a_motion_follows_simulate_with_torques_and_forces_as_inputs(tmp_path):
    model, q0 = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    body = model.bodies[0].name
    options = {"step": STEP, "q": q0, "integrator": "rk4", "limits": "ignore"}
    path = sl.export(model, tmp_path / "bar.mjs", forces=[body], **options)
    u = [0.5, 0.0, 0.0, 0.0, 0.0, 0.1, 0.0, 2.0, 0.0]
    script = """{
        const other = (await api.load()).motion;
        m.motion.u = u;
        m.motion.step(100);
        const moved = [m.motion.t, m.motion.q, m.motion.v, m.motion.inputs.length, other.q];
        m.motion.setState(other.q);
        m.motion.reset();
        m.motion.u.set(u);
        m.motion.step(60); m.motion.step(40);
        return [...moved, m.motion.q];
    }"""
    t, q, v, count, untouched, again = evaluated(path, script, u=u)
    run = sl.simulate(
        model, q0, tau=u[:3], forces={body: u[3:]}, step=STEP, duration=100 * STEP, integrator="rk4", limits="ignore"
    )
    assert (t, count) == (pytest.approx(0.2), 9)
    assert np.abs(np.array(q) - run.q[-1]).max() < 1e-13
    assert np.abs(np.array(v) - run.v[-1]).max() < 1e-12
    assert untouched == list(q0)
    assert again == q


@needs_node
def test_a_motion_ends_at_a_limit_and_keeps_its_state_and_events_act(tmp_path):
    path = sl.export(ball_model(), tmp_path / "ball.mjs", step=STEP, q=[0.05], limits="end")
    message, t, q = evaluated(path, "[caught(() => m.motion.step(1000)), m.motion.t, m.motion.q]")
    assert message[0] == "StateError"
    assert "the motion ends here" in message[1]
    assert 0.0 <= q[0] < 0.01
    assert t == pytest.approx(0.1, abs=2 * STEP)
    bounce = [sl.events.Stop("slide", restitution=0.7)]
    path = sl.export(ball_model(), tmp_path / "bounce.mjs", step=STEP, q=[0.05], events=bounce)
    script = "{ m.motion.step(120); return [m.motion.q, caught(() => m.motion.setState([0.1]))]; }"
    q, message = evaluated(path, script)
    run = sl.simulate(ball_model(), [0.05], step=STEP, duration=120 * STEP, events=bounce)
    assert np.abs(np.array(q) - run.q[-1]).max() < 1e-11
    assert "contacts or events carry more" in message[1]


# ---- files


def test_a_wasm_file_describes_itself(tmp_path):
    model = sl.zoo.puma()
    path = sl.export(model, {"fd": "forward_dynamics"}, tmp_path / "arm.wasm")
    table = json.loads(custom_section(path.read_bytes(), "spanloop"))
    ran, f = Wasm(path.read_bytes()), table["functions"]["fd"]
    given = {x["name"]: RNG.normal(size=x["size"]) for x in f["inputs"]}
    for x in f["inputs"]:
        ran.memory[x["place"] : x["place"] + x["size"]] = given[x["name"]]
    assert ran.call("fd") == 0
    answer = ran.memory[f["answer"]["place"] : f["answer"]["place"] + f["answer"]["size"]]
    assert np.abs(answer - sl.compile(model, "forward_dynamics")(*given.values())).max() < 1e-11


@pytest.mark.parametrize(
    ("functions", "options", "error", "words"),
    [
        (["forward_dynamics"], {"real": "float"}, InputError, "real= is for C files"),
        (["forward_dynamics"], {"farces": "rod1"}, InputError, "takes no farces=; did you mean 'forces'"),
        (["forward_dynamic"], {}, InputError, "forward_dynamics"),
        (["forward_dynamics"], {"frame": "tool"}, InputError, "none of 'forward_dynamics' takes frame="),
        ([], {}, InputError, "nothing to write"),
        (["forward_dynamics"], {"integrator": "rk4"}, InputError, "give its step= too"),
        ([], {"step": 0.0}, InputError, "step is 0.0"),
        ([], {"step": 1e-3, "integrator": "DOP853"}, InputError, "chooses its own steps"),
        ({"constructor": "forward_dynamics"}, {}, InputError, "'constructor'"),
        (["forward_dynamics"], {"lowering": "looped"}, UnsupportedError, "lowering='unrolled'"),
        ([], {"step": 1e-3, "controller": sl.control.callback(lambda t, q, v: q)}, UnsupportedError, "callback"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_a_sentence_and_no_file(tmp_path, functions, options, error, words):
    with pytest.raises(error, match=words.replace("(", r"\(")):
        sl.export(sl.zoo.pendulum(2), functions, tmp_path / "arm.mjs", **options)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FileError, match="there is no folder"):
        sl.export(sl.zoo.pendulum(), ["energy"], tmp_path / "none" / "arm.mjs")


def hostile() -> sl.Model:
    name = "*/ `${1}` </script> \u2028 ' \" \\"
    b = sl.Builder(name).body(name, 1.0, (0.3, 0, 0), (0.01, 0.03, 0.03))
    return b.revolute(name + "x", "world", name, "y").build()


@needs_node
def test_names_of_the_model_cannot_break_the_file(tmp_path):
    model = hostile()
    path = sl.export(model, ["jacobian"], tmp_path / "hostile.mjs", frame=model.name, step=STEP)
    assert evaluated(path, "[api.model.name, m.jacobian([0]).length]") == [model.name, 6]
    assert "</script" not in path.read_text()


BROWSERS = {
    "chromium": (chromium.Browser, None if chromium.found() else "there is no Chromium on this machine"),
    "firefox": (firefox.Firefox, firefox.why_none()),
}


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("name", BROWSERS)
def test_the_module_runs_inside_a_page_from_a_file_without_eval(name, tmp_path):
    kind, why = BROWSERS[name]
    if why and not (name == "chromium" and os.environ.get("SPANLOOP_BROWSER") == "required"):
        pytest.skip(why)
    model, q0 = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    path = sl.export(model, ["closure_error"], tmp_path / "bar.mjs", step=STEP, q=q0, integrator="rk4", limits="ignore")
    policy = "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'"
    page = tmp_path / "page.html"
    page.write_text(
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<script type="module">{path.read_text()}\nwindow.mechanism = await load();</script>'
    )
    with kind() as browser:
        browser.open(page)
        browser.until("window.mechanism")
        q = browser.evaluate("JSON.stringify(mechanism.motion.step(100) && Array.from(mechanism.motion.q))")
        error = browser.evaluate("JSON.stringify(Array.from(mechanism.closureError(mechanism.motion.q)))")
    run = sl.simulate(model, q0, step=STEP, duration=100 * STEP, integrator="rk4", limits="ignore")
    assert np.abs(np.array(json.loads(q)) - run.q[-1]).max() < 1e-13
    assert np.abs(json.loads(error)).max() < 2e-15
