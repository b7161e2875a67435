"""What the key of a kernel in the cache depends on: the content of the model, and the sources of spanloop."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from spanloop.model import Model
from spanloop.model.motors import reflected


@functools.lru_cache(maxsize=64)
def content(model: Model) -> str:
    """A hash of all numbers and names of a model that a kernel can depend on."""
    parts = (
        [(b.name, b.inertia) for b in model.bodies],
        [
            (j.name, j.kind, j.parent, j.child, j.placement, j.damping, j.armature, j.stiffness, j.rest, j.driven)
            for j in model.joints
        ],
        model.actuated,
        model.frames,
        model.loops,
        model.couplings,
        model.gravity,
        [reflected(model, setting) for setting in ("rotor_inertia", "damping")],
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


# rooms that kernels come from: a change elsewhere (zoo, cli, ...) leaves cached kernels valid
_ROOMS = ("math", "joints", "topology", "sweeps", "algorithms", "compiler", "kernels", "simulation")


@functools.cache
def source_hash() -> str:
    """A hash of the sources that kernels come from: a changed algorithm never finds an old kernel."""
    home = Path(__file__).parents[1]
    digest = hashlib.sha256()
    own = (home / "model" / "parameters.py", home / "model" / "motors.py")
    for path in (*own, *_sources(home)):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources(home: Path) -> list[Path]:
    return [path for room in _ROOMS for path in sorted((home / room).rglob("*.py"))]
