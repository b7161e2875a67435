"""Completion scripts of bash, zsh and fish, made of the commands and their options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """An option of a command."""

    flags: tuple[str, ...]
    summary: str
    takes_value: bool
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Command:
    """A command: its options, the words that its arguments may be, and whether one of them names a mechanism."""

    name: str
    summary: str
    options: tuple[Option, ...]
    words: tuple[str, ...]
    takes_model: bool

    @property
    def flags(self) -> list[str]:
        """The flags of all options."""
        return [flag for option in self.options for flag in option.flags]


def bash(commands: Sequence[Command], models: Sequence[str]) -> str:
    """The script for bash, which takes a colon for the end of a word."""
    names = " ".join(c.name for c in commands)
    lines = [
        "_spanloop() {",
        "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words=''",
        f"    local models='{' '.join(models)}'",
        "    if (( COMP_CWORD == 1 )); then",
        f"        words='{names} --help --version'",
        "    elif [[ $previous == zoo && $current == : ]]; then",
        "        current='' words=$models",
        "    elif [[ $previous == : && ${COMP_WORDS[COMP_CWORD-2]} == zoo ]]; then",
        "        words=$models",
        '    else case "${COMP_WORDS[1]} $previous $current" in',
    ]
    for c in commands:
        for o in c.options:
            flags = "|".join(f"'{c.name} {flag} '*" for flag in o.flags)
            lines += [f"        {flags}) words='{' '.join(o.choices)}' ;;"] if o.takes_value else []
        lines.append(f"        '{c.name} '*' -'*) words='{' '.join(c.flags)}' ;;")
        lines += [f"        '{c.name} {c.name} '*) words='{' '.join(c.words)}' ;;"] if c.words else []
        lines += [f"        '{c.name} '*' z'*) words='zoo:' ;;"] if c.takes_model else []
    lines += [
        "    esac; fi",
        '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "    [[ ${COMPREPLY[0]} == zoo: ]] && compopt -o nospace",
        "}",
        "complete -o default -F _spanloop spanloop",
    ]
    return "\n".join(lines)


def zsh(commands: Sequence[Command], models: Sequence[str]) -> str:
    """The script for zsh."""
    zoo = " ".join(f"zoo\\:{name}" for name in models)
    lines = [
        "#compdef spanloop",
        f"_spanloop_models() {{ _alternative 'files:file:_files' 'zoo:zoo:({zoo})' }}",
        "_spanloop() {",
        "    local -a commands=(",
        *(f"        {_quoted(c.name + ':' + _plain(c.summary))}" for c in commands),
        "    )",
        "    if (( CURRENT == 2 )); then _describe 'command' commands; return; fi",
        "    (( CURRENT-- )); shift words",
        "    case $words[1] in",
    ]
    for c in commands:
        specs = [_zsh_option(o, flag) for o in c.options for flag in o.flags]
        specs += [_quoted(f"1:word:({' '.join(c.words)})")] if c.words else []
        specs += [_quoted("*:file:" + ("_spanloop_models" if c.takes_model else "_files"))]
        lines += [f"    {c.name}) _arguments {' '.join(specs)} ;;"]
    lines += ["    esac", "}"]
    lines += ['if [[ $funcstack[1] == _spanloop ]]; then _spanloop "$@"; else compdef _spanloop spanloop; fi']
    return "\n".join(lines)


def _zsh_option(option: Option, flag: str) -> str:
    value = ""
    if option.takes_value:
        value = ":value:" + (f"({' '.join(option.choices)})" if option.choices else "_files")
    return _quoted(f"*{flag}[{_plain(option.summary)}]{value}")


def fish(commands: Sequence[Command], models: Sequence[str]) -> str:
    """The script for fish."""
    zoo = " ".join(f"zoo:{name}" for name in models)
    lines = []
    for c in commands:
        start, here = "complete -c spanloop -n", f"'__fish_seen_subcommand_from {c.name}'"
        lines.append(f"{start} __fish_use_subcommand -f -a {c.name} -d {_quoted(c.summary)}")
        for o in c.options:
            names = " ".join(f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in o.flags)
            value = f" -x -a '{' '.join(o.choices)}'" if o.choices else " -r" if o.takes_value else ""
            lines.append(f"{start} {here} {names}{value} -d {_quoted(o.summary)}")
        if c.words:
            lines.append(f"{start} {here} -f -a '{' '.join(c.words)}'")
        if c.takes_model:
            lines.append(f"{start} {here} -a '{zoo}'")
    return "\n".join(lines)


def _plain(text: str) -> str:
    """A text without the characters that zsh gives a meaning in descriptions."""
    for character in "\\[]:":
        text = text.replace(character, "\\" + character)
    return text


def _quoted(text: str) -> str:
    """A text in single quotes; within, an apostrophe becomes a typographic one, as no escape suits all three shells."""
    return "'" + text.replace("'", "’") + "'"


SCRIPTS: dict[str, Callable[[Sequence[Command], Sequence[str]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
