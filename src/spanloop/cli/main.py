"""`spanloop`: reads the words of a command line and calls what they ask for.

A command is a module of this room with the command's name: `arguments(parser)` tells its words, `run(chosen)` does it
and returns the exit code, EXAMPLES are lines that work as pasted. It is imported when its command is named, so that
help costs nothing. Exit codes: 0 done; 1 done, but something was found that is not well; 2 the command or its input is
wrong; 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn

from spanloop import __version__
from spanloop.errors import SpanloopError, SpanloopWarning

WRONG, INTERRUPTED = 2, 130

COMMANDS = {
    "demo": "three arms carry one object: a motion, its audit, and a page for the browser",
    "info": "bodies, joints, freedoms, mass and loops of a mechanism",
    "check": "what a colleague would say about a mechanism; exit code 1 if it matters",
    "convert": "a mechanism from one file format to another",
    "simulate": "the motion of a mechanism, as report, data or page",
    "inverse": "the torques that move a mechanism along a path",
    "view": "a mechanism or a run in the browser, live",
    "plot": "a figure of a run",
    "count": "operations of every function and method of a mechanism",
    "bench": "what a call and a step cost for a mechanism on this machine",
    "zoo": "ready mechanisms: list, show, export",
    "doctor": "what is installed, what is fast here, and why not",
}

FIRST_STEPS = """first steps:
  spanloop demo
  spanloop zoo list
  spanloop simulate zoo:four_bar --v crank_hinge=2 --output run.html
  spanloop COMMAND --help
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result is the exit code."""
    _write_any_character()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        chosen = _parser(words).parse_args(words)
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


def _parser(words: Sequence[str]) -> Parser:
    """The parser; only a command that is among the words is asked for its own."""
    about = "Dynamics of robots and machines, compiled for the mechanism at hand."
    shape = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog="spanloop", description=about, epilog=FIRST_STEPS, formatter_class=shape)
    parser.add_argument("--version", action="version", version=f"spanloop {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, help_line in COMMANDS.items():
        described = help_line[0].upper() + help_line[1:] + "."
        command = commands.add_parser(name, help=help_line, description=described, formatter_class=shape)
        if name in words:
            module = importlib.import_module(f"spanloop.cli.{name}")
            command.epilog = "examples:\n" + "\n".join(f"  {line}" for line in module.EXAMPLES)
            module.arguments(command)
            command.set_defaults(run=module.run)
    return parser


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
