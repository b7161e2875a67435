"""`spanloop completion`: the scripts know every command and option, and bash runs its own."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from spanloop import zoo
from spanloop.cli.completion import commands
from spanloop.cli.completion.scripts import SCRIPTS
from spanloop.cli.main import COMMANDS, main

LINES = {
    "spanloop si": "simulate",
    "spanloop simulate --dur": "--duration",
    "spanloop view --base f": "fixed free",
    "spanloop simulate z": "zoo:",
    "spanloop simulate zoo : fo": "four_bar",
    "spanloop zoo ": "list show export",
    "spanloop completion z": "zsh",
    "spanloop simulate --output r": "",  # files: bash itself
    "spanloop simulate ": "",
}


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_script_holds_every_command_option_and_mechanism(capsys, shell):
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for command in commands():
        assert command.name in text
        for flag in command.flags:
            assert flag in text or (shell == "fish" and f"-l {flag[2:]}" in text) or (shell, flag) == ("fish", "-h")
    assert all(name in text for name in zoo.names())
    assert [c.name for c in commands()] == list(COMMANDS)
    outside = re.sub(r"'[^'\n]*'", "", text)
    assert "'" not in outside  # every quote ends in its line


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes(capsys, tmp_path):
    main(["completion", "bash"])
    script = tmp_path / "c.bash"
    script.write_text(capsys.readouterr().out)
    calls = "".join(f"try {' '.join(map(repr, line.split(' ')))}\n" for line in LINES)
    test = f". {script}\ncompopt() {{ :; }}\n" + (
        'try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _spanloop; echo "${COMPREPLY[*]}"; }\n' + calls
    )
    done = subprocess.run(["bash", "-c", test], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == list(LINES.values())


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_parse_their_script(capsys, tmp_path, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    main(["completion", shell])
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)
    subprocess.run([shell, "-n", str(script)], check=True)
