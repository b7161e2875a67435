"""One kernel as a WebAssembly module that describes itself.

| export | what it is |
|---|---|
| memory | inputs in the order of the kernel's arguments, then the answer: float64, one array after the other from 0 |
| kernel | () → 0, or the bits of a status (portable/status.py); the answer is NaN where it is not 0 |

The custom section `spanloop` has the names, places (in numbers) and sizes of the arrays as JSON.
"""

from __future__ import annotations

import json
from typing import Any

from spanloop.compiler.lower import Looped, PairSystem, Plan
from spanloop.compiler.portable.status import TEXTS
from spanloop.compiler.portable.wasm_program import Program
from spanloop.errors import UnsupportedError

KERNEL, ANSWER, SECTION = "kernel", "answer", "spanloop"


def wasm_kernel(name: str, plan: Plan | Looped | PairSystem, dtype: str = "float64") -> bytes:
    """The module of a kernel; name: of its function; UnsupportedError where a kernel has none."""
    if dtype != "float64":
        raise UnsupportedError(f"{name}: WebAssembly modules compute in float64; compile without dtype={dtype!r}")
    plan = unrolled_only(name, plan, "WebAssembly")
    program = Program()
    program.add_kernel(KERNEL, plan, write=ANSWER)
    return program.binary({SECTION: json.dumps(_description(name, plan, program)).encode()})


def unrolled_only(name: str, plan: Plan | Looped | PairSystem, form: str) -> Plan:
    """The plan, if every operation of it is written out; form: what code for it was asked for."""
    if isinstance(plan, PairSystem):
        raise UnsupportedError(
            f"{name}: this derivative is assembled by loops over pairs of joints, which have no {form} form; "
            "sl.compile(model, function, derivative='jvp'), 'vjp' or 'jacobian' has one"
        )
    if isinstance(plan, Looped):
        raise UnsupportedError(
            f"{name}: this kernel loops over links, and loops have no {form} form; compile with lowering='unrolled' "
            f"({plan.operations.total} operations a state, each of them written out)"
        )
    return plan


def _description(name: str, plan: Plan, program: Program) -> dict[str, Any]:
    at = program.memory.places
    return {
        "function": name,
        "inputs": [{"name": n, "place": at[n], "size": size} for n, size in plan.inputs],
        "answer": {"place": at[ANSWER], "size": len(plan.outputs), "shape": list(plan.shape)},
        "status": {str(bit): text for bit, text in TEXTS.items()},
    }
