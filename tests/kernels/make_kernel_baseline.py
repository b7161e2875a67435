"""This script writes kernel_baseline.json, what kernels cost and return today, for test_kernel_baseline.py.

    python make_kernel_baseline.py            # writes the whole file anew
    python make_kernel_baseline.py --check    # writes nothing; lists what of the catalog has no kernel here

Write the file anew only with kernels that are meant to be as they are: later ones must not exceed its counts.
"""

from __future__ import annotations

import json
import sys
from math import pi
from typing import Any

import numpy as np
from test_kernel_baseline import FILE, compiled, counts, difference, end_of, made, results

import spanloop as sl

# machine code and the same steps on plain floats differ by less, relative to the largest number
WELL_CONDITIONED = 1e-13


# ---- models


def zoo(name: str, *arguments, then=(), **options) -> dict[str, Any]:
    """The recipe of a mechanism of the zoo; then: (method, arguments) to call on it."""
    steps = [[method, list(given), {}] for method, given in then]
    return {"make": f"zoo.{name}", "arguments": list(arguments), "options": options, "then": steps}


def joint(kind: str, *arguments, **options) -> dict[str, Any]:
    """The recipe of a kind of joint."""
    return {"make": f"joints.{kind}", "arguments": list(arguments), "options": options}


def panda_like() -> dict[str, Any]:
    """The recipe of seven hinges placed as the Panda's are; the inertias are our own."""
    a, b = (0, 0, 0, 0.0825, -0.0825, 0, 0.088), (0.333, 0, 0.316, 0, 0.384, 0, 0)
    quarters, masses = (0, -1, 1, 1, -1, 1, 1), (4.0, 4.0, 3.0, 3.0, 2.5, 1.5, 0.5)
    rows = [
        {"a": a, "b": b, "alpha": n * pi / 2, "mass": m, "center": [0.01, -0.03 * m / 4, 0.02], "inertia": _moments(m)}
        for a, b, n, m in zip(a, b, quarters, masses, strict=True)
    ]
    return {"make": "from_dh", "arguments": [rows, "panda_like"], "options": {"convention": "modified"}}


def _moments(mass: float) -> list[float]:
    """xx xy xz yy yz zz of a link, none of them zero."""
    return [0.011 * mass, 0.001 * mass, -0.0007 * mass, 0.009 * mass, 0.0005 * mass, 0.006 * mass]


def geared_arm() -> dict[str, Any]:
    """The recipe of three links with damping, rotors and a spring, of which a gear couples two."""
    bars = (("upper", 2.0), ("fore", 1.0), ("hand", 0.5))
    steps = [["body", [name, m, [0.2, 0.01, 0.0], [0.01 * m, 0.03 * m, 0.03 * m]], {}] for name, m in bars]
    losses = {"damping": 0.1, "armature": 0.02, "stiffness": 1.5}
    steps.append(["revolute", ["shoulder", "world", "upper", "y"], losses])
    steps.append(["revolute", ["elbow", "upper", "fore", "y", [0.4, 0.0, 0.0]], {}])
    steps.append(["revolute", ["wrist", "fore", "hand", "z", [0.4, 0.0, 0.0]], {"damping": 0.05}])
    return _built("geared_arm", [*steps, ["coupling", ["gear", "elbow", "shoulder", -2.0], {}]])


def rod_between_pendulums() -> dict[str, Any]:
    """The recipe of two pendulums on universal joints whose tips a rod of 1 m keeps apart."""
    steps: list[Any] = []
    for side, x in (("left", 0.0), ("right", 1.0)):
        steps.append(["body", [side, 1.5, [0.0, 0.01, -0.4], [0.05, 0.06, 0.02]], {}])
        steps.append(["universal", [f"{side}_cardan", "world", side, "x", "y", [x, 0.0, 0.0]], {}])
        steps.append(["frame", [f"{side}_tip", side, [0.0, 0.0, -0.8]], {}])
    rod = ["loop", ["left_tip", "right_tip", joint("Distance", 1.0)], {"name": "rod"}]
    return _built("rod_between_pendulums", [*steps, rod])


