"""Rows of a group of states into lanes and back, with a look at every number on the way."""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.compiler.render.real import Real


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
    held = "poison"
    for lane in range(t.width):
        code += [
            f"%{tag}.p{lane} = getelementptr {t.real}, ptr %{tag}.r{lane}, i64 %{tag}.i",
            f"%{tag}.x{lane} = load {t.real}, ptr %{tag}.p{lane}, align {t.size}",
            f"%{tag}.v{lane} = insertelement {v} {held}, {t.real} %{tag}.x{lane}, i32 {lane}",
        ]
        held = f"%{tag}.v{lane}"
    code += [
        f"%{tag}.to = getelementptr {v}, ptr %l{k}, i64 %{tag}.i",
        f"store {v} {held}, ptr %{tag}.to, align {t.size}",
        f"%{tag}.tn = call {v} @llvm.fma.{t.suffix}({v} {held}, {v} {t.constant(0.0)}, {v} %{tag}.t)",
    ]
    if name in ("q", "start"):
        code += [
            f"%{tag}.ab = call {v} @llvm.fabs.{t.suffix}({v} {held})",
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
            f"%b.e{lane} = extractelement {v} %b.x, i32 {lane}",
            f"store {t.real} %b.e{lane}, ptr %b.q{lane}, align {t.size}",
        ]
    return [
        *code,
        "%b.n = add i64 %b.i, 1",
        f"%b.more = icmp slt i64 %b.n, {size}",
        "br i1 %b.more, label %back, label %judge",
    ]
