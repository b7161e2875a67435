"""What a format could not hold of a model, and what it holds in another way."""

from __future__ import annotations

from dataclasses import dataclass, field


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


def _sentences(found: dict[str, list[str]]) -> tuple[str, ...]:
    out = []
    for what, parts in found.items():
        parts = list(dict.fromkeys(parts))
        shown = ", ".join(parts[:3]) + (f" and {len(parts) - 3} more" if len(parts) > 3 else "")
        out.append(f"{what}: {shown}")
    return tuple(out)
