"""The function of many states: groups of them in the lanes of vectors."""

from __future__ import annotations

from spanloop.compiler.lower.looping import Looped
from spanloop.compiler.render.faults import FAR_ANGLE, NOT_FINITE, OFF_GUARD
from spanloop.compiler.render.looping.lanes import lanes_into_rows, rows_into_lanes
from spanloop.compiler.render.looping.table import ending
from spanloop.compiler.render.looping.walk import walk
from spanloop.compiler.render.marking import marked
from spanloop.compiler.render.real import Real
from spanloop.compiler.render.sincos import LIMIT


def looped_batch(plan: Looped, real: str, width: int) -> str:
    """Source of `batch`."""
    t = Real(real, width)
    return walk(plan, t) + _batch(plan, t) + ending(t, width * t.size * 8)


def looped_scratch(plan: Looped, width: int) -> int:
    """Numbers of scratch that `batch` needs: inputs, outputs and records of a group of states."""
    return (sum(size for _, size in plan.inputs) + len(plan.answer) + plan.size + 1) * width


def _batch(plan: Looped, t: Real) -> str:
    """Groups of states: rows into lanes, the walk, lanes into rows."""
    v, n_out = t.value, len(plan.answer)
    heads = ", ".join(f"ptr %a{k}, i64 %s{k}" for k in range(len(plan.inputs)))
    code = [
        f"define i64 @batch({heads}, ptr %out, ptr %status, ptr %scratch, i64 %begin, i64 %end) #0 {{",
        "entry:",
        "%final = sub i64 %end, 1",
        f"%fault = getelementptr {v}, ptr %scratch, i64 0",
    ]
    at = 1
    for k, (_, size) in enumerate(plan.inputs):
        code.append(f"%l{k} = getelementptr {v}, ptr %scratch, i64 {at}")
        at += size
    code += [
        f"%lo = getelementptr {v}, ptr %scratch, i64 {at}",
        f"%records = getelementptr {v}, ptr %scratch, i64 {at + n_out}",
        "%any = icmp slt i64 %begin, %end",
        "br i1 %any, label %group, label %done",
        "group:",
        "%i = phi i64 [%begin, %entry], [%i.n, %tail]",
        "%before = phi i64 [0, %entry], [%count.o, %tail]",
        f"store {v} zeroinitializer, ptr %fault, align {t.size}",
    ]
    for lane in range(t.width):
        code += [
            f"%j{lane} = add i64 %i, {lane}",
            f"%j{lane}.in = icmp sle i64 %j{lane}, %final",
            f"%run{lane} = select i1 %j{lane}.in, i64 %j{lane}, i64 %final",
        ]
    filling, before, total, largest = rows_into_lanes(plan.inputs, t, "group")
    lanes = ", ".join(f"ptr %l{k}" for k in range(len(plan.inputs)))
    code += [
        *filling,
        f"call void @walk({lanes}, ptr %lo, ptr %records, ptr %fault)",
        *lanes_into_rows(n_out, t, before, total),
        *_judged(n_out, largest, t),
        "done:",
        "%result = phi i64 [0, %entry], [%count.o, %tail]",
        "ret i64 %result",
        "}",
    ]
    return "\n".join(code) + "\n"


def _judged(n_out: int, largest: str, t: Real) -> list[str]:
    """States that have no answer are marked and counted; then the next group."""
    v, w = t.value, t.width
    masks = (("%fine", NOT_FINITE), ("%near", FAR_ANGLE), ("%unit", OFF_GUARD))
    return [
        "judge:",
        f"%bad = load {v}, ptr %fault, align {t.size}",
        f"%fine = fcmp oeq {v} %b.tn, {t.constant(0.0)}",
        f"%near = fcmp olt {v} {largest}, {t.constant(LIMIT[t.real])}",
        f"%unit = fcmp oeq {v} %bad, {t.constant(0.0)}",
        f"%both = and {t.truth} %fine, %near",
        f"%well = and {t.truth} %both, %unit",
        f"%well.bits = bitcast {t.truth} %well to i{w}",
        f"%all = icmp eq i{w} %well.bits, -1",
        "br i1 %all, label %tail, label %mark",
        *marked(t, masks, n_out),
        "tail:",
        "%more = phi i64 [0, %judge], [%count.sum, %marked]",
        "%count.o = add i64 %before, %more",
        f"%i.n = add i64 %i, {w}",
        "%go = icmp slt i64 %i.n, %end",
        "br i1 %go, label %group, label %done",
    ]
