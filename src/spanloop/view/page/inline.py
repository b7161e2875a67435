"""The page of a run inside a notebook: an iframe that holds it, so that nothing is fetched and no style leaks."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from spanloop.errors import InputError
from spanloop.view.page.html import text

if TYPE_CHECKING:
    from spanloop.trajectory import Trajectory


@dataclass(frozen=True, repr=False)
class InlinePage:
    """A page that a notebook shows; html: the whole page. height: of its frame [pixels]."""

    name: str
    html: str
    height: int

    @staticmethod
    def of(run: Trajectory, height: int, **options: Any) -> InlinePage:
        """The page of a run. options: those of spanloop.view.page.write, without a path."""
        return InlinePage(run.model.name, text(run, **options), height)

    def __post_init__(self) -> None:
        height = self.height
        if isinstance(height, bool) or not isinstance(height, int) or not 100 <= height <= 10_000:
            raise InputError(f"show: height is {height!r}; expected a whole number of pixels from 100 to 10000")

    def _repr_html_(self) -> str:
        frame = f'width="100%" height="{self.height}" style="border:0" sandbox="allow-scripts"'
        return f'<iframe srcdoc="{escape(self.html, quote=True)}" {frame}></iframe>'

    def __repr__(self) -> str:
        size = f"{len(self.html) / 1e6:.1f} MB"
        return f"InlinePage({self.name!r}, {size}; a notebook shows it, run.page('run.html') writes it)"
