"""Writes docs/closed_chains.md: the methods for mechanisms with closed loops, which fits what, and operations of each.

python docs/tables/closed_methods.py
"""

from __future__ import annotations

from pathlib import Path

from spanloop import zoo
from spanloop.algorithms.catalog import FUNCTIONS
from spanloop.compiling import operations
from spanloop.errors import UnsupportedError

PAGE = Path(__file__).parents[1] / "closed_chains.md"

BEGINNING = """# Methods for closed chains

`sl.Dynamics(model, method=NAME)` chooses one; they give the same accelerations to 1e-10 wherever they fit. The default,
`elimination`, fits everything and usually costs least. The others are the papers' own, so that a reader can put the page of
code beside the paper, and because some give more than accelerations. A method that does not fit a model says why when
its kernel is made. Written by `docs/tables/closed_methods.py`.

| method | from | fits | operations grow as | more |
|---|---|---|---|---|
| `elimination` | rows eliminated where they meet ([decision 9](decisions/0009-loops-by-elimination.md)) | every mechanism | n + rows on chains of loops | the default; also corrects positions and velocities |
| `dense` | the whole matrix, factored | every mechanism | (n + rows)³ | the baseline |
| `simple_closed_chain` | Lilly & Orin | one reference member without which the rest falls into chains on the support: arms, fingers, legs; chains with loops of their own | m N | [counts beside their Tables 2 and 3](simple_closed_chain.md); chains over threads; `kernel.depth` as N + log₂ m |
| `closed_topology` | Rodriguez, Jain & Kreutz | every mechanism without gears | n N_E + N_E³; m N where arms hold one free body | [its steps as kernels of their own](closed_topology.md); operators |
| `arms_on_object` | Kreutz & Rodriguez, 4.9 | arms on one free body, each with a closure of its own | that of `open_chain=` for each row, + ℓ³ | `open_chain=` any method for trees |
| `arms_on_object_1`, `_2`, `_3` | Kreutz & Rodriguez, 6.11, 6.18, 6.22 | the same | n + ℓ³ | `robot.grasp_accelerations` is their Ẇ(0) |
| `parallel_legs` | Saha, section 3 | legs on one platform, as many actuators as freedoms | n · actuators | [an ODE in the actuated coordinates](simulation.md): `closures="minimal"`, `robot.minimal`, `robot.actuated_inverse_dynamics`; N_l, N_c, N_d |

m chains (ℓ arms) of N joints, n joints in all, N_E rows. Arms in singular positions, or with fewer than six joints, are no obstacle as
long as the accelerations are unique ([singular.md](singular.md)).

Torques for a motion: `robot.inverse_dynamics(q, v, a, actuated=...)` (unique, of least norm, weighted, or with given internal forces),
`robot.solve_inverse` (closure forces too), `method="subsystems"` for Saha's recursion over subsystems, which `robot.subsystems()` prints;
`robot.follow(start, path)` completes a motion from the actuated joints alone. Examples as pages: [examples/](examples/README.md).

## Operations of forward dynamics

Multiplications, additions and divisions of one call, counted on the plan; – where the method does not fit.
"""

MECHANISMS = {
    "four_bar": zoo.four_bar,
    "five_bar": zoo.five_bar,
    "andrews": zoo.andrews,
    "carpet_scraper": zoo.carpet_scraper,
    "flyball_governor": zoo.flyball_governor,
    "bricard": zoo.bricard,
    "linkage_leg": zoo.linkage_leg,
    "delta": zoo.delta,
    "stewart": zoo.stewart,
    "hexapod": zoo.hexapod,
    "arms_with_object(2)": lambda: zoo.arms_with_object(2),
    "arms_with_object(8)": lambda: zoo.arms_with_object(8),
    "three_pumas": zoo.three_pumas,
    "arms_with_linkage": zoo.arms_with_linkage,
    "n_four_bar(8)": lambda: zoo.n_four_bar(8),
}


def counted(model, method: str) -> str:
    try:
        n = operations(model, "forward_dynamics", method)
    except UnsupportedError:
        return "–"
    return str(n.multiplications + n.additions + n.divisions)


def written() -> str:
    methods = list(FUNCTIONS["forward_dynamics"].closed or ())
    lines = ["", "| mechanism | nv | " + " | ".join(f"`{m}`" for m in methods) + " |", "|---" * (2 + len(methods)) + "|"]
    for name, make in MECHANISMS.items():
        model = make()
        lines.append(f"| {name} | {model.nv} | " + " | ".join(counted(model, m) for m in methods) + " |")
    return BEGINNING + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
