"""The page of a study: summary, failures and all figures in one HTML file that needs no network."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from html import escape
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spanloop.errors import InputError
from spanloop.model.files.file_io import write_file
from spanloop.studies.analysis.summary import STATISTICS, Summary
from spanloop.view.plots import study_figures
from spanloop.view.target_file import target_file

if TYPE_CHECKING:
    import xarray

    from spanloop.studies.study import Study

_MAPS = 3  # pairs of variables that are drawn
_FEW = 20  # runs that sensitivities need
_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
td, th { padding: .15rem .7rem; text-align: right; border-bottom: 1px solid #8884 }
td:first-child, th:first-child { text-align: left }
figure { display: inline-block; margin: .5rem; background: #fff; border-radius: 6px; padding: .4rem }
figure svg { max-width: 100%; height: auto }
.wide { overflow-x: auto }
"""


def write(study: Study, path: str | os.PathLike[str]) -> Path:
    """Write the page and return its path, which must end in .html."""
    where = target_file(path, "a page", (".html", ".htm"), "")
    write_file(where, text(study).encode())
    return where


def text(study: Study) -> str:
    """The page as HTML text."""
    data = study.results()
    if not data.sizes["run"]:
        raise InputError("study.page: no run is finished; call study.run() first")
    title = escape(f"Study of {study.model.name}")
    body = [f"<h1>{title}</h1>", f"<p>{escape(study.status())}. Varies: {escape(', '.join(study.names))}.</p>"]
    body += _tables(study.summary())
    body += ["<h2>Figures</h2>", *_figures(study, data)]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    return f"<!doctype html><html lang=en><head>{head}<style>{_STYLE}</style></head><body>{''.join(body)}</body></html>"


def _tables(summary: Summary) -> Iterator[str]:
    ends = "".join(f"<tr><td>{escape(name)}</td><td>{n}</td></tr>" for name, n in summary.outcomes.items())
    yield f"<h2>Outcomes</h2><table><tr><th>outcome</th><th>runs</th></tr>{ends}</table>"
    if summary.failed:
        rows = "".join(
            f"<li>run {k} ({escape(summary.seed)}): {escape(why)}</li>" for k, why in summary.failures.items()
        )
        yield f"<h2>{summary.failed} failed</h2><ul>{rows}</ul>"
        yield "<p><code>study.rerun(number)</code> simulates one alone.</p>"
    head = "".join(f"<th>{escape(s)}</th>" for s in (*STATISTICS, "runs"))
    rows = ""
    for name, values in summary.numbers.items():
        unit = f" [{summary.units[name]}]" if summary.units[name] else ""
        cells = "".join(f"<td>{values[s]:.5g}</td>" for s in STATISTICS)
        rows += f"<tr><td>{escape(name + unit)}</td>{cells}<td>{summary.counts[name]}</td></tr>"
    yield f"<h2>Numbers</h2><div class=wide><table><tr><th></th>{head}</tr>{rows}</table></div>"


def _figures(study: Study, data: xarray.Dataset) -> Iterator[str]:
    kept = [item.name for item in study._prepared.setup.items]
    numbers = [n for n in kept if data[n].ndim == 1 and bool(data[n].notnull().any())]
    for name in numbers:
        yield _drawn(study_figures.histogram(data, name))
    for name in (n for n in kept if data[n].ndim == 2 and bool(data[n].notnull().any())):
        yield _drawn(study_figures.fan(data, name))
    if data.sizes["run"] >= _FEW:
        for name in (n for n in numbers if float(data[n].std()) > 0.0):
            yield _drawn(study_figures.tornado(study, name))
    for x, y in list(combinations(study.names, 2))[:_MAPS]:
        yield _drawn(study_figures.success_map(study, x, y))


def _drawn(axes: Any) -> str:
    """A figure as SVG inside the page."""
    out = io.StringIO()
    axes.figure.savefig(out, format="svg", metadata={"Date": None})
    return f"<figure>{re.sub(r'^.*?(?=<svg)', '', out.getvalue(), flags=re.DOTALL)}</figure>"
