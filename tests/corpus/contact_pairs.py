"""Compares the contacts of every MJCF of a folder with those that MuJoCo's own collision detection finds.

    python tests/corpus/contact_pairs.py --folder F [--only TEXT]

MuJoCo gets the file itself, and margins so large that every pair that its filters let through is a contact. Of the
pairs whose shapes have a gap in closed form here, both must find the same, with the same friction, torsion and rolling.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from pathlib import Path

import mujoco
from model_files import model_files

import spanloop as sl
from spanloop.model.contacts.contact import PAIRS
from spanloop.model.contacts.contact_check import links_of
from spanloop.model.files import contact_pairs
from spanloop.model.orders.mujoco import body_names

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from mujoco_contacts import colliding, shape

LEAST = 1e-5  # MuJoCo's friction where a file has less
MOST_GEOMS = 400  # MuJoCo's arena holds the contacts of all pairs
Found = Counter[tuple[frozenset[tuple[str, str]], tuple[float, ...]]]


def ours(path: Path, root: Path) -> tuple[sl.Model, Found]:
    """The model, and its contacts: shapes with their bodies, friction, torsion, rolling."""
    model = sl.load(path, root=root, contacts=True)
    found: Found = Counter()
    for c in model.contacts:
        found[_key([(s.at, s.geometry.shape) for s in c.sides], (c.friction, c.torsion, c.rolling))] += 1
    return model, found


def mujocos(path: Path) -> tuple[Found, Counter[str]]:
    """The same of the pairs that MuJoCo finds and that are supported here, and the kinds of the others."""
    spec = mujoco.MjSpec.from_file(str(path))
    spec.compiler.fusestatic, spec.compiler.discardvisual, spec.memory = False, False, 1 << 30
    m = spec.compile()
    if m.ngeom > MOST_GEOMS or m.nflex:
        raise ValueError("too large, or with flexes")
    names, found, others = body_names(m), Counter(), Counter()
    for geoms, values in colliding(m).items():
        sides = [(names[int(m.geom_bodyid[g])], shape(m, g)[1]) for g in geoms]
        kinds = tuple(kind for _, kind in sides)
        if any(m.geom_dataid[g] >= 0 for g in geoms):  # a shape that is fitted to a mesh
            others["mesh"] += 1
        elif kinds in PAIRS or kinds[::-1] in PAIRS:
            found[_key(sides, values)] += 1
        else:
            others[" with ".join(sorted(kinds))] += 1
    return found, others


def _key(
    sides: list[tuple[str, str]], values: tuple[float, ...]
) -> tuple[frozenset[tuple[str, str]], tuple[float, ...]]:
    return frozenset(sides), tuple(round(x, 9) if x > LEAST else 0.0 for x in values)


def apart(found: Found, model: sl.Model) -> Found:
    """Without pairs that are one link here: equality constraints of MuJoCo are soft, a weld is exact here."""
    links = links_of(model, model.joints)
    return Counter(
        {key: n for key, n in found.items() if len({links[body] for body, _ in key[0]}) > 1 or len(key[0]) < 2}
    )


def compared(path: Path, root: Path, bound: int) -> Counter[str]:
    """What a file adds to the tally."""
    try:
        theirs, others = mujocos(path)
    except (ValueError, mujoco.FatalError) as error:
        return Counter([f"not compared: MuJoCo: {str(error).split(':')[0][:40]}"])
    try:
        model, own = ours(path, root)
    except sl.SpanloopError as error:
        return Counter([f"not compared: {type(error).__name__}"])
    theirs = apart(theirs, model)
    if own != theirs:
        print(path, "only here:", list((own - theirs).items())[:3])
        print("    only in MuJoCo:", list((theirs - own).items())[:3])
    tally = Counter(["same" if own == theirs else "DIFFERENT"])
    grounded = sum(any(s.at == "world" for s in c.sides) for c in model.contacts)
    tally += Counter({"pairs": theirs.total(), "pairs of other shapes": others.total()})
    tally += Counter({"files with pairs": int(bool(theirs)), "pairs with shapes of the world": grounded})
    tally += Counter({f"files with more than {bound} pairs": int(theirs.total() > bound)})
    return tally + Counter({f"files with more than {bound} pairs with shapes of the world": int(grounded > bound)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    bound, contact_pairs.MOST_PAIRS = contact_pairs.MOST_PAIRS, 10**9
    tally: Counter[str] = Counter()
    for file in model_files(asked.folder):
        if file.format == "MJCF" and asked.only in file.path:
            tally += compared(asked.folder / file.path, asked.folder / file.package, bound)
    for what, n in tally.most_common():
        print(f"{n:8d}  {what}")


if __name__ == "__main__":
    main()
