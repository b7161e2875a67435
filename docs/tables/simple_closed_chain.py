"""Writes docs/simple_closed_chain.md: operations of Lilly & Orin's method, ours beside those of their Tables 2 and 3.

python docs/tables/simple_closed_chain.py
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from counting import generic_arms, operations, plan_of, slope  # noqa: E402

import spanloop as sl  # noqa: E402
from spanloop import zoo  # noqa: E402
from spanloop.compiler.lower.phases import in_phases  # noqa: E402
from spanloop.kernels import KernelSpec  # noqa: E402
from spanloop.kernels.lowering import chain_parts  # noqa: E402

BEGINNING = """# Operations of simple closed chains

Multiplications and additions of one call of `forward_dynamics` by method `simple_closed_chain`, beside those of Lilly &
Orin's Tables 2 and 3, for generic arms: N hinges, no zero Denavit-Hartenberg parameter or entry of an inertia, point
contacts (n_c = 3) at generic points of the object. `docs/tables/simple_closed_chain.py` writes the page.

A row of Table 2 is what one more chain adds to the operations up to that result, counted on the plan (equal expressions
once): the difference between m = 4 and m = 3. The contents of rows differ; the departures are listed in
`algorithms/papers/lilly_orin/simple_closed_chain.py`: only the components of Ω and Λ⁻¹ along the constraint space are
computed; Ω is never formed but applied by a sweep (their 6N of the last row become about 25N); P and R are formed
directly at the reference member's frame, with the geometry of the contact (so that "P, R" and "XᵀP, XᵀR" are one row of
ours); and the system is refined (here twice), so that chains in singular configurations or with few joints lose no
digits. Divisions, sines and cosines are not counted, as in the paper.
"""

LONGER = """Multiplications, additions and divisions over N, n_c = 3. The slope is that of their logarithm over log N,
fitted to every N = 3 ... 40. Each further joint costs the same in every chain. The constant part makes the slope less
than 1 at m = 1; the first joints of an arm cost less, which makes it more than 1 at m = 2 and 4.
"""

INSIDE = """## Loops inside a chain

Rows of loops inside a chain are propagated to its base and factored together with those of its tip. The table is for k
four-bars in series, each on the coupler of the previous one, closed by ball joints; operations of kernels, without
redundant rows. Method `elimination` eliminates each loop where its two paths meet.
"""

# Table 2 and Table 3: (multiplications, additions) for N joints and n_c rows
TABLE = {
    "q̈_open, ẍ_open": lambda N, n: (250 * N - 182, 220 * N - 167),
    "Ω, Λ⁻¹": lambda N, n: (400 * N - 621, 320 * N - 528),
    "P, R": lambda N, n: (n**3 / 6 + 6.5 * n**2 + 16 / 3 * n + 26, n**3 / 6 + 6 * n**2 + 5 / 6 * n + 10),
    "XᵀP, XᵀR": lambda N, n: (36 * n + 20, 36 * n - 24),
    "f": lambda N, n: (36, 36),
    "q̈": lambda N, n: (6 * N, 6 * N),
}
ALONE = {"a₀": lambda m: (86, 27 * m + 71)}


def opened(m, here, world) -> list:
    """Accelerations of the open chains: of joints, and of links."""
    accelerations = [x for body in world.bodies[1:] for x in body.q_open]
    return accelerations + [x for body in world.bodies for x in body.x_open]


def admitted(m, here, world) -> list:
    shares = [x for body in world.bodies[1:] for *_, own in body.dofs for x in own.values()]
    return opened(m, here, world) + list(world.L.values()) + shares


def reflected(m, here, world) -> list:
    return admitted(m, here, world) + world.member.reflected


def solved(m, here, world) -> list:
    return reflected(m, here, world) + list(world.a0) + list(world.forces.values())


def finished(m, here, world) -> list:
    return solved(m, here, world) + [x for body in world.bodies[1:] for x in body.accelerations]


STAGES = {
    "q̈_open, ẍ_open": opened,
    "Ω, Λ⁻¹": admitted,
    "XᵀP, XᵀR": reflected,
    "f": solved,
    "q̈": finished,
}


def counted(m: int, N: int) -> dict:
    """Operations up to each stage."""
    out = {}
    for name, result in STAGES.items():
        n = plan_of(generic_arms(m, N), "simple_closed_chain", result).operations
        out[name] = (n.multiplications, n.additions)
    return out


def table(N: int) -> str:
    three, four = counted(3, N), counted(4, N)
    lines = [
        f"## N = {N}, n_c = 3\n",
        "| calculation | theirs × | theirs + | ours × | ours + |",
        "|---|---|---|---|---|",
    ]
    before = each = (0, 0)
    whole = [0.0, 0.0]
    for name in TABLE:
        theirs = TABLE[name](N, 3)
        whole = [x + y for x, y in zip(whole, theirs, strict=True)]
        if name not in STAGES:
            lines.append(f"| {name} | {theirs[0]:.0f} | {theirs[1]:.0f} | with the next row | |")
            continue
        more = tuple(b - a for a, b in zip(three[name], four[name], strict=True))
        own = tuple(x - y for x, y in zip(more, before, strict=True))
        before, each = more, more
        label = "f, XᵀP, with the refinement" if name == "f" else name
        lines.append(f"| {label} | {theirs[0]:.0f} | {theirs[1]:.0f} | {own[0]} | {own[1]} |")
    lines.append(f"| a chain | {whole[0]:.0f} | {whole[1]:.0f} | {each[0]} | {each[1]} |")
    rest = tuple(x - 3 * y for x, y in zip(three["q̈"], each, strict=True))
    alone = ALONE["a₀"](3)
    lines.append(f"| a₀, m = 3 (Table 3) | {alone[0]} | {alone[1]} | {rest[0]} | {rest[1]} |")
    total = [3 * x + y for x, y in zip(whole, alone, strict=True)]
    lines.append(f"| all, m = 3 | {total[0]:.0f} | {total[1]:.0f} | {three['q̈'][0]} | {three['q̈'][1]} |")
    return "\n".join(lines) + "\n"


def growth() -> str:
    lines = [
        "## Growth\n",
        "Critical path: operations that must follow one another, `kernel.depth`. N = 6, n_c = 3.\n",
        "| m | × | + | critical path |",
        "|---|---|---|---|",
    ]
    for m in (1, 2, 4, 8, 16, 32, 64):
        plan = plan_of(generic_arms(m, 6), "simple_closed_chain")
        lines.append(f"| {m} | {plan.operations.multiplications} | {plan.operations.additions} | {plan.depth} |")
    return "\n".join(lines) + "\n"


def longer() -> str:
    """Growth with N, at m of 1, 2 and 4."""
    every, shown = range(3, 41), (3, 6, 12, 20, 40)
    lines = [
        LONGER,
        "| m | " + " | ".join(f"N = {n}" for n in shown) + " | a joint and chain | slope |",
        "|---|" + "---|" * len(shown) + "---|---|",
    ]
    for m in (1, 2, 4):
        counts = {n: operations(plan_of(generic_arms(m, n), "simple_closed_chain")) for n in every}
        each = (counts[40] - counts[3]) / 37 / m
        numbers = " | ".join(str(counts[n]) for n in shown)
        lines.append(f"| {m} | {numbers} | {each:.0f} | {slope(every, list(counts.values())):.3f} |")
    return "\n".join(lines) + "\n"


def inside() -> str:
    """What loops inside chains cost."""
    lines = [INSIDE, "| k | simple_closed_chain × | + | elimination × | + |", "|---|---|---|---|---|"]
    for k in (1, 2, 4, 8, 16):
        counts = []
        for method in ("simple_closed_chain", "elimination"):
            model = zoo.n_four_bar(k, closure="spherical")
            counts.append(sl.compile(model, "forward_dynamics", method=method).operations)
        lines.append(f"| {k} | " + " | ".join(f"{n.multiplications} | {n.additions}" for n in counts) + " |")
    return "\n".join(lines) + "\n"


THREADS = """## Chains over threads

