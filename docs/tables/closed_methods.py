"""Writes the last part of docs/closed_chains.md: operations of every method for mechanisms with closed loops.

python docs/tables/closed_methods.py
"""

from __future__ import annotations

from pathlib import Path

from spanloop import zoo
from spanloop.algorithms.catalog import FUNCTIONS
from spanloop.errors import UnsupportedError
from spanloop.kernels import operations

PAGE = Path(__file__).parents[1] / "closed_chains.md"

HEADING = "## Operations of forward dynamics"
ABOVE = """
Multiplications, additions and divisions of one call, counted on the plan; – where a method does not support the mechanism.
`docs/tables/closed_methods.py` writes the table.
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
    lines = ["", "| mechanism | nv | " + " | ".join(f"`{m}`" for m in methods) + " |"]
    lines.append("|---" * (2 + len(methods)) + "|")
    for name, make in MECHANISMS.items():
        model = make()
        lines.append(f"| {name} | {model.nv} | " + " | ".join(counted(model, m) for m in methods) + " |")
    return ABOVE + "\n".join(lines) + "\n"


if __name__ == "__main__":
    above, _, _ = PAGE.read_text(encoding="utf-8").partition(HEADING)
    PAGE.write_text(above + HEADING + "\n" + written(), encoding="utf-8")
