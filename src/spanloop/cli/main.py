"""`spanloop`: parse the command line and run one command.

A command is a module of this folder with the command's name: `arguments(parser)` declares its arguments, `run(chosen)`
executes it and returns the exit code, EXAMPLES are lines that run as pasted. A module is imported when its command is
named, so that help starts fast. Exit codes: 0 success; 1 success, but a check failed; 2 wrong command or input; 70 a
fault of spanloop itself; 130 interrupted.
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
from spanloop.cli.terminal import printable_output
from spanloop.errors import SpanloopError, SpanloopWarning

WRONG, FAULT, INTERRUPTED = 2, 70, 130
LONGEST = 2000  # characters of an error; names of files and parts may be longer
TRACEBACK = "SPANLOOP_TRACEBACK"  # set this variable to see where spanloop itself fails

COMMANDS = {
    "demo": "simulate three arms that carry one object, and write a page for the browser",
    "info": "bodies, joints, degrees of freedom, mass and loops of a mechanism",
    "check": "review a mechanism; exit code 1 if a finding matters",
    "convert": "convert a mechanism to another file format",
    "export": "write functions or a motion as C99 or other code that needs no Python",
    "simulate": "simulate a mechanism; write a report, data or a page",
    "study": "run many simulations that differ in some numbers; status and plots of a study",
    "inverse": "compute the torques that move a mechanism along a path",
    "reach": "find the joint coordinates that bring frames to targets",
    "modes": "natural frequencies, damping and shapes about an equilibrium",
    "page": "write a page in which a mechanism runs and can be grabbed, or the page of a run",
    "gallery": "write the zoo as live pages, with an index",
    "view": "show a mechanism or a run in the browser, live",
    "plot": "plot a run",
    "count": "count the operations of every function and method",
    "bench": "measure the time of a call and of a step on this machine",
    "zoo": "list, show or export the ready-made mechanisms",
    "cache": "show or empty the folder of compiled kernels",
    "doctor": "check the installation and this machine",
    "completion": "print a script by which bash, zsh or fish completes commands",
}

FIRST_STEPS = """first steps:
  spanloop demo
  spanloop zoo list
  spanloop page zoo:slider_crank --v crank_hinge=9
  spanloop simulate zoo:four_bar --v crank_hinge=2 --output run.html
  spanloop COMMAND --help
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    with printable_output():
        return _main(list(sys.argv[1:] if arguments is None else arguments))


def _main(words: list[str]) -> int:
    try:
        chosen = parser_of(words).parse_args(words)
        with warnings.catch_warnings():
            warnings.simplefilter("always", SpanloopWarning)
            warnings.showwarning = _note
            code = chosen.run(chosen)
            sys.stdout.flush()
            return code
    except BrokenPipeError:  # the reader of our output has closed it, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (SpanloopError, OSError) as error:
        return _fail(_sentence(error), WRONG)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        return _fail(_fault(error), FAULT)


class Parser(argparse.ArgumentParser):
    """argparse with one-line errors."""

    def error(self, message: str) -> NoReturn:
        sys.exit(_fail(f"{message}. Try '{self.prog} --help'", WRONG))


def parser_of(words: Sequence[str]) -> Parser:
    """The parser; it imports only a command that is named in the arguments."""
    about = "Dynamics of robots and machines, compiled for the mechanism at hand."
    shape = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog="spanloop", description=about, epilog=FIRST_STEPS, formatter_class=shape)
    parser.add_argument("--version", action="version", version=f"spanloop {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        described = summary[0].upper() + summary[1:] + "."
        command = commands.add_parser(name, help=summary, description=described, formatter_class=shape)
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


def _fault(error: Exception) -> str:
    return (
        f"a fault of spanloop {__version__} itself ({type(error).__name__}: {str(error)[:200]}); please report it with "
        f"the command, its file, and what it prints with {TRACEBACK}=1"
    )


def _fail(sentence: str, code: int) -> int:
    words = " ".join(sentence.split())
    print(f"spanloop: error: {words if len(words) <= LONGEST else words[:LONGEST] + ' ...'}", file=sys.stderr)
    return code


def _note(message, category, filename, lineno, file=None, line=None) -> None:
    print(f"note: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
