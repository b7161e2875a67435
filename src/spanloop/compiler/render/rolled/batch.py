"""The function of many states: groups of them in the lanes of vectors."""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.compiler.lower.rolled import Looped
from spanloop.compiler.render.batch import marked
from spanloop.compiler.render.instructions import LIMIT, Real
from spanloop.compiler.render.rolled.passes import ending, walk
from spanloop.compiler.render.single import FAR_ANGLE, NOT_FINITE, OFF_GUARD


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


# ---- rows of a group of states into lanes and back; every number is checked on the way


def rows_into_lanes(inputs: Sequence[tuple[str, int]], t: Real, before: str) -> tuple[list[str], str, str, str]:
    """Inputs from rows into lanes; the last label, the sum of zeros that tells finiteness, the largest coordinate."""
    code: list[str] = []
    total = largest = t.constant(0.0)
    for k, (name, size) in enumerate(inputs):
        tag = f"c{k}"
        for lane in range(t.width):
            code += [
                f"%{tag}.o{lane} = mul i64 %run{lane}, %s{k}",
                f"%{tag}.r{lane} = getelementptr {t.real}, ptr %a{k}, i64 %{tag}.o{lane}",
            ]
        if size:
            code += _filled(k, name, size, t, before, total, largest)
            before, total, largest = f"{tag}.end", f"%{tag}.tn", f"%{tag}.gn"
    return code, before, total, largest


def _filled(k: int, name: str, size: int, t: Real, before: str, total: str, largest: str) -> list[str]:
    """The loop over the entries of one input."""
    tag, v = f"c{k}", t.value
    code = [
        f"br label %{tag}",
        f"{tag}:",
        f"%{tag}.i = phi i64 [0, %{before}], [%{tag}.n, %{tag}]",
        f"%{tag}.t = phi {v} [{total}, %{before}], [%{tag}.tn, %{tag}]",
        f"%{tag}.g = phi {v} [{largest}, %{before}], [%{tag}.gn, %{tag}]",
    ]
    vector = "poison"
    for lane in range(t.width):
        code += [
            f"%{tag}.p{lane} = getelementptr {t.real}, ptr %{tag}.r{lane}, i64 %{tag}.i",
            f"%{tag}.x{lane} = load {t.real}, ptr %{tag}.p{lane}, align {t.size}",
        ]
        if t.width > 1:
            code.append(f"%{tag}.v{lane} = insertelement {v} {vector}, {t.real} %{tag}.x{lane}, i32 {lane}")
        vector = f"%{tag}.{'v' if t.width > 1 else 'x'}{lane}"
    code += [
        f"%{tag}.to = getelementptr {v}, ptr %l{k}, i64 %{tag}.i",
        f"store {v} {vector}, ptr %{tag}.to, align {t.size}",
        f"%{tag}.tn = call {v} @llvm.fma.{t.suffix}({v} {vector}, {v} {t.constant(0.0)}, {v} %{tag}.t)",
    ]
    if name in ("q", "start"):
        code += [
            f"%{tag}.ab = call {v} @llvm.fabs.{t.suffix}({v} {vector})",
            f"%{tag}.mo = fcmp ogt {v} %{tag}.ab, %{tag}.g",
            f"%{tag}.gn = select {t.truth} %{tag}.mo, {v} %{tag}.ab, {v} %{tag}.g",
        ]
    else:
        code.append(f"%{tag}.gn = select i1 true, {v} %{tag}.g, {v} %{tag}.g")
    return [
        *code,
        f"%{tag}.n = add i64 %{tag}.i, 1",
        f"%{tag}.more = icmp slt i64 %{tag}.n, {size}",
        f"br i1 %{tag}.more, label %{tag}, label %{tag}.end",
        f"{tag}.end:",
    ]


def lanes_into_rows(size: int, t: Real, before: str, total: str) -> list[str]:
    """The answer from lanes into rows; %b.tn is then the sum that tells finiteness."""
    v = t.value
    code = [
        "br label %back",
        "back:",
        f"%b.i = phi i64 [0, %{before}], [%b.n, %back]",
        f"%b.t = phi {v} [{total}, %{before}], [%b.tn, %back]",
        f"%b.p = getelementptr {v}, ptr %lo, i64 %b.i",
        f"%b.x = load {v}, ptr %b.p, align {t.size}",
        f"%b.tn = call {v} @llvm.fma.{t.suffix}({v} %b.x, {v} {t.constant(0.0)}, {v} %b.t)",
    ]
    for lane in range(t.width):
        code += [
            f"%b.o{lane} = mul i64 %run{lane}, {size}",
            f"%b.k{lane} = add i64 %b.o{lane}, %b.i",
            f"%b.q{lane} = getelementptr {t.real}, ptr %out, i64 %b.k{lane}",
        ]
        if t.width > 1:
            code.append(f"%b.e{lane} = extractelement {v} %b.x, i32 {lane}")
        number = f"%b.e{lane}" if t.width > 1 else "%b.x"
        code.append(f"store {t.real} {number}, ptr %b.q{lane}, align {t.size}")
    return [
        *code,
        "%b.n = add i64 %b.i, 1",
        f"%b.more = icmp slt i64 %b.n, {size}",
        "br i1 %b.more, label %back, label %judge",
    ]