def _built(name: str, steps: list[Any]) -> dict[str, Any]:
    return {"make": "Builder", "arguments": [name], "then": [*steps, ["build", [], {}]]}


JOINTS = ("revolute", "prismatic", "helical", "cylindrical", "universal", "spherical", "planar", "free", "general")
GRASPS = {
    "pin": "revolute",
    "slide": "prismatic",
    "sleeve": "cylindrical",
    "cardan": "universal",
    "plane": "planar",
    "screw": joint("Helical", pitch=0.02),
    "finger": joint("SoftFinger"),
    "general": joint("General", [[0, 0, 1, 0.1, 0, 0]]),
}
TREES = {
    "pendulum": zoo("pendulum", 3),
    "puma": zoo("puma"),
    "stanford": zoo("stanford"),
    "dh_arm": zoo("dh_arm", 4),
    "panda_like": panda_like(),
    "quadruped": zoo("quadruped"),
    "chain": zoo("chain", 8),
    "long_chain": zoo("chain", 50, seed=3),
    "tree": zoo("tree", 6, 3, seed=2),
    "star": zoo("star", 3),
    "random_fixed": zoo("random_model", 3, 6, free=False),
    "random_floating": zoo("random_model", 11, 6, free=True),
    "puma_driven": zoo("puma", then=[("drive", ["joint2"])]),
    **{f"chain_{kind}": zoo("chain", 3, kind, seed=5) for kind in JOINTS},
}
LOOPS = {
    "four_bar": zoo("four_bar"),
    "four_bar_ball": zoo("four_bar", closure="spherical"),
    "four_bar_driven": zoo("four_bar", then=[("drive", ["crank_hinge"])]),
    "slider_crank": zoo("slider_crank", offset=-0.05),
    "five_bar": zoo("five_bar"),
    "five_bar_driven_loop": zoo("five_bar", then=[("drive", ["meeting"])]),
    "n_four_bar": zoo("n_four_bar", 3),
    "squeezer": zoo("andrews"),
    "bricard": zoo("bricard"),
    "stewart": zoo("stewart"),
    "delta": zoo("delta"),
    "one_arm": zoo("arms_with_object", 1),
    "arms": zoo("arms_with_object", 2),
    "arms_ball": zoo("arms_with_object", 2, grasp="spherical"),
    "short_arms": zoo("arms_with_object", 3, arm="five"),
    **{f"arms_{name}": zoo("arms_with_object", 2, grasp=kind) for name, kind in GRASPS.items()},
    "three_pumas": zoo("three_pumas"),
    "linkage_leg": zoo("linkage_leg"),
    "hexapod": zoo("hexapod"),
    "hexapod_switchable": zoo("hexapod", switchable=True),
    "scraper": zoo("carpet_scraper"),
    "governor": zoo("flyball_governor", stiffness=200.0, damping=5.0),
    "loops_inside_chains": zoo("arms_with_linkage"),
}
SPECIAL = {
    "geared_arm": geared_arm(),
    "rod_between_pendulums": rod_between_pendulums(),
    "parallelogram": zoo("four_bar", ground=2.0, crank=1.0, coupler=2.0, rocker=1.0),
}
MODELS = {**TREES, **LOOPS, **SPECIAL}


# ---- kernels: model, function, method, options


OPEN_CHAIN_METHODS = (
    "articulated_body",
    "articulated_body_textbook",
    "composite_body",
    "decoupled_complement",
    "unit_vector",
    "virtual_work",
    "virtual_work_unsplit",
)
FEET, LIVE, PUSHED = ["fl_foot", "hr_foot"], {"parameters": "live"}, {"forces": ["trunk", "hl_shank"]}
LOOPED, MINIMUM_NORM = {"lowering": "looped"}, {"on_singular": "minimum_norm"}
MASS_MATRIX = ["H", "phi", "Mb", "phi.T", "H.T"]
INVERSE_DYNAMICS = ["H", "psi", "P", "psi.T", "H.T"]