The chains of one state can be computed in parallel, as the paper proposes:

```python
import spanloop as sl

model = sl.zoo.arms_with_object(8)
kernel = sl.compile(model, "forward_dynamics", method="simple_closed_chain", chain_threads=2)
robot = sl.Dynamics(model, method="simple_closed_chain", chain_threads=2)
```

The compiler divides the tape, not the method: every method whose tape splits into parts supports the option, for arms,
legs and limbs. `print(kernel.phased_plan)` shows the phases. The table below lists how many operations of this method remain
joint, with every chain a part of its own, and how many the largest part has in all phases; N = 6. Results equal those of
the undivided kernel up to rounding (at most 1e-14 of the largest acceleration in our tests). Errors, refused states and
batches are the same; batches run over states (`threads=`), not over chains.

Use it for large mechanisms; it pays from 10 to 20 microseconds a call, because handing work to another core and
collecting the results costs one to several microseconds. Kernels with fewer than 15 000 divisible operations stay whole,
and their printout says so. Use it for calls in close succession (after 0.1 ms without work the other threads sleep)
and on machines with an idle core, because the call waits for a thread that has begun its part. See
[decision 19](decisions/0019-chains-over-threads.md) and `benchmarks/chain_threads.py`.
"""


def phases() -> str:
    lines = ["| m | operations | joint | largest part |", "|---|---|---|---|"]
    for m in (2, 4, 8, 16):
        spec = KernelSpec.of(zoo.arms_with_object(m), "forward_dynamics", method="simple_closed_chain")
        found = in_phases(spec.plan, [[part] for part in chain_parts(spec)], 1, 0)
        joint, beside = found.phases[::2], found.phases[1::2]
        largest = max(sum(len(x.homes[k]) for x in beside) for k in range(m))
        whole = sum(x.total for x in found.phases)
        lines.append(f"| {m} | {whole} | {sum(x.total for x in joint)} | {largest} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = "\n".join((BEGINNING, table(6), table(12), growth(), longer(), inside(), THREADS, phases()))
    (ROOT / "docs" / "simple_closed_chain.md").write_text(text, encoding="utf-8")
    print(text)
