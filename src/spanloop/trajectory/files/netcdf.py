"""Runs as .nc or .h5: HDF5 laid out as netCDF-4, so that xarray opens it with named axes, units and coordinates.

A variable's axes are dimension scales. The scalar `spanloop` is the header, a JSON text of fixed length, which is all
but the samples that we read; other texts (of variable length), units and names are for other programs. The seal
follows the end of HDF5's data.
"""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from spanloop.errors import UnsupportedError
from spanloop.model.files.toml import reader as toml_reader
from spanloop.trajectory.files import event_columns, labels
from spanloop.trajectory.files.seal import sealed
from spanloop.trajectory.files.serialize import Arrays, Header, as_header, as_text
from spanloop.trajectory.segment import SAMPLED

_COMPONENTS = ("torque x", "torque y", "torque z", "force x", "force y", "force z")
_MEANING = {  # variable: what it is, its unit, a variable that has the units of its last axis
    "q": ("coordinates", "", "coordinate_unit"),
    "v": ("rates", "", "dof_unit"),
    "tau": ("torques and forces at the joints; accelerations of driven joints", "", "torque_unit"),
    "memory": ("states of controllers and actuators", "", ""),
    "contact_forces": ("forces of contact points along normal, t1, t2; torques about them", "N, N m", ""),
    "contact_checks": ("so far: natural residual [m/s], penetration [m], steps with a jam", "", ""),
    "force": ("[torque; force] on bodies at their origins, world axes", "N m, N", ""),
    "residual": ("largest closure error of all steps", "rad, or of the loop's length", ""),
    "end_time": ("time of the located end; NaN where a run has none", "s", ""),
    "event_time": ("time of the event", "s", ""),
    "event_energy_lost": ("energy given up along the event's own rows", "J", ""),
    "event_impulse": ("impulses along all closure rows, axes of child frames", "N m s, N s", ""),
}
_LAST = {
    "q": "coordinate",
    "v": "dof",
    "tau": "dof",
    "memory": "memory_entry",
    "contact_forces": "contact_component",
    "contact_checks": "contact_check",
}


def dumped(packed: tuple[Header, Arrays], file: str) -> bytes:
    """The file's content."""
    h5py = _h5py(file)
    header, arrays = packed
    out = io.BytesIO()
    with h5py.File(out, "w") as f:
        f.attrs["title"] = "motion of a mechanism"
        f.attrs["source"] = f"spanloop {header['spanloop']}"
        f.attrs["spanloop_format"] = header["format"]
        f.attrs["settings"] = json.dumps(header["settings"])
        f.attrs["segments"] = json.dumps(header["segments"])
        runs = _axes(f, header, arrays)
        _samples(f, arrays, runs)
        _events(f, header, arrays)
        _texts(f, header, runs, arrays["q"].shape[:-2])
        f.create_dataset("spanloop", data=np.bytes_(as_text(header).encode()))
        f["spanloop"].attrs["long_name"] = "the run without its samples, as JSON"
    return sealed(out.getvalue())


def loaded(data: bytes, file: str) -> tuple[Header, Arrays]:
    """Header and arrays of a file's content; ValueError or KeyError if it is no run."""
    with _h5py(file).File(io.BytesIO(data), "r") as f:
        text = _stored(f, "spanloop", len(data)).tobytes().rstrip(b"\0")
        own = (*SAMPLED, "residual", "parameters", "surfaces", *event_columns.NAMES)
        names = {"times": "time", "forces": "force", **{name: name for name in own}}
        names |= {"end_times": "end_time"} | {f"end_{name}": f"end_{name}" for name in SAMPLED}
        arrays = {key: _stored(f, name, len(data)) for key, name in names.items() if name in f}
    arrays |= {f"end_{name}": arrays[f"end_{name}"][..., None, :] for name in SAMPLED if f"end_{name}" in arrays}
    return as_header(text), arrays