FORWARD = [
    *((model, method) for model in ("puma", "tree", "star", "random_fixed") for method in OPEN_CHAIN_METHODS),
    *((model, None) for model in TREES if model != "long_chain"),
    *((model, None) for model in (*LOOPS, "geared_arm", "rod_between_pendulums")),
    *((model, "elimination") for model in ("four_bar", "arms_ball")),
    *((model, "dense") for model in ("four_bar", "squeezer", "arms_ball", "governor", "geared_arm")),
    *((model, "parallel_legs") for model in ("four_bar", "five_bar", "bricard", "stewart", "one_arm")),
    *(
        (model, "simple_closed_chain")
        for model in ("five_bar", "stewart", "arms", "linkage_leg", "loops_inside_chains")
    ),
    *((model, "closed_topology") for model in ("four_bar", "arms", "arms_pin", "delta", "scraper")),
    *((model, f"arms_on_object_{n}") for model in ("arms", "arms_ball") for n in (1, 2, 3)),
    *((model, "arms_on_object") for model in ("arms_ball", "stewart")),
]
KERNELS: list[tuple[str, str, str | None, dict[str, Any]]] = [
    *((model, "forward_dynamics", method, {}) for model, method in FORWARD),
    *(("one_arm", "forward_dynamics", "arms_on_object", {"open_chain": method}) for method in OPEN_CHAIN_METHODS),
    # options
    ("puma", "forward_dynamics", None, LIVE),
    ("quadruped", "forward_dynamics", None, PUSHED),
    ("puma", "forward_dynamics", "composite_body", {"regroup": False}),
    ("star", "inverse_dynamics", None, LIVE),
    ("puma", "mass_matrix", None, LIVE),
    ("four_bar", "forward_dynamics", None, LIVE),
    ("stewart", "forward_dynamics", None, {"forces": ["platform"]}),
    ("arms_ball", "forward_dynamics", "simple_closed_chain", {"forces": ["object"]}),
    ("four_bar", "forward_dynamics", None, MINIMUM_NORM),
    ("stewart", "forward_dynamics", None, MINIMUM_NORM),
    ("parallelogram", "forward_dynamics", None, MINIMUM_NORM),
    ("parallelogram", "forward_dynamics", "dense", MINIMUM_NORM),
    ("long_chain", "forward_dynamics", None, LOOPED),
    ("long_chain", "inverse_dynamics", None, LOOPED),
    ("long_chain", "bias", None, LOOPED),
    ("long_chain", "gravity_torques", None, LOOPED),
    ("tree", "forward_dynamics", None, LOOPED),
    # inverse dynamics and what belongs to it
    *((model, "inverse_dynamics", "newton_euler", {}) for model in ("puma", "quadruped", "random_floating")),
    *((f"chain_{kind}", "inverse_dynamics", None, {}) for kind in JOINTS),
    ("quadruped", "inverse_dynamics", None, PUSHED),
    ("puma_driven", "inverse_dynamics", None, {}),
    *((model, "inverse_dynamics", "decoupled_complement", {}) for model in ("puma", "tree")),
    *((model, "tree_inverse_dynamics", "newton_euler", {}) for model in ("puma", "five_bar", "arms")),
    *(
        (model, "bias", method, {})
        for model in ("panda_like", "arms")
        for method in ("newton_euler", "decoupled_complement")
    ),
    *((model, "gravity_torques", "newton_euler", {}) for model in ("quadruped", "stewart")),
    *((model, "reactions", "newton_euler", {}) for model in ("puma", "star", "four_bar")),
    *(("puma", "constraint_forces", method, {}) for method in ("virtual_work", "virtual_work_unsplit")),
    ("chain_spherical", "constraint_forces", "virtual_work", {}),
    # matrices
    *(
        (model, "mass_matrix", method, {})
        for model in ("puma", "random_floating", "four_bar")
        for method in ("composite_body", "decoupled_complement", "unit_vector")
    ),
    *((model, "mass_matrix_inverse", "articulated_body", {}) for model in ("puma", "random_fixed")),
    *((model, "inertia_factors", "decoupled_complement", {}) for model in ("puma", "five_bar")),
    *((model, "convective_inertia", "decoupled_complement", {}) for model in ("puma", "five_bar")),
    *((model, "convective_torque", "decoupled_complement", {}) for model in ("puma", "tree")),
    ("puma", "operational_inverse_inertia", "admittance", {"frames": ["tool"]}),
    ("quadruped", "operational_inverse_inertia", "admittance", {"frames": FEET}),
    ("puma", "force_response", "articulated_body", {"frames": ["tool"]}),
    ("quadruped", "force_response", "articulated_body", {"frames": FEET[:1]}),
    # kinematics, energy, coordinates
    *((model, function, "sweep", {}) for model in ("quadruped", "stewart") for function in ("energy", "momentum")),
    *((model, "center_of_mass", "sweep", {}) for model in ("quadruped", "random_floating")),
    *(
        (model, function, "sweep", {})
        for model in ("quadruped", "stewart")
        for function in ("center_of_mass_jacobian", "centroidal_momentum_matrix", "centroidal_momentum_bias")
    ),
    *(("puma", f"frame_{what}", "sweep", {"frame": "tool"}) for what in ("velocity", "acceleration")),
    ("quadruped", "frame_acceleration", "sweep", {"frame": "fl_foot", "expressed_in": "trunk"}),
    ("quadruped", "frame_spatial_acceleration", "sweep", {"frame": "fl_foot", "expressed_in": "fl_foot"}),
    *((model, "poses", "sweep", {}) for model in ("puma", "scraper")),
    *(("puma", function, "sweep", {"frame": "tool"}) for function in ("pose", "jacobian", "jacobian_bias")),
    *(
        ("quadruped", function, "sweep", {"frame": "fl_foot", "expressed_in": "trunk"})
        for function in ("jacobian", "jacobian_bias")
    ),
    *(
        (model, "integrate", "joints", {})
        for model in ("quadruped", "chain_planar", "chain_general", "chain_universal")
    ),
    *(
        (model, "difference", "joints", {})
        for model in ("quadruped", "chain_planar", "chain_spherical", "chain_cylindrical")
    ),
    # closures
    *(
        (model, function, "paths", {})
        for model in ("five_bar", "arms_cardan", "bricard")
        for function in ("closure_error", "closure_jacobian", "closure_bias")
    ),
    *((model, "closure_facing", "paths", {}) for model in ("arms", "arms_cardan", "bricard")),
    ("hexapod_switchable", "closure_bias", "paths", {}),
    ("geared_arm", "closure_jacobian", "paths", {}),
    ("rod_between_pendulums", "closure_bias", "paths", {}),
    *((model, "grasp_accelerations", "paths", {}) for model in ("arms_ball", "arms_finger")),
    *(
        (model, function, "elimination", {})
        for model in ("four_bar", "stewart", "hexapod_switchable", "geared_arm")
        for function in ("position_correction", "velocity_correction")
    ),
    *(
        (model, function, "parallel_legs", {})
        for model in ("five_bar", "stewart")
        for function in ("actuated_inverse_dynamics", "position_completion", "actuated_rates")
    ),
    *(("puma", function, "closed_topology", {"points": ["tool"]}) for function in ("free_response", "forced_response")),
    ("star", "free_response", "closed_topology", {"points": ["leg1", "leg2"], "forces": ["hub"]}),
    ("star", "forced_response", "closed_topology", {"points": ["leg1", "leg2"]}),
    # spatial operators
    ("puma", "operators", None, {"product": MASS_MATRIX}),
    ("random_fixed", "operators", None, {"product": INVERSE_DYNAMICS}),
    ("puma", "operators", None, {"product": ["J", "J.T"], "frames": ["tool"]}),
    ("arms_ball", "operators", None, {"product": ["A", "Lam", "A.T"]}),
]
# functions that measure or mend an open state are asked at one: argument -> array of the state
ASKED_OPEN = {"closure_error": {"q": "q_open"}, "velocity_correction": {"v": "v_open"}}


