"""Writes docs/counts.md: operations of inverse and forward dynamics beside those of Saha's Tables 1 and 2.

python docs/tables/counts.py
"""

from __future__ import annotations

from fractions import Fraction
from itertools import zip_longest
from pathlib import Path

from spanloop import zoo
from spanloop.cli.count import counts, formula, growth

ROOT = Path(__file__).parents[2]
SIZES = range(3, 11)

# algorithm, multiplications with divisions, additions with subtractions: coefficients of n⁰, n¹, ...
TABLE_1 = (
    ("Hollerbach (1980)", (-277, 412), (-201, 320)),
    ("Luh et al. (1980)", (-48, 150), (48, 131)),
    ("Walker and Orin (1982)", (-22, 137), (-11, 101)),
    ("RIDIM (Saha, 1999)", (-44, 120), (-55, 97)),
    ("Khalil et al. (1986)", (-92, 105), (-86, 94)),
    ("Angeles et al. (1989)", (-109, 105), (-105, 90)),
    ("Balafoutis et al. (1988)", (-69, 93), (-65, 81)),
)
TABLE_2 = (
    ("Mohan and Saha (2007)", (-128, 173), (-133, 150)),
    ("Saha (2003)", (-284, 191), (-325, 187)),
    ("Featherstone (1983)", (-198, 199), (-173, 174)),
    ("Valasek", (-343, 226), (-345, 206)),
    ("Brandle et al.", (-222, 250), (-198, 220)),
    (
        "Walker and Orin, as implemented by Featherstone",
        (-47, Fraction(115, 3), Fraction(23, 2), Fraction(1, 6)),
        (-46, Fraction(233, 6), 7, Fraction(1, 6)),
    ),
)

BEGINNING = """# Operation counts

Multiplications (M) and additions (A) of inverse and forward dynamics of an arm with n hinges: Saha's Tables 1 and 2,
quoted, and our kernels, counted on their plans. `docs/tables/counts.py` writes the page; `spanloop count MODEL` counts
any mechanism.

How to read the tables:

* A division counts as a multiplication and a subtraction as an addition, as in Saha's tables; sines and cosines do not
  count. The last entry of Table 1 is additions (the text has an M there). Our counts precede the fusion of
  multiplications and additions.
* The papers' formulas are for arms with general Denavit-Hartenberg parameters on a fixed base. Ours are for
  `zoo.dh_arm(n)`: no twist is a right angle, no length, offset or product of inertia is zero, gravity acts along z of the
  first frame. They are polynomials that hold exactly from n = 3 to 10, not fits; "no formula" means that none
  of degree 3 holds at all these sizes. A twist of a right angle, a zero length or a symmetric body costs less: the
  PUMA's row below is its own count, not the formula at n = 6.
* The convention of the arms is T_i = Rz(θ) Tz(b) Tx(a) Rx(α), which maps frame i+1 to frame i; frame i+1 is fixed to
  link i; r_i points from the mass centre C_i to the origin of frame i+1, in frame i+1, so C_i = O_{i+1} − r_i; I_i is
  about C_i in frame i+1; gravity is 9.81 m/s² along −z of frame 1. The text does not state gravity, and leaves the sign
  of r_i open; for the PUMA this convention places every mass centre on its link.
* The first of our methods in a table is the default. `decoupled_complement` is Saha's, `articulated_body` that of Kreutz
  and Rodriguez (eq. 5.14), `virtual_work` that of Yamane and Nakamura, with two passes over its paths (decision 13),
  `unit_vector` the papers' baseline, method 1 of Walker and Orin; the others are textbook methods. On a serial arm
  no link is split, and both forms of `virtual_work` are the same.
* The n* and n⁺ of Table 2 (the size above which an O(n) algorithm beats the O(n³) one) are not repeated.

Our counts are lower because of frames with the joint's axis z and planar rotations only, ten inertial parameters
regrouped to seven, classical accelerations, the row and column that an elimination makes zero, three multiplications
instead of four where a constant twist rotates a plane of an inertia, and in `articulated_body` biases that are
propagated outward first (decision 16).
"""


def value(powers, n: int) -> str:
    return str(sum(Fraction(p) * n**k for k, p in enumerate(powers)))


def fractions(powers) -> tuple[Fraction, ...]:
    return tuple(Fraction(p) for p in powers)


def rows(published, own) -> list[str]:
    """Published rows, then ours in bold, each with its value for six joints."""
    lines = ["| algorithm | M | A | n = 6 |", "|---|---|---|---|"]
    for name, m, a in published:
        lines.append(
            f"| {name} | {formula(fractions(m))} | {formula(fractions(a))} | {value(m, 6)} M {value(a, 6)} A |"
        )
    lines += [f"| **spanloop, {name}** | {m} | {a} | {six} |" for name, m, a, six in own]
    return lines


def ours(found, six, function: str):
    """Method, formulas of multiplications with divisions and of additions, counts at six joints."""
    for (name, method), columns in found.items():
        if name == function:
            n = six[name, method]
            m, d, a = (columns[c] for c in ("multiplications", "divisions", "additions"))
            both = None if m is None or d is None else [x + y for x, y in zip_longest(m, d, fillvalue=Fraction(0))]
            at_six = f"{n.multiplications + n.divisions} M {n.additions} A"
            yield f"`{method}`", formula(both and tuple(both)), formula(a), at_six


def puma() -> list[str]:
    lines = ["| function | method | M | of them ÷ | A | sine/cosine pairs |", "|---|---|---|---|---|---|"]
    for (function, method), n in counts(zoo.puma()).items():
        m = n.multiplications + n.divisions
        lines.append(f"| {function} | `{method}` | {m} | {n.divisions} | {n.additions} | {n.sincos} |")
    return lines


def page() -> str:
    found, six = growth(zoo.dh_arm, SIZES), counts(zoo.dh_arm(6))
    parts = [
        BEGINNING,
        "## Inverse dynamics (Saha, Table 1)\n",
        *rows(TABLE_1, ours(found, six, "inverse_dynamics")),
        "\n## Forward dynamics (Saha, Table 2)\n",
        *rows(TABLE_2, ours(found, six, "forward_dynamics")),
        "\n## Other functions of an arm with n hinges\n",
        *rows((), [(f"{f}, {row[0]}", *row[1:]) for f in _others(found) for row in ours(found, six, f)]),
        "\n## The PUMA (Saha, Table 3)\n",
        *puma(),
    ]
    return "\n".join(parts) + "\n"


def _others(found) -> list[str]:
    return [f for f in dict.fromkeys(f for f, _ in found) if f not in ("inverse_dynamics", "forward_dynamics")]


if __name__ == "__main__":
    text = page()
    (ROOT / "docs" / "counts.md").write_text(text, encoding="utf-8")
    print(text)
