"""`Mesh`: triangles with colours; `read_mesh` takes them from a file.

STL, OBJ and COLLADA (.dae) need no other library; `trimesh`, which comes with the extra `viewer`, reads PLY, OFF and
glTF.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.model.files.file_io import LARGEST

OTHERS = (".ply", ".off", ".glb", ".gltf")
LARGEST_TEXT = 48 * 2**20  # bytes of a file that is text
MOST = 2_000_000  # triangles of one file
FARTHEST = 1e6  # m
NO_COLOR = -1


@dataclass(frozen=True, eq=False)
class Mesh:
    """Corners (n, 3) [m], triangles (m, 3) of their numbers, and the colour of each (m,): 0xrrggbb, or NO_COLOR.

    movement (n, modes, 3): of a surface that bends, how its corners move with the modes; None for a rigid one.
    """

    vertices: np.ndarray
    faces: np.ndarray
    colors: np.ndarray
    movement: np.ndarray | None = None

    @staticmethod
    def of(vertices: np.ndarray, faces: np.ndarray, colors: np.ndarray | None = None) -> Mesh:
        """A mesh of checked arrays; without colours if none are given."""
        v, f = np.asarray(vertices, float).reshape(-1, 3), np.asarray(faces, np.int64).reshape(-1, 3)
        if not len(f):
            raise ValueError("it contains no triangles")
        if f.min() < 0 or f.max() >= len(v):
            named = f.max() + 1 if f.min() >= 0 else f.min()
            raise ValueError(f"a triangle names corner {named}, but it has {len(v)} corners")
        if not np.isfinite(v[f]).all():
            raise ValueError("it contains numbers that are not finite")
        return Mesh(v, f, np.full(len(f), NO_COLOR) if colors is None else np.asarray(colors, np.int64))

    @functools.cached_property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and highest coordinates (3,) of its triangles [m]."""
        is_used = np.zeros(len(self.vertices), bool)  # corners that no triangle uses may lie anywhere
        is_used[self.faces] = True
        used = self.vertices[is_used]
        return used.min(axis=0), used.max(axis=0)

    def bent(self, eta: np.ndarray) -> Mesh:
        """A surface where coordinates eta (modes,) move its corners to."""
        if self.movement is None:
            return self
        return Mesh(self.vertices + np.einsum("nka,k->na", self.movement, eta), self.faces, self.colors)

    def scaled(self, scale: tuple[float, ...]) -> Mesh:
        """The mesh with its axes stretched. Raises ValueError if it is then larger than any mechanism."""
        with np.errstate(invalid="ignore", over="ignore"):
            found = self if scale in ((), (1.0, 1.0, 1.0)) else replace(self, vertices=self.vertices * np.array(scale))
        reach = float(np.abs(found.vertices[found.faces]).max())
        if not reach < FARTHEST:
            raise ValueError(f"it reaches to {reach:.3g} m; expected less than {FARTHEST:g} m")
        return found


def read_mesh(file: str | Path) -> Mesh:
    """The mesh of a file. Raises ValueError or OSError with the reason if it cannot be read."""
    path = Path(file)
    stat = path.stat()
    found = _read(str(path), stat.st_mtime_ns, stat.st_size)
    if isinstance(found, str):
        raise ValueError(found)
    return found


@functools.lru_cache(maxsize=256)
def _read(file: str, _changed: int, size: int) -> Mesh | str:
    """The mesh, or why there is none; of a file that has not changed it is kept."""
    from spanloop.view.meshes import collada, stl_obj

    path = Path(file)
    kind = path.suffix.lower()
    readers = {".stl": stl_obj.stl, ".obj": stl_obj.obj, ".dae": collada.collada}
    largest = LARGEST if kind in (".stl", *OTHERS) else LARGEST_TEXT
    if kind not in (*readers, *OTHERS):
        return f"{kind or 'a file without extension'} is not supported; expected .stl, .obj, .dae, {', '.join(OTHERS)}"
    if size > largest:
        return f"it has {size / 2**20:.0f} MB; at most {largest // 2**20} MB are read"
    try:
        found = readers[kind](path) if kind in readers else _with_trimesh(path)
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError, OSError) as error:
        return str(error) or type(error).__name__
    return f"it has {len(found.faces)} triangles; at most {MOST} are read" if len(found.faces) > MOST else found


def _with_trimesh(path: Path) -> Mesh:
    try:
        import trimesh
    except ImportError:
        raise ValueError(f"{path.suffix} needs trimesh, which is not installed; try: pip install trimesh") from None
    try:
        found: Any = trimesh.load(str(path), force="mesh")
        return Mesh.of(found.vertices, found.faces)
    except ValueError:
        raise
    except Exception as error:  # readers of many formats fail in many ways
        raise ValueError(str(error) or type(error).__name__) from None
