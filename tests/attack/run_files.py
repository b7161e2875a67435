"""Attack on files of runs (.npz, .nc, .h5) and checkpoints: changed bytes, and files that are well-formed but wrong.

Half of the cases change bytes: flips, blocks that are overwritten, moved, cut out or repeated, ends that are cut off.
Such a file must be refused with a sentence. The other half change the structure (arrays of other shapes, types and
sizes, parts that are missing or lie about themselves, other texts in the header) and seal the file again, as a program
would that means it: it is refused with a sentence, or read as what it says. Bytes of .npz files and checkpoints are
changed and sealed, too; those of HDF5 are not, because HDF5 itself does not survive that, which is why there is a seal.
No case may raise anything but spanloop's errors, take more than 10 s or a gigabyte.
"""

from __future__ import annotations

import functools
import io
import json
import re
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tally import Tally, until

import spanloop as sl
from spanloop.errors import SpanloopError
from spanloop.trajectory import Outcome, Segment, Trajectory
from spanloop.trajectory.files.seal import LENGTH, sealed

KINDS = (".npz", ".nc", ".h5", ".ckpt")
SECONDS, MEMORY = 10.0, 2**30


def attack(seed: int, deadline: float) -> Tally:
    """Cases 0, 1, 2, ... of a seed until the deadline."""
    return until(case, seed, deadline)


def case(seed: int, k: int) -> Tally:
    """One file, changed in one way and read."""
    rng = np.random.default_rng([seed, k])
    kind = KINDS[k % len(KINDS)]
    data = whole(kind, int(rng.integers(2)))
    is_sealed = bool(rng.random() < 0.5)
    change = _structured if is_sealed else _bytes
    data = change(data, kind, rng)
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="run-files-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / f"run{kind}"
        path.write_bytes(data)
        trouble, answer = _read(path)
    if not trouble and answer is not None and not is_sealed and _bits(answer) not in _expected(kind):
        trouble = "a file with other bytes was read, and gave other numbers"
    if trouble:
        tally.fail(f"run_files.case({seed}, {k}), {kind}, {'sealed' if is_sealed else 'bytes'}: {trouble}")
    else:
        tally.count(right=answer is not None, refused=answer is None)
        tally.notes["well-formed" if is_sealed else "other bytes"] += 1
    return tally


def _read(path: Path) -> tuple[str, Trajectory | None]:
    """What went wrong, and what was read: None where the file is refused."""
    before, began = _memory(reset=True), time.monotonic()
    trouble, answer = "", None
    try:
        answer = _simulated(path) if path.suffix == ".ckpt" else sl.load_run(path)
        str(answer)
    except SpanloopError as error:
        answer = None
        if path.name not in str(error):
            trouble = f"the sentence does not name the file: {error}"
    except Exception as error:
        trouble = f"{type(error).__name__}: {error}"
    took, grown = time.monotonic() - began, _memory() - before
    if took > SECONDS:
        trouble = f"took {took:.0f} s"
    if grown > MEMORY:
        trouble = f"took {grown / 2**30:.1f} GB"
    return trouble, answer


