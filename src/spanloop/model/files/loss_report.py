"""What a format could not hold of a model, and what it holds in another way."""

from __future__ import annotations

from dataclasses import dataclass, field

from spanloop.model.model import Model

GRAVITY = (0.0, 0.0, -9.81)  # what programs assume where a file does not say


@dataclass(frozen=True)
class Written:
    """A model as the text of a file: `lost` says what the format cannot hold, `remarks` what it holds otherwise."""

    text: str
    lost: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass
class Account:
    """Gathers both while a file is written: one sentence a sort, with the parts it is about."""

    losses: dict[str, list[str]] = field(default_factory=dict)
    changes: dict[str, list[str]] = field(default_factory=dict)

    def lose(self, what: str, part: str) -> None:
        self.losses.setdefault(what, []).append(part)

    def remark(self, what: str, part: str) -> None:
        self.changes.setdefault(what, []).append(part)

    def closed(self, text: str) -> Written:
        return Written(text, _sentences(self.losses), _sentences(self.changes))


def lose_what_stands_beside(model: Model, account: Account) -> None:
    """Actuators, sensors and gravity, of a format that has no words for them."""
    for a in model.actuators:
        account.lose("actuators", repr(a.name))
    for s in model.sensors:
        account.lose("sensors", repr(s.name))
    if model.gravity != GRAVITY:
        account.lose("gravity", f"{model.gravity}")


def _sentences(found: dict[str, list[str]]) -> tuple[str, ...]:
    out = []
    for what, parts in found.items():
        parts = list(dict.fromkeys(parts))
        shown = ", ".join(parts[:3]) + (f" and {len(parts) - 3} more" if len(parts) > 3 else "")
        out.append(f"{what}: {shown}")
    return tuple(out)
