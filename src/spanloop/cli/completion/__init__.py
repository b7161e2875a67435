"""`spanloop completion`: print a script by which a shell completes commands, options and names of the zoo."""

from __future__ import annotations

import argparse

from spanloop import zoo
from spanloop.cli.completion.scripts import SCRIPTS, Command, Option
from spanloop.cli.main import COMMANDS, parser_of

EXAMPLES = (
    "spanloop completion bash",
    "spanloop completion zsh",
    "spanloop completion fish",
)
INSTALL = """to use it:
  bash: put eval "$(spanloop completion bash)" into ~/.bashrc
  zsh:  put eval "$(spanloop completion zsh)" into ~/.zshrc, after compinit
  fish: spanloop completion fish > ~/.config/fish/completions/spanloop.fish"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="for which shell")
    parser.description = f"{parser.description}\n\n{INSTALL}"


def run(chosen: argparse.Namespace) -> int:
    print(SCRIPTS[chosen.shell](commands(), zoo.names()))
    return 0


def commands() -> list[Command]:
    """All commands with their options, as their parsers declare them."""
    parser = parser_of(tuple(COMMANDS))
    parsers = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction)).choices
    return [_command(name, summary, parsers[name]) for name, summary in COMMANDS.items()]


def _command(name: str, summary: str, parser: argparse.ArgumentParser) -> Command:
    options: list[Option] = []
    words: list[str] = []
    takes_model = False
    for action in parser._actions:
        choices = tuple(map(str, action.choices or ()))
        if action.option_strings:
            flags = tuple(action.option_strings)
            options.append(Option(flags, (action.help or "").replace("%%", "%"), action.nargs != 0, choices))
        else:
            words += choices
            takes_model = takes_model or "MODEL" in str(action.metavar)
    return Command(name, summary, tuple(options), tuple(words), takes_model)