def _memory(reset: bool = False) -> int:
    """The most memory [bytes] that the process has held since the last reset; 0 where the system does not tell."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        return 1024 * int(re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[0])
    except (OSError, IndexError):
        return 0


# ---- whole files


@functools.cache
def whole(kind: str, number: int) -> bytes:
    """The bytes of a file that is well."""
    with tempfile.TemporaryDirectory(prefix="run-files-") as folder:
        path = Path(folder) / f"run{kind}"
        if kind != ".ckpt":
            _run(number).save(path)
            return path.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _simulated(path, interrupted=True)
        return path.read_bytes()


@functools.cache
def _run(number: int) -> Trajectory:
    """One run, or a batch with all that a run can have."""
    model, rng, n = sl.zoo.four_bar(), np.random.default_rng(number), 12
    batch = (2,) * number
    q, v, tau = rng.normal(size=(3, *batch, n, 3))
    done = Outcome("finished", "The run finished.", 1.1)
    if not number:
        return Trajectory(model, Segment(np.arange(n) / 10.0, q, v, tau), done, {"integrator": "rk4", "step": 0.1})
    whole = Segment(np.arange(n) / 10.0, q, v, tau, rng.normal(size=(*batch, n, 4)))
    end = [x[:, :1] for x in (q, v, tau, whole.memory)]
    return Trajectory(
        model,
        (whole.samples(slice(0, 5)), whole.samples(slice(5, None))),
        (done, Outcome("event", "τ → 0", 0.95)),
        {"step": 0.1 + 0.2, "nothing": float("nan"), "name": "ü"},
        {"coupler": rng.normal(size=(*batch, n, 6))},
        Segment(np.array([np.nan, 0.95]), *end),
        rng.uniform(size=batch),
    )


def _simulated(path: Path, interrupted: bool = False) -> Trajectory:
    """A simulation with a callback that keeps its progress in the file."""

    def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        if interrupted and t > 0.01:
            raise KeyboardInterrupt
        return -0.1 * v

    given = sl.control.callback(law, key="law")
    kept = sl.Integrator(checkpoint=path, progress=False)
    return sl.simulate(sl.zoo.pendulum(2), [0.5, 0.2], duration=0.02, controller=given, integrator=kept)


@functools.cache
def _expected(kind: str) -> tuple[bytes, ...]:
    """The bits of what whole files hold."""
    if kind != ".ckpt":
        return tuple(_bits(_run(number)) for number in range(2))
    with tempfile.TemporaryDirectory(prefix="run-files-") as folder:
        return (_bits(_simulated(Path(folder) / "run.ckpt")),)


def _bits(run: Trajectory) -> bytes:
    return b"".join(x.tobytes() for x in (run.times, run.q, run.v, run.tau))


# ---- other bytes


def _bytes(data: bytes, kind: str, rng: np.random.Generator) -> bytes:
    """The file with some bytes changed; never the file itself."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at, size = int(rng.integers(len(out))), int(2 ** rng.uniform(0, 10))
        match int(rng.integers(7)):
            case 0 | 1:
                out[at] ^= 1 << int(rng.integers(8))
            case 2:
                out[at : at + size] = rng.bytes(size)
            case 3:
                out[at : at + size] = bytes(size)
            case 4:
                del out[at : at + size]
            case 5:
                out[at:at] = out[at : at + size]
            case _:
                del out[max(at, 1) :]
    return bytes(out) if bytes(out) != data else data[:-1]


# ---- other content, sealed again


def _structured(data: bytes, kind: str, rng: np.random.Generator) -> bytes:
    if kind in (".nc", ".h5"):
        return _changed_hdf5(data, rng)
    if rng.random() < 0.3:
        return sealed(_bytes(data[:-LENGTH], kind, rng))
    return _changed_npz(data, rng)


def _changed_npz(data: bytes, rng: np.random.Generator) -> bytes:
    """Another archive of changed arrays."""
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        arrays: dict[str, Any] = dict(found)
    name = str(rng.choice(list(arrays)))
    if name == "header":
        arrays[name] = np.frombuffer(_changed_text(arrays[name].tobytes(), rng), np.uint8)
    elif rng.random() < 0.2:
        arrays[str(rng.choice(["memory", "forces", "end_q", "extra", "../x"]))] = arrays.pop(name)
    elif rng.random() < 0.2:
        arrays[name] = _lying(arrays[name], rng)
    else:
        arrays[name] = _changed_array(arrays[name], rng)
    out = io.BytesIO()
    packing = zipfile.ZIP_DEFLATED if rng.random() < 0.1 else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", packing) as archive:
        for key, x in arrays.items():
            content = io.BytesIO()
            if not isinstance(x, bytes):
                np.save(content, x, allow_pickle=True)
            archive.writestr(f"{key}.npy", x if isinstance(x, bytes) else content.getvalue())
    return sealed(out.getvalue())


def _lying(x: np.ndarray, rng: np.random.Generator) -> bytes:
    """A .npy file that claims another shape than it has."""
    shape = tuple(int(10 ** rng.uniform(0, 16)) * int(rng.choice([1, 1, 1, -1, 0])) for _ in range(rng.integers(4)))
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return content.getvalue() + x.tobytes()


