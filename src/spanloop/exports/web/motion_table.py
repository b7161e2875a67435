"""The motion of a module: its places in the memory, where it begins, and names of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spanloop.compiler.lower import Plan, traced_inputs
from spanloop.compiler.portable.memory import LOGGED
from spanloop.compiler.portable.sines import LIMIT
from spanloop.compiler.portable.wasm_program import Program
from spanloop.exports.c_changes import angle_places, quaternion_places
from spanloop.exports.portable_motion import LEAST_SHARE, STAGE, PortableMotion
from spanloop.exports.web.coordinates import degrees_of_freedom
from spanloop.kernels.lowering import UNIT_TOLERANCE

CHECK = "checkParameters"  # the function that tests live parameters, () -> status
CLOSED = "v.closed"


def add_motion(program: Program, motion: PortableMotion) -> None:
    """The functions of a motion, and the test of its parameters where they are live."""
    program.add_schedule(motion.schedule)
    if "p" in motion.schedule.sizes:
        traced = traced_inputs((("p", motion.schedule.sizes["p"]),))
        guards = motion.parameter_guards(traced["p"])
        program.add_kernel(CHECK, Plan.of("parameter_check", traced, (0,), (), guards), reads=["p"])


def motion_table(
    motion: PortableMotion, program: Program, bodies: Sequence[str], is_controlled: bool
) -> dict[str, Any]:
    """What is needed to run it, for JSON."""
    s, system = motion.schedule, motion.problem.system
    arrays = [*dict.fromkeys((*s.state, *s.constants, *s.controls, *([CLOSED] if CLOSED in s.sizes else [])))]
    arrays += ["t", "h", *([LOGGED] if LOGGED in program.memory.places else [])]
    return {
        "step": motion.step,
        "integrator": motion.integrator,
        "begins": motion.problem.start,
        "places": {n: program.memory.places[n] for n in arrays},
        "sizes": {n: program.memory.sizes[n] for n in arrays},
        "start": {n: x.tolist() for n, x in motion.start.items()},
        "state": list(s.state),
        "changed": list(s.changed),
        "inputs": _inputs(motion, bodies, is_controlled),
        "settable": not system.contacts and not system.locates,
        "closes": system.keeps_closed,
        "angles": {"places": angle_places(motion), "most": LIMIT["double"]},
        "quaternions": {"places": quaternion_places(motion), "tolerance": UNIT_TOLERANCE},
        "stages": {
            "lengths": motion.length_places,
            "most": motion.most_changes if motion.length_places else [],
            "first": STAGE,
            "least": LEAST_SHARE,
        },
    }


def _inputs(motion: PortableMotion, bodies: Sequence[str], is_controlled: bool) -> list[dict[str, str]]:
    """Of each number u of a step its name and unit."""
    if not motion.schedule.controls:
        return []
    if is_controlled:
        return [{"name": f"u[{k}]", "unit": ""} for k in range(motion.schedule.sizes["u"])]
    out = [{"name": d["name"], "unit": d["effort"]} for d in degrees_of_freedom(motion.problem.model)]
    parts = [(f"{what} {axis}", unit) for what, unit in (("torque", "N m"), ("force", "N")) for axis in "xyz"]
    return out + [{"name": f"{body} {part}", "unit": unit} for body in bodies for part, unit in parts]
