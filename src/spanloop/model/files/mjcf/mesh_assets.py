"""Meshes of an MJCF: given to MuJoCo's compiler only where a body's inertia comes from them, and from the file's folder
only."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from spanloop.errors import FileError
from spanloop.model.files.mesh_paths import inside
from spanloop.model.files.mjcf.source import Safe
from spanloop.model.files.notes import Findings
from spanloop.model.files.source_file import read


def take_meshes(mujoco, spec, safe: Safe, folder: Path | None, findings: Findings) -> list[tuple[Any, str]]:
    """The geoms that are meshes, with the mesh's file.

    Where the body's inertia is written, the geom becomes a small ball before it is compiled: its pose is all we need.
    """
    files = {mesh.name or PurePosixPath(mesh.file).stem: mesh for mesh in spec.meshes}
    always = spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    found, needed = [], set()
    for geom in spec.geoms:
        if geom.hfieldname or geom.type == mujoco.mjtGeom.mjGEOM_HFIELD:
            findings.add("shape hfield left out", repr(geom.name))
            geom.hfieldname = ""
        elif not geom.meshname:
            continue
        else:
            mesh = files.get(geom.meshname)
            if mesh is None:
                continue  # MuJoCo's compiler says it
            found.append((geom, _path(mesh.file, safe)))
            still = geom.parent.name == "world"
            if not still and (always or not geom.parent.explicitinertial):
                needed.add(geom.meshname)
                continue
            geom.meshname = ""
        geom.type, geom.size, geom.density = mujoco.mjtGeom.mjGEOM_SPHERE, [1e-3, 0.0, 0.0], 0.0
    assets: dict[str, bytes] = {}
    for name, mesh in files.items():
        if name in needed:
            if mesh.file:
                data, mesh.name = _content(mesh, folder, safe), name
                mesh.file = f"{len(assets)}{PurePosixPath(mesh.file).suffix}"
                assets[mesh.file] = data
        else:
            _note(mesh, folder, safe, findings)
            if hasattr(spec, "delete"):
                spec.delete(mesh)
            else:  # older versions of MuJoCo
                mesh.delete()
    spec.meshdir = spec.texturedir = ""
    spec.assets = assets
    return found


def _path(file: str, safe: Safe) -> str:
    """The file as seen from the folder of the model."""
    if not file:
        return ""
    if safe.settings.get("strippath") == "true":
        file = PurePosixPath(file).name
    directory = safe.settings.get("meshdir") or safe.settings.get("assetdir") or ""
    return file if PurePosixPath(file).is_absolute() else str(PurePosixPath(directory) / file)


def _content(mesh, folder: Path | None, safe: Safe) -> bytes:
    file = _path(mesh.file, safe)
    path, note = (
        inside(folder, file, file) if folder is not None else (None, f"mesh {file!r}: the text is in no folder")
    )
    if path is None:
        raise FileError(f"{safe.place(mesh)}: a body's inertia comes from a mesh. {note}. Write an <inertial>")
    return read(path)


def _note(mesh, folder: Path | None, safe: Safe, findings: Findings) -> None:
    file = _path(mesh.file, safe)
    if file and folder is not None:
        note = inside(folder, file, file)[1]
        if note:
            findings.add("meshes not found", note)