def _changed_array(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    changes: list[Callable[[], np.ndarray]] = [
        lambda: x[..., :-1] if x.ndim else x[None],
        lambda: x[1:] if x.ndim else x,
        lambda: np.concatenate([x, x]) if x.ndim else x,
        lambda: x.T.copy(),
        lambda: x[None],
        lambda: x.ravel(),
        lambda: np.zeros(int(10 ** rng.uniform(0, 6))),
        lambda: np.full(x.shape, rng.choice([np.nan, np.inf, 1e308, -1e308, 1e-320])),
        lambda: np.full(x.shape, rng.integers(-(2**62), 2**62)),
        lambda: np.resize(x, x.shape).astype(rng.choice(["f2", ">f8", "i1", "c16", "U3", "?"]), casting="unsafe"),
        lambda: np.array([None, {}], dtype=object),
        lambda: np.empty((0,) * x.ndim),
    ]
    try:
        return changes[int(rng.integers(len(changes)))]()
    except (ValueError, TypeError):
        return np.zeros(3)


_VALUES = (
    None, True, -1, 10**18, 10**400, 1e308, float("nan"), "", "x" * 10_000, [], [[]], {}, {"a": {}}, "\0\ud800"
)  # fmt: skip


def _changed_text(text: bytes, rng: np.random.Generator) -> bytes:
    """Another header: a value of another kind, or other characters."""
    if rng.random() < 0.3:
        out = bytearray(text)
        out[int(rng.integers(len(out)))] = int(rng.integers(256))
        return bytes(out)
    header = json.loads(text)
    values = [
        None,
        True,
        -1,
        10**18,
        10**400,
        1e308,
        float("nan"),
        "",
        "x" * 10_000,
        [],
        [[]],
        {},
        {"a": {}},
        "\u0000\ud800",
    ]
    value: Any = values[int(rng.integers(len(values)))]
    name = str(rng.choice(list(header)))
    inner = header[name]
    if rng.random() < 0.5 and isinstance(inner, dict) and inner:
        inner[str(rng.choice(list(inner)))] = value
    elif rng.random() < 0.5 and isinstance(inner, list) and inner:
        inner[int(rng.integers(len(inner)))] = value
    elif rng.random() < 0.5 and isinstance(inner, str) and inner:
        at = int(rng.integers(len(inner)))
        header[name] = inner[:at] + str(rng.choice(["[", '"', "=", "\n", "1e999", "nan", "a.b.c"])) + inner[at + 1 :]
    elif rng.random() < 0.2:
        del header[name]
    else:
        header[name] = value
    out = json.dumps(header)
    return (out if rng.random() > 0.05 else "[" * 100_000 + out).encode()


def _changed_hdf5(data: bytes, rng: np.random.Generator) -> bytes:
    """The file with one object changed by h5py."""
    import h5py

    file = io.BytesIO(data[:-LENGTH])
    with h5py.File(file, "r+") as f:
        name = str(
            rng.choice([n for n in ("spanloop", "q", "v", "tau", "time", "residual", "force", "memory") if n in f])
        )
        old = f[name][()]
        for scale in [n for n in f if isinstance(f[n], h5py.Dataset)]:
            for axis in f[scale].dims:
                for attached in list(axis.values()):
                    axis.detach_scale(attached)
        del f[name]
        match int(rng.integers(9)):
            case 0:
                pass
            case 1:
                f.create_group(name)
            case 2:
                f.create_dataset(name, shape=(int(10 ** rng.uniform(6, 15)),), dtype="f8")
            case 3:
                f.create_dataset(name, shape=(10**12,), chunks=(1000,), compression="gzip", dtype="f8")
            case 4:
                f[name] = h5py.SoftLink("/" + str(rng.choice(["v", name, "nowhere"])))
            case 5:
                f[name] = h5py.ExternalLink("other.h5", name)
            case 6:
                f.create_dataset(name, data=["a", "bc"], dtype=h5py.string_dtype())
            case _ if name == "spanloop":
                f.create_dataset(name, data=np.bytes_(_changed_text(bytes(old), rng)))
            case _:
                new = _changed_array(np.asarray(old), rng)
                f.create_dataset(name, data=new if new.dtype.kind in "fiub" else np.zeros(2))
    return sealed(file.getvalue())
