"""`spanloop study`: run a study of a TOML file, show how far it is, or draw its results."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from spanloop.cli.shared_arguments import model_of
from spanloop.cli.terminal import add_json, number, print_json
from spanloop.errors import InputError, UnsupportedError
from spanloop.studies.study import Study
from spanloop.studies.study_files import read_study

EXAMPLES = (
    "spanloop study run study.toml",
    "spanloop study status study.toml",
    "spanloop study plot study.toml --output study.html",
    "spanloop study plot study.toml histogram fast --output fast.png",
)
PAGES, PICTURES = (".html", ".htm"), (".png", ".svg", ".pdf")
TASKS = ("run", "status", "plot")


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("task", metavar="TASK", choices=TASKS, help="run, status or plot")
    add("file", metavar="STUDY", help="the .toml file of a study (docs/studies.md)")
    add(
        "what",
        metavar="FIGURE",
        nargs="*",
        help="of plot: histogram NAME, fan NAME, tornado NAME, map X Y; all in a page",
    )
    add("--threads", type=int, default=0, help="threads of this machine (all cores)")
    add("--dask", metavar="ADDRESS", help="address of a Dask scheduler, whose workers compute; tcp://host:8786")
    add("--output", metavar="FILE", help=f"of plot: {', '.join((*PAGES[:1], *PICTURES))} (STUDY.html)")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    given = read_study(chosen.file)
    if not given.run.model:
        raise InputError(f'{chosen.file}: names no mechanism; expected model = "arm.toml" or "zoo:NAME"')
    study = given.study(model_of(given.run.model))
    if chosen.what and chosen.task != "plot":
        raise InputError(f"study {chosen.task}: {chosen.what[0]!r} is not expected; figures are for study plot")
    if chosen.task == "status":
        print(study.status())
        return 0
    if chosen.task == "plot":
        return _plot(study, chosen)
    _run(study, chosen)
    summary = study.summary()
    if chosen.json:
        numbers = {name: {s: number(x) for s, x in values.items()} for name, values in summary.numbers.items()}
        print_json({"runs": summary.runs, "outcomes": dict(summary.outcomes), "numbers": numbers})
    else:
        print(summary)
        print(f"results: {study.path}")
    return 0


def _run(study: Study, chosen: argparse.Namespace) -> None:
    if chosen.dask is None:
        study.run(threads=chosen.threads)
        return
    try:
        from distributed import Client
    except ImportError:
        raise UnsupportedError("--dask needs dask and distributed; pip install 'spanloop[study]'") from None
    try:
        client: Any = Client(chosen.dask, timeout=10)
    except ValueError as error:
        words = "expected the address of a Dask scheduler, as tcp://host:8786"
        raise InputError(f"--dask {chosen.dask}: {words} ({error})") from None
    except OSError as error:
        raise InputError(f"--dask {chosen.dask}: no scheduler answers there ({error})") from None
    with client:
        print(f"Dask's dashboard: {client.dashboard_link}")
        study.run(client=client)


def _plot(study: Study, chosen: argparse.Namespace) -> int:
    path = Path(
        chosen.output or (f"{'_'.join(chosen.what)}.png" if chosen.what else Path(chosen.file).with_suffix(".html"))
    )
    endings = PICTURES if chosen.what else PAGES
    if path.suffix.lower() not in endings:
        kind = "a figure" if chosen.what else "a page"
        raise InputError(f"--output {path}: the extension is {path.suffix!r}; {kind} ends in {', '.join(endings)}")
    if chosen.what:
        study.plot(*chosen.what).figure.savefig(path)
    else:
        study.page(path)
    print(f"written: {path}")
    return 0
