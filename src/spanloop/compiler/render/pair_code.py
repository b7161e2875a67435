"""A PairSystem as LLVM functions `kernel` and `batch`: the front's own, then `finish` (pair_solution.py).

Batches compute the front with a lane a state, then finish one state after the other, while its matrices are in the
fastest memory.
"""

from __future__ import annotations

from spanloop.compiler.lower.pair_system import PairSystem
from spanloop.compiler.lower.rolled import Looped
from spanloop.compiler.render.batch import batch, scratch_size
from spanloop.compiler.render.instructions import Real
from spanloop.compiler.render.pair_solution import Finish
from spanloop.compiler.render.rolled import looped_batch, looped_scratch, looped_single
from spanloop.compiler.render.single import NOT_FINITE, single
from spanloop.compiler.render.vector_code import LANES

STACK = 32768  # numbers of work that fit the stack


def pair_single(plan: PairSystem, real: str) -> str:
    """Source of `kernel`."""
    t, front = Real(real), plan.front
    own = looped_single(front, real) if isinstance(front, Looped) else single(front, real)
    finish = Finish(plan, real)
    given = ", ".join(f"ptr %a{k}" for k in range(len(plan.inputs)))
    count = finish.size + plan.width + 2 * LANES
    far = count > STACK
    code = [f"define i32 @kernel({given}, ptr %out) #0 {{", "entry:"]
    if far:
        code.append(f"%memory = call ptr @malloc(i64 {count * t.size})")
    else:
        code.append(f"%memory = alloca [{count} x {real}], align 64")
    code += [
        *_aligned("%memory", "%work", t),
        f"%numbers = getelementptr {real}, ptr %work, i64 {finish.size}",
        f"%status = call i32 @front({given}, ptr %numbers)",
        "%well = icmp eq i32 %status, 0",
        "br i1 %well, label %go, label %done",
        "go:",
        "%fine = call i1 @finish(ptr %numbers, ptr %work, ptr %out)",
        f"%found = select i1 %fine, i32 0, i32 {NOT_FINITE}",
        "br label %done",
        "done:",
        "%all = phi i32 [%status, %entry], [%found, %go]",
        *(["call void @free(ptr %memory)"] if far else []),
        "ret i32 %all",
        "}",
    ]
    text = own.replace("@kernel(", "@front(") + finish.source() + "\n".join(code) + "\n"
    return text + _declared(text, t, far)


def pair_batch(plan: PairSystem, real: str, width: int) -> str:
    """Source of `batch`."""
    t, front = Real(real), plan.front
    own = looped_batch(front, real, width) if isinstance(front, Looped) else batch(front, real, width)
    heads = ", ".join(f"ptr %a{k}, i64 %s{k}" for k in range(len(plan.inputs)))
    n_out = plan.n * 3 * plan.n
    finish, at = Finish(plan, real), _front_scratch(plan, width)
    rows = width * plan.width + LANES
    aligned = "\n".join(_aligned("%free", "%work", t))
    text = f"""define i64 @batch({heads}, ptr %out, ptr %status, ptr %scratch, i64 %begin, i64 %end) #0 {{
entry:
%numbers = getelementptr {real}, ptr %scratch, i64 {at}
%free = getelementptr {real}, ptr %scratch, i64 {at + rows}
{aligned}
%any = icmp slt i64 %begin, %end
br i1 %any, label %group, label %exit
group:
%i = phi i64 [%begin, %entry], [%i.n, %after]
%bad = phi i64 [0, %entry], [%b, %after]
%full = add i64 %i, {width}
%short = icmp slt i64 %full, %end
%last = select i1 %short, i64 %full, i64 %end
%back = mul i64 %i, {-plan.width}
%base = getelementptr {real}, ptr %numbers, i64 %back
%ill = call i64 @front({heads}, ptr %base, ptr %status, ptr %scratch, i64 %i, i64 %last)
%bad.front = add i64 %bad, %ill
br label %state
state:
%j = phi i64 [%i, %group], [%j.n, %next]
%b = phi i64 [%bad.front, %group], [%b.n, %next]
%inside = icmp slt i64 %j, %last
br i1 %inside, label %look, label %after
look:
%to = mul i64 %j, {n_out}
%row = getelementptr {real}, ptr %out, i64 %to
%st.p = getelementptr i8, ptr %status, i64 %j
%st = load i8, ptr %st.p
%well = icmp eq i8 %st, 0
br i1 %well, label %go, label %void
go:
%k = sub i64 %j, %i
%from.at = mul i64 %k, {plan.width}
%from = getelementptr {real}, ptr %numbers, i64 %from.at
%fine = call i1 @finish(ptr %from, ptr %work, ptr %row)
br i1 %fine, label %next, label %mark
mark:
store i8 {NOT_FINITE}, ptr %st.p
br label %void
void:
%more = phi i64 [0, %look], [1, %mark]
br label %cell
cell:
%c = phi i64 [0, %void], [%c.n, %cell]
%c.p = getelementptr {real}, ptr %row, i64 %c
store {real} {t.constant(float("nan"))}, ptr %c.p, align {t.size}
%c.n = add i64 %c, 1
%c.more = icmp slt i64 %c.n, {n_out}
br i1 %c.more, label %cell, label %next
next:
%one = phi i64 [0, %go], [%more, %cell]
%b.n = add i64 %b, %one
%j.n = add i64 %j, 1
br label %state
after:
%i.n = add i64 %i, {width}
%on = icmp slt i64 %i.n, %end
br i1 %on, label %group, label %exit
exit:
%total = phi i64 [0, %entry], [%b, %after]
ret i64 %total
}}
"""
    text = own.replace("@batch(", "@front(") + finish.source() + text
    return text + _declared(text, t, False)


def pair_scratch(plan: PairSystem, real: str, width: int) -> int:
    """Numbers of scratch that `batch` needs."""
    return _front_scratch(plan, width) + width * plan.width + 2 * LANES + Finish(plan, real).size


def _front_scratch(plan: PairSystem, width: int) -> int:
    front = plan.front
    size = looped_scratch(front, width) if isinstance(front, Looped) else scratch_size(front, width)
    return -(-size // LANES) * LANES


def _aligned(pointer: str, name: str, t: Real) -> list[str]:
    """The next place whose vectors lie in one line of the cache."""
    return [
        f"{name}.at = ptrtoint ptr {pointer} to i64",
        f"{name}.up = add i64 {name}.at, {LANES * t.size - 1}",
        f"{name}.whole = and i64 {name}.up, {-LANES * t.size}",
        f"{name} = inttoptr i64 {name}.whole to ptr",
    ]


def _declared(text: str, t: Real, far: bool) -> str:
    wide = t.wide(LANES)
    name = f"@llvm.masked.store.{wide.suffix}.p0"
    lines = {"declare void @llvm.prefetch.p0(": "(ptr, i32, i32, i32)"}
    if name + "(" in text:
        lines[f"declare void {name}("] = f"({wide.value}, ptr, i32, <{LANES} x i1>)"
    if far:
        lines |= {"declare ptr @malloc(": "(i64)", "declare void @free(": "(ptr)"}
    return "".join(f"{head[:-1]}{tail}\n" for head, tail in lines.items() if head not in text)
