"""Loss report of a saved file: what its format cannot hold of a model, and what it represents in another way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spanloop.model.model import Model
from spanloop.model.parts import Coupling

FOR_CONTACTS = ("point", "plane", "hull")  # shapes that no other format has
GRAVITY = (0.0, 0.0, -9.81)  # which programs assume where a file does not give it


@dataclass(frozen=True)
class Written:
    """A model as the text of a file: `lost` lists what the format cannot hold, `remarks` what it holds otherwise;
    `beside`: files that stand beside it, by name."""

    text: str
    lost: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    beside: Mapping[str, bytes] = field(default_factory=dict)


@dataclass
class LossReport:
    """Collects losses and changes while a file is written: one sentence for each kind, with its parts."""

    losses: dict[str, list[str]] = field(default_factory=dict)
    changes: dict[str, list[str]] = field(default_factory=dict)

    def lose(self, what: str, part: str) -> None:
        """Report a part that the format cannot hold."""
        self.losses.setdefault(what, []).append(part)

    def remark(self, what: str, part: str) -> None:
        """Report a part that the format represents in another way."""
        self.changes.setdefault(what, []).append(part)

    def written(self, text: str) -> Written:
        """The text of the file with this report."""
        return Written(text, _sentences(self.losses), _sentences(self.changes))


def lose_actuators_sensors_gravity(model: Model, report: LossReport) -> None:
    """Report actuators, sensors and gravity as lost, for a format that has no elements for them."""
    for a in model.actuators:
        report.lose("actuators", repr(a.name))
    for s in model.sensors:
        report.lose("sensors", repr(s.name))
    if model.gravity != GRAVITY:
        report.lose("gravity", f"{model.gravity}")


def without_contacts(model: Model, report: LossReport) -> Model:
    """The model without contacts and the shapes that only contacts have, which are lost."""
    for c in model.contacts:
        report.lose("contacts", repr(c.name))
    bodies = []
    for b in model.bodies:
        kept = tuple(g for g in b.geometry if g.shape not in FOR_CONTACTS)
        for g in b.geometry:
            if g not in kept:
                report.lose(f"shapes that are a {g.shape}", f"body {b.name!r}")
        bodies.append(b if len(kept) == len(b.geometry) else replace(b, geometry=kept))
    return replace(model, bodies=tuple(bodies), contacts=())


def mimics(model: Model, report: LossReport) -> dict[str, Coupling]:
    """The coupling by joint that <mimic> can say; the others are lost, and that a coupling can be switched."""
    out: dict[str, Coupling] = {}
    for c in sorted(model.couplings, key=lambda c: c.switchable):
        if c.source is None:
            report.lose("couplings that hold a joint", repr(c.name))
        elif c.joint in out:
            report.lose("further couplings of a joint", repr(c.name))
        else:
            out[c.joint] = c
            if c.switchable:
                report.lose("that the coupling is switchable", repr(c.name))
    return out


def _sentences(found: dict[str, list[str]]) -> tuple[str, ...]:
    out = []
    for what, parts in found.items():
        parts = list(dict.fromkeys(parts))
        shown = ", ".join(parts[:3]) + (f" and {len(parts) - 3} more" if len(parts) > 3 else "")
        out.append(f"{what}: {shown}")
    return tuple(out)