def _stored(f, name: str, size: int) -> np.ndarray:
    """An array of the file, which has so many bytes: one that run.save wrote lies in it as it is."""
    import h5py

    if not isinstance(f.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{name!r} is not in the file")
    data = f[name]
    if not isinstance(data, h5py.Dataset) or data.chunks or data.external or data.is_virtual:
        raise ValueError(f"{name!r} is not stored as one piece")
    if data.dtype.kind not in "fiuS" or data.nbytes > size:
        raise ValueError(f"{name!r} claims {data.nbytes} bytes of {data.dtype}; the file has {size}")
    return np.asarray(data[()])


# ---- writing


def _axes(f, header: Header, arrays: Arrays) -> list[str]:
    """The dimension scales; gives the names of the batch axes."""
    model = toml_reader.loads(header["model"], "model")
    shape = arrays["q"].shape[:-2]
    runs = ["run"] if len(shape) == 1 else [f"run_{k}" for k in range(len(shape))]
    for name, size in zip(runs, shape, strict=True):
        _scale(f, name, np.arange(size), "number of the run")
    _scale(f, "time", arrays["times"], "time", "s")
    coordinates, dofs = labels.coordinates(model), labels.dofs(model)
    mixed = (len(coordinates), len(dofs)) != (arrays["q"].shape[-1], arrays["v"].shape[-1])  # of several models
    if mixed:
        coordinates = [(str(k), "") for k in range(arrays["q"].shape[-1])]
        dofs = [(str(k), "") for k in range(arrays["v"].shape[-1])]
    _scale(f, "coordinate", [labels.joined(*name) for name in coordinates], "entries of q")
    _scale(f, "dof", [labels.joined(*name) for name in dofs], "entries of v and tau")
    if "memory" in arrays:
        _scale(f, "memory_entry", np.arange(arrays["memory"].shape[-1]), "entries of memory")
    if "contact_forces" in arrays:
        width = arrays["contact_forces"].shape[-1]
        names = labels.contact_components(model)
        _scale(f, "contact_component", names if len(names) == width else np.arange(width), "components of contacts")
        _scale(f, "contact_check", ("residual", "penetration", "jams"), "checks of contacts")
    if "forces" in arrays:
        _scale(f, "body", header["bodies"], "bodies on which forces act")
        _scale(f, "component", _COMPONENTS, "components of a force")
    if "surfaces" in arrays:
        _scale(f, "contact", [c.name for c in model.contacts], "contacts of the model")
        _scale(f, "surface", ("friction", "restitution"), "settings of contacts")
    if "parameters" in arrays:
        _scale(f, "parameter", model.parameters().names, "masses, lengths, ... of the model")
    for name, axis, units in (
        ()
        if mixed
        else (
            ("coordinate_unit", "coordinate", labels.coordinate_units(model)),
            ("dof_unit", "dof", labels.dof_units(model)),
            ("torque_unit", "dof", labels.torque_units(model)),
        )
    ):
        _variable(f, name, units, [axis])
    return runs


def _samples(f, arrays: Arrays, runs: list[str]) -> None:
    for name in SAMPLED:
        if name in arrays:
            _variable(f, name, arrays[name], [*runs, "time", _LAST[name]])
        if f"end_{name}" in arrays:
            _variable(f, f"end_{name}", arrays[f"end_{name}"][..., 0, :], [*runs, _LAST[name]], f"{name} at the end")
    if "end_times" in arrays:
        _variable(f, "end_time", arrays["end_times"], runs)
    if "forces" in arrays:
        _variable(f, "force", arrays["forces"], [*runs, "time", "body", "component"])
    if "residual" in arrays:
        _variable(f, "residual", arrays["residual"], runs)
    if "surfaces" in arrays:
        axes = [*runs, "contact", "surface"]
        _variable(f, "surfaces", arrays["surfaces"], axes, "friction and restitution of contacts in each run")
    if "parameters" in arrays:
        _variable(f, "parameters", arrays["parameters"], [*runs, "parameter"], "parameters of each run")


def _events(f, header: Header, arrays: Arrays) -> None:
    """The table of events, if there is one."""
    events = header.get("events")
    if not events:
        return
    wide = ("q", "v_before", "captured", "memory", "contact_forces")
    widths = {name: arrays[f"event_{name}"].shape[-1] for name in wide if f"event_{name}" in arrays}
    _scale(f, "event", np.arange(len(events["kind"])), "number of the event")
    _scale(f, "event_run_number", np.arange(events["runs"]), "number of the run")
    scales: dict[str, Any] = {
        "event_coordinate": np.arange(widths.get("q", 0)),
        "event_dof": np.arange(widths.get("v_before", 0)),
        "event_captured_entry": np.arange(widths.get("captured", 0)),
        "event_memory_entry": np.arange(widths.get("memory", 0)),
        "event_contact_component": np.arange(widths.get("contact_forces", 0)),
        "event_component": _COMPONENTS,
        "switch": events["switches"],
        "closure_row": [name for name, *_ in events["rows"]],
        "event_body": events["bodies"],
        "event_forced_body": events["forces"],
    }
    for name, values in scales.items():
        if len(values):
            _scale(f, name, values, name.replace("_", " "))
    for name, axes in _EVENT_AXES.items():
        if f"event_{name}" in arrays:
            _variable(f, f"event_{name}", arrays[f"event_{name}"], list(axes), f"{name.replace('_', ' ')} of the event")
    for name in ("kind", "name"):
        _variable(f, f"event_{name}", np.array(events[name], dtype=object), ["event"], f"{name} of the event")


_EVENT_AXES: dict[str, tuple[str, ...]] = {
    "run": ("event",),
    "time": ("event",),
    "energy_lost": ("event",),
    "q": ("event", "event_coordinate"),
    "q_before": ("event", "event_coordinate"),
    **dict.fromkeys(("v_before", "v_after", "tau_before", "tau_after"), ("event", "event_dof")),
    "impulse": ("event", "closure_row"),
    "on": ("event", "switch"),
    "captured": ("event", "event_captured_entry"),
    "memory": ("event", "event_memory_entry"),
    **dict.fromkeys(("contact_impulse", "contact_forces"), ("event", "event_contact_component")),
    "forces_before": ("event", "event_forced_body", "event_component"),
    "forces_after": ("event", "event_forced_body", "event_component"),
    "begin_on": ("event_run_number", "switch"),
    "begin_captured": ("event_run_number", "event_captured_entry"),
    "begin_present": ("event_run_number", "event_body"),
}


def _texts(f, header: Header, runs: list[str], shape: tuple[int, ...]) -> None:
    counts = [n for n, *_ in header["segments"]]
    _variable(f, "segment", np.repeat(np.arange(len(counts)), counts), ["time"], "number of the segment")
    columns = list(zip(*header["outcomes"], strict=True)) or [(), (), ()]
    for name, values in zip(("outcome", "outcome_sentence", "outcome_time"), columns, strict=True):
        kind = float if name == "outcome_time" else object
        _variable(f, name, np.array(values, dtype=kind).reshape(shape), runs, "how the run ended")
    f["outcome_time"].attrs["units"] = "s"
    _variable(f, "model", np.array(header["model"], dtype=object), [], "the model, in spanloop's TOML")


def _scale(f, name: str, values, meaning: str, unit: str = "") -> None:
    data = f.create_dataset(name, **_content(values))
    data.make_scale(name)
    data.attrs["long_name"] = meaning
    if unit:
        data.attrs["units"] = unit


def _variable(f, name: str, values, axes: list[str], meaning: str = "") -> None:
    data = f.create_dataset(name, **_content(values))
    for k, axis in enumerate(axes):
        data.dims[k].attach_scale(f[axis])
    long_name, unit, coordinates = _MEANING.get(name, (meaning, "", ""))
    for attribute, text in (("long_name", long_name), ("units", unit), ("coordinates", coordinates)):
        if text:
            data.attrs[attribute] = text


def _content(values) -> dict[str, Any]:
    import h5py

    array = np.asarray(values)
    if array.dtype.kind in "OU":
        return {"data": array.astype(object), "dtype": h5py.string_dtype()}
    return {"data": array}


def _h5py(file: str):
    try:
        import h5py
    except ImportError:
        raise UnsupportedError(
            f"{file}: .nc and .h5 files need h5py, which is not installed: pip install h5py. "
            "A .npz file needs nothing more"
        ) from None
    return h5py