def label(model: str, function: str, method: str | None, options: dict[str, Any]) -> str:
    """A name for a kernel that no other has."""
    words = (f"{name}={' '.join(x) if isinstance(x, list) else x}" for name, x in options.items())
    return ", ".join((model, function, *([method] if method else ()), *words))


# ---- states


def states_of(name: str, model: sl.Model) -> list[dict[str, np.ndarray]]:
    """Two states with what every kernel takes: q, v, x (torques, accelerations or steps), q and v with open loops."""
    out = []
    for k in (0, 1):
        rng = np.random.default_rng(k + 1)
        closed = bool(model.loops or model.couplings)
        q, v = _closed_state(name, model, rng, k) if closed else model.random_state(rng)
        step, rates = 1e-2 * rng.normal(size=model.nv), rng.normal(size=model.nv)
        out.append({"q": q, "v": v, "x": rng.normal(size=model.nv)})
        out[k] |= {"q_open": sl.Dynamics(model).integrate(q, step), "v_open": v + rates} if closed else {}
    return [state | {"start": other["q"]} for state, other in zip(out, reversed(out), strict=True)]


def _closed_state(name: str, model: sl.Model, rng, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Near the start of the zoo with closed loops; of the parallelogram first the singular configuration."""
    if name == "parallelogram":
        return 0.4 * k * np.array((1.0, -1.0, 1.0)), np.array((0.7, -0.7, 0.7))
    robot, v = sl.Dynamics(model), 0.5 * rng.normal(size=model.nv)
    near = robot.integrate(start_of(name, model), 0.03 * rng.normal(size=model.nv))
    return robot.project(robot.assemble(near), v)


def start_of(name: str, model: sl.Model) -> np.ndarray:
    """Closed coordinates: the zoo's; of other models neutral."""
    recipe = MODELS[name]
    if not recipe["make"].startswith("zoo."):
        return model.neutral()
    return made({"make": f"{recipe['make']}_start", "arguments": recipe["arguments"], "options": recipe["options"]})


def further_array(argument: str, size: int, model: sl.Model, k: int) -> np.ndarray:
    """What one function alone takes, for state k."""
    rng = np.random.default_rng([k, size])
    if argument == "parameters":  # the second time every body is heavier by a tenth
        heavier = {f"{b.name}.mass": 1.1 * b.inertia.mass for b in model.bodies}
        return model.parameters().changed(heavier if k else {}).values
    if argument == "active":  # the second time the last closure is open
        return np.array([1.0] * (size - 3) + [1.0 - k] * 3)
    return (0.01 if argument == "error" else 1.0) * rng.normal(size=size)


def named_inputs(kernel, function: str, model: sl.Model, states: list[dict[str, np.ndarray]]) -> list[str]:
    """Names of the kernel's arguments among the states' arrays, to which what is missing is added."""
    return [_named(n, size, ASKED_OPEN.get(function, {}), model, states) for n, size in kernel.inputs]


def _named(argument: str, size: int, instead: dict[str, str], model: sl.Model, states) -> str:
    if argument in ("q", "v", "start"):
        return instead.get(argument, argument)
    if argument in ("tau", "a", "delta"):
        return "x"
    name = f"{argument}_{size}"
    for k, state in enumerate(states):
        state.setdefault(name, further_array(argument, size, model, k))
    return name


# ---- the file


def kernel_entry(model: sl.Model, key: tuple, states: list[dict[str, np.ndarray]]) -> dict[str, Any]:
    """Counts and results of a kernel; refused where rounding shows in the results."""
    name, function, method, options = key
    kernel = compiled(model, function, method, options)
    inputs = named_inputs(kernel, function, model, states)
    found = results(kernel, name, inputs, {name: states})
    plain = results(compiled(model, function, method, options, target="python"), name, inputs, {name: states})
    worst = max(map(difference, plain, found))
    assert worst < WELL_CONDITIONED, f"{label(*key)}: rounding changes the result by {worst:.1e}"
    head = {"model": name, "function": function, "method": method, "options": options}
    return head | {"operations": counts(kernel), "inputs": inputs, "results": [x.tolist() for x in found]}


ROLLOUTS = {  # model, options of sl.simulate
    "tree, rk4": ("puma", {"integrator": "rk4"}),
    "floating tree, euler": ("quadruped", {"integrator": "euler", "limits": "ignore"}),
    "tree, midpoint": ("star", {"integrator": "midpoint"}),
    "four_bar, rk4 with projection": ("four_bar", {"integrator": "rk4", "closures": "project"}),
    "governor, midpoint with projection": ("governor", {"integrator": "midpoint", "closures": "project"}),
    "slider_crank, rk4 with feedback": ("slider_crank", {"integrator": "rk4", "closures": "feedback", "gains": 20.0}),
    "stewart, euler with projection": ("stewart", {"integrator": "euler", "limits": "ignore"}),
    "five_bar, rk4 in minimal coordinates": ("five_bar", {"integrator": "rk4", "closures": "minimal"}),
}


def rollout_entry(name: str, model: sl.Model, options: dict[str, Any], state) -> dict[str, Any]:
    """Start and end of a motion of 50 steps under constant torques."""
    torques = {"tau": state["x"].tolist()}
    entry = {"model": name, "options": {"duration": 0.05, "step": 1e-3, **options, **torques}}
    entry |= {"q": state["q"].tolist(), "v": state["v"].tolist()}
    q, v = end_of(entry, model)
    return entry | {"end": {"q": q.tolist(), "v": v.tolist()}}


def baseline() -> dict[str, dict[str, Any]]:
    """All sections of the file."""
    models = {name: made(recipe) for name, recipe in MODELS.items()}
    states = {name: states_of(name, model) for name, model in models.items()}
    kernels = {label(*key): kernel_entry(models[key[0]], key, states[key[0]]) for key in KERNELS}
    assert len(kernels) == len(KERNELS)
    rollouts = {key: rollout_entry(n, models[n], options, states[n][0]) for key, (n, options) in ROLLOUTS.items()}
    used = {name: {x for e in kernels.values() if e["model"] == name for x in e["inputs"]} for name in models}
    kept = {n: [{key: s[key].tolist() for key in sorted(used[n])} for s in pair] for n, pair in states.items()}
    return {"models": MODELS, "states": kept, "kernels": kernels, "rollouts": rollouts}


def text_of(sections: dict[str, dict[str, Any]]) -> str:
    """JSON with a line an entry; numbers as they are, so that they are read back bit for bit."""
    parts = []
    for name, entries in sections.items():
        lines = (f"{json.dumps(key)}:{json.dumps(entry, separators=(',', ':'))}" for key, entry in entries.items())
        parts.append(f"{json.dumps(name)}:{{\n" + ",\n".join(lines) + "\n}")
    return "{" + ",\n".join(parts) + "}\n"


def left_out() -> list[str]:
    """Functions and methods of the catalog that no kernel of the list has."""
    from spanloop.algorithms.catalog import FUNCTIONS

    listed = {(function, method) for _, function, method, _ in KERNELS}
    known = ((name, m) for name, f in FUNCTIONS.items() for m in (*f.methods, *(f.closed or ())))
    return [f"{function}, {method}" for function, method in known if (function, method) not in listed]


if __name__ == "__main__":
    print(f"{len(KERNELS)} kernels; left out: {left_out() or 'nothing'}")
    if "--check" not in sys.argv:
        FILE.write_text(text_of(baseline()), encoding="utf-8")
