"""The function of one state: the walk in memory of its own, then a look at the numbers."""

from __future__ import annotations

from spanloop.compiler.lower.rolled import Looped
from spanloop.compiler.render.instructions import LIMIT, Real
from spanloop.compiler.render.rolled.passes import ending, entry, walk
from spanloop.compiler.render.single import FAR_ANGLE, NOT_FINITE, OFF_GUARD


def looped_single(plan: Looped, real: str) -> str:
    """Source of `kernel`."""
    t = Real(real)
    return walk(plan, t) + _scan(t) + _kernel(plan, t) + ending(t, 256)


def _scan(t: Real) -> str:
    """{0·sum, largest |x|} of n numbers."""
    v, fabs = t.value, f"@llvm.fabs.{t.suffix}"
    return f"""define internal {{ {v}, {v} }} @scan(ptr %x, i64 %n) #0 {{
entry:
%any = icmp sgt i64 %n, 0
br i1 %any, label %loop, label %done
loop:
%i = phi i64 [0, %entry], [%i.n, %loop]
%s = phi {v} [{t.constant(0.0)}, %entry], [%s.n, %loop]
%m = phi {v} [{t.constant(0.0)}, %entry], [%m.n, %loop]
%p = getelementptr {t.real}, ptr %x, i64 %i
%e = load {v}, ptr %p, align {t.size}
%s.n = call {v} @llvm.fma.{t.suffix}({v} %e, {v} {t.constant(0.0)}, {v} %s)
%a = call {v} {fabs}({v} %e)
%more = fcmp ogt {v} %a, %m
%m.n = select i1 %more, {v} %a, {v} %m
%i.n = add i64 %i, 1
%go = icmp slt i64 %i.n, %n
br i1 %go, label %loop, label %done
done:
%s.o = phi {v} [{t.constant(0.0)}, %entry], [%s.n, %loop]
%m.o = phi {v} [{t.constant(0.0)}, %entry], [%m.n, %loop]
%r = insertvalue {{ {v}, {v} }} poison, {v} %s.o, 0
%r2 = insertvalue {{ {v}, {v} }} %r, {v} %m.o, 1
ret {{ {v}, {v} }} %r2
}}
"""


def _kernel(plan: Looped, t: Real) -> str:
    """The walk of one state, then its status."""
    head = ", ".join(f"ptr %a{k}" for k in range(len(plan.inputs)))
    bytes_ = plan.size * t.size
    v = t.value
    code = [
        f"define i32 @kernel({head}, ptr %out) #0 {{",
        "entry:",
        f"%fault = alloca {v}, align 64",
        f"store {v} {t.constant(0.0)}, ptr %fault, align {t.size}",
        *entry("memory", "memory"),
        "%won = cmpxchg ptr @busy, i32 0, i32 1 acq_rel monotonic",  # another thread may be at work in it
        "%mine = extractvalue { i32, i1 } %won, 1",
        "br i1 %mine, label %go, label %fetch",
        "fetch:",
        f"%fresh = call ptr @malloc(i64 {bytes_})",
        "br label %go",
        "go:",
        "%records = phi ptr [%memory, %entry], [%fresh, %fetch]",
        f"call void @walk({head}, ptr %out, ptr %records, ptr %fault)",
        "br i1 %mine, label %give, label %free",
        "give:",
        "store atomic i32 0, ptr @busy release, align 4",
        "br label %judge",
        "free:",
        "call void @free(ptr %records)",
        "br label %judge",
        "judge:",
        f"%bad = load {v}, ptr %fault, align {t.size}",
        f"%unit = fcmp oeq {v} %bad, {t.constant(0.0)}",
    ]
    return "\n".join([*code, *_status(plan, t), "}", "declare ptr @malloc(i64)", "declare void @free(ptr)"]) + "\n"


def _status(plan: Looped, t: Real) -> list[str]:
    """Status bits of inputs and answer; %unit is true if the conditions hold."""
    v, n = t.value, len(plan.inputs)
    code: list[str] = []
    total, near = t.constant(0.0), "true"
    for k, (name, size) in enumerate((*plan.inputs, ("out", len(plan.answer)))):
        pointer = f"%a{k}" if k < n else "%out"
        code += [
            f"%r{k} = call {{ {v}, {v} }} @scan(ptr {pointer}, i64 {size})",
            f"%s{k} = extractvalue {{ {v}, {v} }} %r{k}, 0",
            f"%total{k} = fadd {v} {total}, %s{k}",
        ]
        total = f"%total{k}"
        if name in ("q", "start"):
            code += [
                f"%m{k} = extractvalue {{ {v}, {v} }} %r{k}, 1",
                f"%near{k} = fcmp olt {v} %m{k}, {t.constant(LIMIT[t.real])}",
                f"%nears{k} = and i1 {near}, %near{k}",
            ]
            near = f"%nears{k}"
    code.append(f"%fine = fcmp oeq {v} {total}, {t.constant(0.0)}")
    status = "0"
    for j, (ok, bit) in enumerate((("%fine", NOT_FINITE), (near, FAR_ANGLE), ("%unit", OFF_GUARD))):
        code += [f"%bit{j} = select i1 {ok}, i32 0, i32 {bit}", f"%st{j} = or i32 {status}, %bit{j}"]
        status = f"%st{j}"
    return [*code, f"ret i32 {status}"]
