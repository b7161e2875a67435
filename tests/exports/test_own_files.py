"""Files that spanloop did not write are never overwritten by an export; its own are replaced."""

from __future__ import annotations

import pytest

import spanloop as sl
from spanloop.errors import InputError

FOREIGN = b"\0asm\1\0\0\0 or int main(void) { return 0; }\n"


@pytest.mark.parametrize("name", ["arm.c", "arm.h", "arm.mjs", "arm.wasm"])
def test_a_file_of_another_program_stays(name, tmp_path):
    (tmp_path / name).write_bytes(FOREIGN)
    target = tmp_path / name.replace(".h", ".c")
    with pytest.raises(InputError, match=rf"{name} is there, and spanloop did not write it.*remove it first"):
        sl.export(sl.zoo.pendulum(), ["energy"], target)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == FOREIGN


@pytest.mark.parametrize("ending", [".c", ".mjs", ".wasm"])
def test_a_file_of_an_earlier_export_and_an_empty_one_are_replaced(ending, tmp_path):
    target = tmp_path / f"arm{ending}"
    target.touch()
    first = sl.export(sl.zoo.pendulum(), ["energy"], target).read_bytes()
    assert sl.export(sl.zoo.pendulum(2), ["energy"], target).read_bytes() != first
