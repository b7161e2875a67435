"""`spanloop export`: functions or a motion of a mechanism as code that needs no Python."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from spanloop.algorithms.catalog import FUNCTIONS
from spanloop.cli.shared_arguments import (
    add_model,
    add_settings,
    by_name,
    initial_state,
    loading,
    model_of,
    settings_of,
    with_settings,
)
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError
from spanloop.exports.export import endings, export
from spanloop.model import Model
from spanloop.simulation.integrators.integrator import FIXED_STEP
from spanloop.simulation.problem import LIMITS

EXAMPLES = (
    "spanloop export zoo:puma forward_dynamics inverse_dynamics --output arm.c",
    "spanloop export zoo:puma gravity_torques --output arm_f.c --float --step 1e-3 --integrator rk4",
    "spanloop export zoo:four_bar --output linkage.c --step 1e-3 --v crank_hinge=2",
    "spanloop export zoo:four_bar forward_dynamics mass_matrix --output bars.c",
    "spanloop export zoo:puma pose jacobian --frame link6 --output hand.c --name hand",
    "spanloop export zoo:four_bar --output linkage.fmu --v crank_hinge=2",
    "spanloop export zoo:pendulum:2 energy --output pendulum.mjs --step 1e-3 --q hinge1=1",
)
MOTIONS = (".fmu",)  # files that always hold a motion
_ONLY = {  # options of some kinds of files: which, and what the others do
    "float": ((".c",), "this one computes in double precision"),
    "name": ((".c", ".fmu"), "a module has no prefix"),
    "unrolled": ((".c", ".mjs", ".wasm"), "an FMU is always unrolled"),
}
_OF_MOTIONS = ("integrator", "limits")


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add = parser.add_argument
    about = "what to compute: forward_dynamics, inverse_dynamics, mass_matrix, pose, ... (those of sl.compile)"
    add("functions", metavar="FUNCTION", nargs="*", help=about)
    add("--output", metavar="FILE", required=True, help=f"the file; its ending names the form: {endings()}")
    add("--name", help="prefix of all names in C (the name of the file)")
    add("--float", action="store_true", help="single precision (double)")
    add("--live", action="store_true", help="masses, lengths, losses and gravity are inputs; not of .fmu")
    about = "a number of the model that can be set, such as link6.mass; may be repeated; of .fmu only"
    add("--parameter", metavar="NAME", action="append", help=about)
    add("--forces", metavar="BODY", action="append", help="a body with external forces as inputs; may be repeated")
    add("--frame", help="frame or body of pose, jacobian and others")
    add("--method", help="algorithm of the functions, and of the motion")
    add("--step", type=float, metavar="SECONDS", help="write a motion too, in steps of this length")
    add("--integrator", choices=tuple(FIXED_STEP), help="of the motion (chosen by its stiffness)")
    add("--q", metavar="JOINT=VALUE", action="append", default=[], help="coordinate at the start of the motion")
    add("--v", metavar="JOINT=VALUE", action="append", default=[], help="rate at the start of the motion")
    add("--limits", choices=LIMITS, help="what the motion does at a joint's limit (end)")
    add("--unrolled", action="store_true", help="write mechanisms of very many links all the same")
    add_settings(parser)


def run(chosen: argparse.Namespace) -> int:
    path = Path(chosen.output)
    _refuse_others(chosen, path.suffix.lower())
    model = with_settings(model_of(chosen.file, **loading(chosen)), settings_of(chosen.set))
    written = export(model, tuple(chosen.functions), path, **_options(chosen, model))
    also = written.with_suffix(".h") if written.suffix.lower() == ".c" else None
    for file in filter(None, (written, also)):
        print(f"written: {file}, {file.stat().st_size / 1000:.1f} kB")
    return 0


def _refuse_others(chosen: argparse.Namespace, ending: str) -> None:
    """InputError for options that this kind of file does not take, in words of the command line."""
    for option, (ends, why) in _ONLY.items():
        if getattr(chosen, option) and ending not in ends and f"{ending}," in f"{endings()},":
            raise InputError(f"{chosen.output}: --{option} is for {' and '.join(ends)} files; {why}. Leave it out")
    if ending in MOTIONS and chosen.functions:
        found = " ".join(chosen.functions)
        raise InputError(
            f"{chosen.output}: an FMU holds a motion, whose outputs are positions, velocities and energies; "
            f"it takes no functions ({found}). Leave them out, or name a .c, .mjs or .wasm file"
        )
    for option in _OF_MOTIONS:
        if getattr(chosen, option) and chosen.step is None and ending not in MOTIONS:
            raise InputError(f"--{option} is of a motion; give --step too, such as --step 1e-3")


def _options(chosen: argparse.Namespace, model: Model) -> dict[str, Any]:
    """Options of sl.export: those that were named."""
    named = {n: getattr(chosen, n) for n in ("name", "forces", "frame", "method", "step", "integrator", "limits")}
    out = {n: x for n, x in named.items() if x is not None}
    if chosen.float:
        out["real"] = "float"
    is_motion = Path(chosen.output).suffix.lower() in MOTIONS
    if chosen.live and is_motion:
        raise InputError(f"{chosen.output}: --live is not for this file; name numbers, such as --parameter link6.mass")
    if chosen.parameter and not is_motion:
        raise InputError(f"{chosen.output}: --parameter is for .fmu files; --live makes all numbers inputs here")
    if chosen.live or chosen.parameter:
        out["parameters"] = chosen.parameter or "live"
    if chosen.unrolled:
        out["lowering"] = "unrolled"
    if is_motion and "frame" in out:
        out["frames"] = [out.pop("frame")]
    coordinates, rates = by_name(chosen.q, "--q"), by_name(chosen.v, "--v")
    if chosen.step is not None or is_motion:
        out["q"], out["v"] = initial_state(Dynamics(model), chosen.file, coordinates, rates)
    elif coordinates or rates:
        raise InputError("--q and --v are the start of a motion; give --step too, such as --step 1e-3")
    elif chosen.file.startswith("zoo:") and (model.loops or model.couplings) and _takes_near(chosen):
        out["near"] = initial_state(Dynamics(model), chosen.file, {}, {})[0]
    return out


def _takes_near(chosen: argparse.Namespace) -> bool:
    """Whether what is written is of the assembly of loops that the zoo's own start is in."""
    return Path(chosen.output).suffix.lower() not in MOTIONS and any(n in FUNCTIONS for n in chosen.functions)
