"""`spanloop`: reads the words of a command line and calls what they ask for.

Rooms that cost time to import are imported by the command that needs them. Exit codes: 0 done, 1 the demo's
drift is too large, 2 the command or its input is wrong, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn

from spanloop import __version__
from spanloop.errors import SpanloopError, SpanloopWarning

WRONG, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result is the exit code."""
    _write_any_character()
    try:
        chosen = _parser().parse_args(arguments)
        with warnings.catch_warnings():
            warnings.simplefilter("always", SpanloopWarning)
            warnings.showwarning = _note
            code = chosen.run(chosen)
            sys.stdout.flush()
            return code
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (SpanloopError, OSError) as error:
        return _say(_sentence(error), WRONG)
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)


class Parser(argparse.ArgumentParser):
    """argparse with errors of one line."""

    def error(self, message: str) -> NoReturn:
        sys.exit(_say(f"{message}. Try '{self.prog} --help'", WRONG))


def _parser() -> Parser:
    parser = Parser(prog="spanloop", description="Dynamics of robots and machines, compiled for the mechanism at hand.")
    parser.add_argument("--version", action="version", version=f"spanloop {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    info = commands.add_parser("info", help="bodies, joints, freedoms and mass of a mechanism")
    info.add_argument("file", metavar="FILE", help="a .urdf or .toml file, or zoo:NAME (zoo:puma, zoo:chain:6)")
    info.add_argument("--base", choices=("fixed", "free"), help="how a URDF's root link stands on the world (fixed)")
    info.add_argument("--json", action="store_true", help="for programs: JSON")
    info.set_defaults(run=_info)

    count = commands.add_parser("count", help="operations of every function and method of a mechanism")
    _count_arguments(count)
    count.set_defaults(run=_count)

    demo = commands.add_parser("demo", help="a robot in free flight: drift, speed and a picture")
    demo.add_argument("--output", metavar="FOLDER", default=".", help="where the picture goes (this folder)")
    demo.add_argument("--duration", metavar="SECONDS", type=float, default=2.0, help="length of the flight (2.0)")
    demo.set_defaults(run=_demo)
    return parser


def _info(chosen: argparse.Namespace) -> int:
    from spanloop.cli.info import info

    return info(chosen.file, chosen.base, chosen.json)


def _count_arguments(parser: argparse.ArgumentParser) -> None:
    from spanloop.cli.count import arguments

    arguments(parser)


def _count(chosen: argparse.Namespace) -> int:
    from spanloop.cli.count import run

    return run(chosen)


def _demo(chosen: argparse.Namespace) -> int:
    from spanloop.cli.demo import demo

    return demo(chosen.output, chosen.duration)


def _sentence(error: SpanloopError | OSError) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _say(sentence: str, code: int) -> int:
    print(f"spanloop: error: {' '.join(sentence.split())}", file=sys.stderr)
    return code


def _note(message, category, filename, lineno, file=None, line=None) -> None:
    print(f"note: {message}", file=sys.stderr)


def _write_any_character() -> None:
    """A terminal that lacks a character shows a question mark instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
