"""`spanloop zoo`: list, show and export the ready-made mechanisms."""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path

from spanloop import zoo
from spanloop.cli.info import info
from spanloop.cli.shared_arguments import ZOO, model_of
from spanloop.cli.terminal import add_json, print_json
from spanloop.errors import InputError

EXAMPLES = (
    "spanloop zoo list",
    "spanloop zoo show stewart",
    "spanloop zoo export chain:6 chain.toml",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("do", choices=("list", "show", "export"), help="what to do")
    parser.add_argument("name", nargs="?", help="name of a mechanism: puma, or chain:6 for families of any size")
    parser.add_argument("target", metavar="FILE", nargs="?", help="a .toml file, for export")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    if chosen.do == "list":
        return _list(chosen.json)
    if not chosen.name:
        raise InputError(f"zoo {chosen.do} needs a name; see: spanloop zoo list")
    word = ZOO + chosen.name.removeprefix(ZOO)
    if chosen.do == "show":
        model_of(word, None)  # raises with the nearest name if there is none
        if not chosen.json:
            print(inspect.getdoc(getattr(zoo, word.removeprefix(ZOO).partition(":")[0])), end="\n\n")
        return info(word, {}, chosen.json)
    if not chosen.target:
        raise InputError(
            f"zoo export needs a file; try: spanloop zoo export {chosen.name} {chosen.name.split(':')[0]}.toml"
        )
    model_of(word, None).save(Path(chosen.target))
    print(f"written: {chosen.target}")
    return 0


def _list(as_json: bool) -> int:
    rows = [(name, _size(name), name in zoo.names(closed=True), _about(name)) for name in zoo.names()]
    if as_json:
        print_json([{"name": n, "sized": bool(s), "closed": c, "about": a} for n, s, c, a in rows])
        return 0
    width = max(len(n) + len(s) for n, s, _, _ in rows)
    for title, closed in (("with loops", True), ("without loops", False)):
        print(title)
        for name, size, loops, about in rows:
            if loops == closed:
                print(f"  {name + size:<{width}}  {about}")
        print()
    print("Use them as zoo:NAME, or zoo:NAME:6 where the name takes a number: spanloop info zoo:puma")
    print("In Python: sl.zoo.puma()")
    return 0


def _size(name: str) -> str:
    """ ":n" if the name takes a number, else ""."""
    first = next(iter(inspect.signature(getattr(zoo, name)).parameters.values()), None)
    takes = first is not None and first.kind is not inspect.Parameter.KEYWORD_ONLY and first.annotation == "int"
    return f":{first.name}" if first is not None and takes else ""


def _about(name: str) -> str:
    return (inspect.getdoc(getattr(zoo, name)) or "").partition("\n")[0]
