"""Counted operations: the command, the formulas, and what they must not exceed."""

from __future__ import annotations

import json
import runpy
from fractions import Fraction
from pathlib import Path

import pytest

import spanloop as sl
from spanloop import zoo
from spanloop.cli.count import COLUMNS, counts, family_of, formula, growth, polynomial
from spanloop.cli.main import main
from spanloop.errors import InputError

DOCS = Path(__file__).parents[2] / "docs"


def run(capsys, *words):
    code = main(("count", *words))
    return code, *capsys.readouterr()


def test_the_table_has_what_kernels_say(capsys):
    code, out, err = run(capsys, "zoo:puma")
    assert (code, err) == (0, "")
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in out.splitlines()[2:]}
    n = sl.compile(zoo.puma(), "inverse_dynamics").operations
    assert rows["inverse_dynamics", "newton_euler"] == [str(getattr(n, c)) for c in COLUMNS]
    assert out.splitlines()[0] == "puma: nv = 6"


def test_frames_and_json(capsys):
    code, out, _ = run(capsys, "zoo:puma", "--frame", "tool", "--json")
    assert code == 0
    report = json.loads(out)
    kernel = sl.compile(zoo.puma(), "force_response", frames="tool")
    assert report["operations"]["force_response"]["articulated_body"]["additions"] == kernel.operations.additions
    assert "jacobian" in report["operations"]


def test_a_closed_mechanism_is_counted_by_its_own_methods():
    found = counts(zoo.four_bar())
    assert ("forward_dynamics", "elimination") in found
    assert not any(function == "inverse_dynamics" and method == "newton_euler" for function, method in found)


@pytest.mark.slow
def test_growth_is_a_formula(capsys):
    code, out, _ = run(capsys, "zoo:pendulum", "--growth", "--json")
    assert code == 0
    found = json.loads(out)["formulas"]["gravity_torques"]["newton_euler"]
    n = sl.compile(zoo.pendulum(9), "gravity_torques").operations
    assert found["multiplications"] == formula(
        growth(zoo.pendulum, range(3, 9))["gravity_torques", "newton_euler"]["multiplications"]
    )
    powers = growth(zoo.pendulum, range(3, 9))["gravity_torques", "newton_euler"]["multiplications"]
    assert sum(p * 9**k for k, p in enumerate(powers)) == n.multiplications


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("zoo:puma", "--growth"), "zoo:puma takes no number"),
        (("zoo:chain:4", "--growth"), "without a number"),
        (("zoo:puma", "--frame", "tol"), "'tool'"),
    ],
)
def test_what_makes_no_sense_is_refused(capsys, words, said):
    code, _, err = run(capsys, *words)
    assert code == 2
    assert said in err


def test_polynomials_are_found_exactly_or_not_at_all():
    values = [Fraction(1, 6) * n**3 + Fraction(23, 2) * n**2 - Fraction(2, 3) * n + 5 for n in range(3, 10)]
    assert all(v.denominator == 1 for v in values)
    found = polynomial(3, [int(v) for v in values])
    assert formula(found) == "1/6n³+23/2n²−2/3n+5"
    assert formula(polynomial(2, [7] * 6)) == "7"
    assert formula(polynomial(2, [0] * 6)) == "0"
    assert formula(polynomial(1, [n - 1 for n in range(1, 7)])) == "n−1"
    assert polynomial(3, [1, 2, 4, 8, 16, 32, 64, 128]) is None
    assert polynomial(3, [3, 4, 5, 6]) == (0, 1)
    assert polynomial(3, [3, 5, 9, 15]) is None  # one value beyond a parabola's three is no confirmation


@pytest.mark.slow
def test_a_generic_arm_takes_as_few_operations_as_we_say():
    """Inverse at most 81n−104 / 69n−95; forward grows linearly, 913 / 826 at six joints."""
    found = growth(zoo.dh_arm, range(3, 9))
    inverse = found["inverse_dynamics", "newton_euler"]
    assert formula(inverse["multiplications"]) == "81n−105"
    assert formula(inverse["additions"]) == "69n−96"
    assert inverse["divisions"] == (0,)
    forward = found["forward_dynamics", "articulated_body_textbook"]
    assert all(p is not None and len(p) == 2 for p in forward.values())
    default = sl.compile(zoo.dh_arm(6), "forward_dynamics").operations
    assert default.multiplications + default.divisions <= 913
    assert default.additions <= 826


def test_the_growth_of_a_family_needs_a_family():
    with pytest.raises(InputError, match="a family of the zoo"):
        family_of("arm.urdf")


@pytest.mark.slow
def test_the_page_of_counts_is_what_is_counted():
    """If it fails after a change of an algorithm: python docs/tables/counts.py writes the page anew."""
    page = runpy.run_path(str(DOCS / "tables" / "counts.py"))["page"]()
    assert (DOCS / "counts.md").read_text(encoding="utf-8") == page
