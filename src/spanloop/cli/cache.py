"""`spanloop cache`: show where compiled kernels are kept on disk, how many and how large; empty the folder."""

from __future__ import annotations

import argparse
import time

from spanloop.cli.terminal import add_json, print_json
from spanloop.compiler.runtime import cache

EXAMPLES = ("spanloop cache", "spanloop cache --json")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clear", action="store_true", help="remove all kernels; they are compiled again when needed")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    where, files = cache.folder(), cache.files()
    removed = _cleared(files) if chosen.clear else []
    kernels = [f for f in files if f.is_kernel and f not in removed]
    size, oldest = sum(f.size for f in kernels), min((f.used for f in kernels), default=None)
    if chosen.json:
        print_json(
            {
                "folder": None if where is None else str(where),
                "kernels": len(kernels),
                "bytes": size,
                "bound": cache.bound() if cache.bound() < float("inf") else None,
                "oldest": None if oldest is None else _moment(oldest),
                "removed": len(removed),
            }
        )
    elif where is None:
        print("The cache is off (SPANLOOP_CACHE); every process compiles its kernels again.")
    else:
        print(f"folder   {where}  (SPANLOOP_CACHE)")
        print(f"kernels  {len(kernels)}")
        print(f"size     {size / 1e6:.1f} MB of at most {cache.bound() / 1e6:g} MB  (SPANLOOP_CACHE_MB)")
        if oldest is not None:
            print(f"oldest   last used {_moment(oldest)}")
        if chosen.clear:
            print(f"removed  {len(removed)} files, {sum(f.size for f in removed) / 1e6:.1f} MB")
    return 1 if chosen.clear and kernels else 0


def _cleared(files: list[cache.File]) -> list[cache.File]:
    """Remove the files; those that are gone."""
    for file in files:
        file.remove()
    left = cache.files()
    return [f for f in files if f not in left]


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
