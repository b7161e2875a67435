"""docs/renames.md leads from every old module and public name to one that exists."""

from __future__ import annotations

import re
from pathlib import Path

import spanloop as sl

PAGE = (Path(__file__).parents[2] / "docs" / "renames.md").read_text(encoding="utf-8")
SOURCE = Path(sl.__file__).parent
MODULES = re.findall(r"^\| `([\w.]+)` \| `([\w.]+)` \|$", PAGE.partition("## Modules")[2], flags=re.MULTILINE)


def is_module(name: str) -> bool:
    path = SOURCE / name.replace(".", "/")
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def test_every_new_module_exists():
    assert len(MODULES) > 300
    assert [new for _, new in MODULES if not is_module(new)] == []


def test_new_names_of_classes_exist_and_old_ones_are_gone():
    rows = re.findall(r"^\| `(Model|Dynamics|Builder)\.(\w+)` \| `\1\.(\w+)` \|$", PAGE, flags=re.MULTILINE)
    assert len(rows) > 8
    for owner, old, new in rows:
        assert hasattr(getattr(sl, owner), new), f"{owner}.{new}"
        assert not hasattr(getattr(sl, owner), old), f"{owner}.{old}"
