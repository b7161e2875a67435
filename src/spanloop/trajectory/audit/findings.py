"""Findings of an audit, each with its bound and its verdict."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass

from spanloop.errors import InputError, nearest, printable

SAMPLES = "The samples are too far apart to tell: the integral over them is uncertain"
UNRECORDED = "as between samples that are several steps apart (then give sample= a step): there is no balance"
WELL, NOT_WELL, NOT_JUDGED = "well", "not well", "not judged"


@dataclass(frozen=True)
class Finding:
    """One point of an audit: the worst value met, the bound for it, the verdict, and the matter in words."""

    name: str
    value: float
    bound: float
    unit: str
    verdict: str
    sentence: str


@dataclass(frozen=True, repr=False)
class Audit:
    """What was simulated, and the findings; print it, or ask audit["energy"].value."""

    headline: str
    findings: tuple[Finding, ...]

    @property
    def well(self) -> bool:
        """Whether no finding fails its bound."""
        return not self.faults

    @property
    def faults(self) -> tuple[str, ...]:
        """Names of the findings that are not well."""
        return tuple(f.name for f in self.findings if f.verdict == NOT_WELL)

    def __getitem__(self, name: str) -> Finding:
        for f in self.findings:
            if f.name == name:
                return f
        raise InputError(f"the audit has no finding {name!r}; {nearest(name, [f.name for f in self.findings])}")

    def __repr__(self) -> str:
        return f"Audit({self._verdict()})"

    def __str__(self) -> str:
        return printable("\n".join([self.headline, *map(_line, self.findings), self._verdict()]))

    def _repr_html_(self) -> str:
        from spanloop.model.printout import heading, table

        marks = {WELL: "✓", NOT_WELL: "✗", NOT_JUDGED: "?"}
        rows = [(marks[f.verdict], f.name, f.verdict, f.sentence) for f in self.findings]
        what = self.headline.splitlines()[0]
        return heading(self._verdict(), what) + table(("", "point", "verdict", ""), rows)

    def _verdict(self) -> str:
        unknown = [f.name for f in self.findings if f.verdict == NOT_JUDGED]
        good = "What could be judged is well." if unknown else "All is well."
        sentence = f"Not well: {', '.join(self.faults)}." if self.faults else good
        return f"{sentence} Not judged: {', '.join(unknown)}." if unknown else sentence


def _line(f: Finding) -> str:
    head = f"  {f.verdict:<10}  {f.name:<16}  "
    return textwrap.fill(f.sentence, 120, initial_indent=head, subsequent_indent=" " * len(head))


def doubted(
    name: str, value: float, bound: float, doubt: float, unit: str, sentence: str, why: str = SAMPLES
) -> Finding:
    """A finding whose value is uncertain by a doubt. why: it is, where it is not judged."""
    verdict = verdict_on(value, bound, doubt)
    if verdict == NOT_JUDGED and math.isinf(doubt):
        sentence, value = f"Contacts may push where no force is recorded, {UNRECORDED}.", math.nan
    elif verdict == NOT_JUDGED:
        sentence += f" {why} by {doubt:.2g} {unit}."
    return Finding(name, value, bound, unit, verdict, sentence)


def verdict_on(value: float, bound: float, doubt: float) -> str:
    if value <= bound:
        return WELL
    return NOT_WELL if value > bound + doubt else NOT_JUDGED
