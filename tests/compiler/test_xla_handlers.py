"""Handlers of XLA's foreign function interface, called as XLA calls them: with structures of its C header."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import spanloop as sl
from spanloop.compiler.render import xla
from spanloop.compiler.render.single import FAR_ANGLE, NOT_FINITE
from spanloop.compiler.runtime import xla as runtime
from spanloop.compiler.runtime.gpu import driver
from spanloop.errors import UnsupportedError

POINTER = ctypes.c_void_p
ERROR = 0xE4404  # an address that stands for an error


class Buffer(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("extension_start", POINTER), ("dtype", ctypes.c_int), ("data", POINTER),
        ("rank", ctypes.c_int64), ("dims", ctypes.POINTER(ctypes.c_int64)),
    ]  # fmt: skip


class Version(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("extension_start", POINTER), ("major_version", ctypes.c_int),
        ("minor_version", ctypes.c_int),
    ]  # fmt: skip


class Api(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("extension_start", POINTER), ("api_version", Version),
        ("internal_api", POINTER), ("Error_Create", POINTER), ("Error_GetMessage", POINTER),
        ("Error_Destroy", POINTER), ("Handler_Register", POINTER), ("Stream_Get", POINTER),
    ]  # fmt: skip


class Values(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("extension_start", POINTER), ("size", ctypes.c_int64), ("types", POINTER),
        ("values", ctypes.POINTER(POINTER)),
    ]  # fmt: skip


class Attributes(ctypes.Structure):
    _fields_ = [*Values._fields_, ("attrs", POINTER)]


class Frame(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("extension_start", POINTER), ("api", ctypes.POINTER(Api)), ("ctx", POINTER),
        ("stage", ctypes.c_int), ("args", Values), ("rets", Values), ("attrs", Attributes), ("future", POINTER),
    ]  # fmt: skip


class Metadata(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("api_version", Version), ("traits", ctypes.c_uint32)]


class Question(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", POINTER),
        ("metadata", ctypes.POINTER(Metadata)),
    ]  # fmt: skip


class ErrorCreate(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("extension_start", POINTER), ("message", ctypes.c_char_p),
        ("errc", ctypes.c_int),
    ]  # fmt: skip


class StreamGet(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("extension_start", POINTER), ("ctx", POINTER), ("stream", POINTER),
    ]  # fmt: skip


class Caller:
    """Stands for XLA: calls a handler with arrays, and answers what the handler asks for."""

    def __init__(self, stream: int = 0x57EA, version: tuple[int, int] = (0, 3)):
        self.errors: list[tuple[str, int]] = []
        self._create = ctypes.CFUNCTYPE(POINTER, ctypes.POINTER(ErrorCreate))(self._on_error)
        self._stream = ctypes.CFUNCTYPE(POINTER, ctypes.POINTER(StreamGet))(self._on_stream)
        self.stream, self.context = stream, 0xC0
        self.api = Api(api_version=Version(major_version=version[0], minor_version=version[1]))
        self.api.Error_Create = ctypes.cast(self._create, POINTER)
        self.api.Stream_Get = ctypes.cast(self._stream, POINTER)

    def _on_error(self, asked):
        x = asked.contents
        assert x.struct_size == ErrorCreate.errc.offset + 4
        self.errors.append((x.message.decode(), x.errc))
        return ERROR

    def _on_stream(self, asked):
        x = asked.contents
        assert (x.struct_size, x.ctx) == (ctypes.sizeof(StreamGet), self.context)
        x.stream = self.stream
        return None

    def __call__(self, address: int, inputs, results) -> int | None:
        buffers = [[_buffer(a) for a in group] for group in (inputs, results)]
        lists = [(POINTER * max(len(g), 1))(*(ctypes.addressof(b) for b in g)) for g in buffers]
        arguments, rets = (Values(values=x, size=len(g)) for x, g in zip(lists, buffers, strict=True))
        frame = Frame(api=ctypes.pointer(self.api), ctx=self.context, stage=3, args=arguments, rets=rets)
        return _function(address)(ctypes.addressof(frame))

    def metadata(self, address: int, has_api: bool = True) -> tuple[int, int, int]:
        """Version and traits that a handler reports."""
        found = Metadata()
        question = Question(type=1, metadata=ctypes.pointer(found))
        frame = Frame(extension_start=ctypes.addressof(question))
        if has_api:
            frame.api = ctypes.pointer(self.api)
        assert _function(address)(ctypes.addressof(frame)) is None
        return found.api_version.major_version, found.api_version.minor_version, found.traits


def _function(address: int):
    return ctypes.CFUNCTYPE(POINTER, POINTER)(address)


def _buffer(a: np.ndarray) -> Buffer:
    dims = (ctypes.c_int64 * max(a.ndim, 1))(*a.shape)
    return Buffer(data=a.ctypes.data, rank=a.ndim, dims=dims)


# ---- the header


def fields(text: str, name: str) -> list[tuple[str, str]]:
    """Types and names of the fields of a structure in the header."""
    body = re.search(rf"^(?:typedef )?struct {name} \{{(.*?)^\}}", text, re.M | re.S)[1]
    body = re.sub(r"//.*", "", body)
    body = re.sub(r"_XLA_FFI_API_STRUCT_FIELD\(XLA_FFI_(\w+)\)", r"void* \1", body)
    return re.findall(r"([\w ]+?\**)\s*(\w+);", re.sub(r"\s*\*+\s*", "* ", body).replace("const ", ""))


SIZES = {"size_t": 8, "int64_t": 8, "int": 4, "uint32_t": 4, "int32_t": 4}


def offsets(text: str, name: str) -> tuple[dict[str, int], int]:
    """Where the fields of a structure begin, those of structures within by "outer.inner", and its size."""
    found, at = {}, 0
    for kind, field in fields(text, name):
        kind = kind.strip().removeprefix("struct ")
        if kind.endswith("*"):
            size = align = 8
        elif kind in SIZES or re.search(rf"\}} {kind};|typedef uint32_t {kind};", text):
            size = align = SIZES.get(kind, 4)
            if re.search(rf"struct {kind} \{{", text):
                size = align = 8
        else:
            inner, size = offsets(text, kind)
            at, align = -(-at // 8) * 8, 8
            found |= {f"{field}.{n}": at + k for n, k in inner.items()}
        at = -(-at // align) * align
        found[field] = at
        at += size
    return found, -(-at // 8) * 8


@pytest.mark.parametrize(
    ("structure", "ours"),
    [
        ("CallFrame", xla.CALL_FRAME),
        ("Buffer", xla.BUFFER),
        ("Api", xla.API),
        ("Metadata", xla.METADATA),
        ("Stream_Get_Args", xla.STREAM_GET),
        ("Error_Create_Args", xla.ERROR_CREATE),
    ],
)
def test_offsets_are_those_of_the_header_that_jaxlib_contains(structure, ours):
    ffi = pytest.importorskip("jax.ffi")
    text = (Path(ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h").read_text()
    found, _ = offsets(text, f"XLA_FFI_{structure}")
    assert {name: found[name] for name in ours} == ours


def test_our_own_structures_have_these_offsets():
    for structure, ours in ((Buffer, xla.BUFFER), (Question, xla.EXTENSION)):
        assert {n: getattr(structure, n).offset for n in ours} == ours
    assert Frame.args.offset + Values.values.offset == xla.CALL_FRAME["args.args"]
    assert Frame.rets.offset + Values.values.offset == xla.CALL_FRAME["rets.rets"]
    assert Api.Stream_Get.offset == xla.API["Stream_Get"]


# ---- on the CPU


def states(count: int, dtype="float64"):
    return [np.random.default_rng(k).normal(size=(count, 6)).astype(dtype) for k in range(3)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_state_has_the_bits_of_the_numpy_call(dtype):
    kernel = sl.compile(sl.zoo.puma(), "forward_dynamics", dtype=dtype)
    given = [x[0] for x in states(1, dtype)]
    out, status = np.full(6, 7, dtype), np.full((), 9, np.uint8)
    assert Caller()(runtime.cpu_handler(kernel, True).address, given, [out, status]) is None
    assert np.array_equal(out, kernel(*given))
    assert status == 0
    given[0][0] = np.nan
    Caller()(runtime.cpu_handler(kernel, True).address, given, [out, status])
    assert np.isnan(out).all()
    assert status & NOT_FINITE


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_many_states_have_the_bits_of_the_numpy_call_and_rows_can_be_shared(dtype):
    kernel = sl.compile(sl.zoo.puma(), "forward_dynamics", dtype=dtype)
    handler = runtime.cpu_handler(kernel, False)
    q, v, tau = states(12, dtype)
    for given in ((q, v, tau), (q, v[0], tau), (q.reshape(3, 4, 6), v[0], tau.reshape(3, 4, 6))):
        axes = given[0].shape[:-1]
        out, status = np.full((*axes, 6), 7, dtype), np.full(axes, 9, np.uint8)
        assert Caller()(handler.address, given, [out, status]) is None
        assert np.array_equal(out, kernel(*given))
        assert not status.any()
    q[5, 2] = 3e14
    out, status = np.empty((12, 6), dtype), np.full(12, 9, np.uint8)
    Caller()(handler.address, (q, v, tau), [out, status])
    assert np.flatnonzero(status).tolist() == [5]
    assert status[5] & FAR_ANGLE
    assert np.isnan(out[5]).all()


def test_no_states_are_computed_where_there_are_none():
    kernel = sl.compile(sl.zoo.puma(), "forward_dynamics")
    given, results = [np.empty((0, 6))] * 3, [np.empty((0, 6)), np.empty(0, np.uint8)]
    assert Caller()(runtime.cpu_handler(kernel, False).address, given, results) is None


@pytest.mark.parametrize(("version", "expected"), [((0, 1), (0, 1)), ((0, 3), (0, 3)), ((1, 2), (0, 1))])
def test_a_handler_reports_xlas_own_version_as_long_as_it_is_of_the_same_kind(version, expected):
    kernel = sl.compile(sl.zoo.puma(), "forward_dynamics")
    for is_one in (True, False):
        address = runtime.cpu_handler(kernel, is_one).address
        assert Caller(version=version).metadata(address) == (*expected, 0)
        assert Caller(version=version).metadata(address, has_api=False) == (0, 1, 0)


# ---- on a GPU, with a driver that only notes what it is asked for

_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, POINTER, *[ctypes.c_uint] * 7, POINTER, ctypes.POINTER(POINTER), ctypes.POINTER(POINTER)
)


class Driver:
    """Notes launches; context: the one that is current; answer: what cuLaunchKernel returns."""

    def __init__(self, monkeypatch, context: int, answer: int = 0):
        self.launches: list[tuple] = []
        self.context, self.answer = context, answer
        self._launch = _LAUNCH(self._on_launch)
        self._current = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(POINTER))(self._on_current)
        known = {"cuLaunchKernel": self._launch, "cuCtxGetCurrent": self._current}
        monkeypatch.setattr(driver, "address", lambda name: ctypes.cast(known[name], POINTER).value)
        self.kinds: list[type] = []

    def _on_current(self, out):
        out[0] = self.context
        return 0

    def _on_launch(self, function, *rest):
        shape, (stream, arguments, extra) = rest[:7], rest[7:]
        assert not extra
        values = [kind.from_address(arguments[k]).value for k, kind in enumerate(self.kinds)]
        self.launches.append((function, shape, stream, values))
        return self.answer


THREADS, STATES, SHARED, SCRATCH = 96, 64, 512, 100  # of a launch; SCRATCH: numbers of a thread


def gpu_kernels(model, contexts=(0xA0, 0xB0), scratch=None, threads=(THREADS, THREADS)):
    """Stand-ins for the kernels of two devices, whose functions are not loaded."""
    real = sl.compile(model, "forward_dynamics", target="cuda", dtype="float32")

    def made(number: int):
        module = SimpleNamespace(device=SimpleNamespace(context=contexts[number]))
        function = SimpleNamespace(handle=0xF0 + number, shared=SHARED, module=module)
        code = SimpleNamespace(function=function, threads=threads[number], states=STATES, scratch=scratch)
        return SimpleNamespace(name=real.name, inputs=real.inputs, dtype=real.dtype, code=lambda common, n: code)

    return parameters(real.source), [made(k) for k in range(2)]


def parameters(text: str) -> list[type]:
    """Kinds of the parameters of a kernel, from its text."""
    head = re.search(r"define ptx_kernel void @\w+\((.*)\)[^)]*$", text, re.M)[1]
    kinds = {"ptr": ctypes.c_uint64, "i64": ctypes.c_int64, "i32": ctypes.c_int32}
    return [kinds[x.split()[0]] for x in head.split(", ")]


@pytest.mark.parametrize("shared", [False, True])
def test_a_launch_has_the_arguments_that_the_kernel_takes(monkeypatch, shared):
    fake, caller, count = Driver(monkeypatch, context=0xB0), Caller(), 1000
    fake.kinds, kernels = gpu_kernels(sl.zoo.puma())
    handler = runtime.gpu_handler(kernels, (False, shared, False), count)
    given = states(count, "float32")
    given[1] = given[1][0] if shared else given[1]
    out, status = np.empty((count, 6), "float32"), np.empty(count, np.uint8)
    assert caller(handler.address, given, [out, status]) is None
    ((function, shape, stream, values),) = fake.launches
    assert (function, stream) == (0xF1, caller.stream)  # of the device whose context is current
    assert shape == (-(-count // STATES), 1, 1, THREADS, 1, 1, SHARED)
    assert values == [*(x.ctypes.data for x in (*given, out, status)), count]
    assert caller.metadata(handler.address) == (0, 3, 1)
    empty = [np.empty((0, 6), "float32")] * 3
    assert caller(handler.address, empty, [out[:0], status[:0]]) is None
    assert len(fake.launches) == 1


def test_a_kernel_with_scratch_memory_finds_it_in_a_third_result(monkeypatch):
    fake, caller, count, blocks = Driver(monkeypatch, context=0xA0), Caller(), 500, 8
    fake.kinds, kernels = gpu_kernels(sl.zoo.chain(60), scratch=SCRATCH)
    handler = runtime.gpu_handler(kernels, (False, True, False), count)
    given = [np.zeros((count, 60), "float32") for _ in range(3)]
    given[1] = given[1][0]
    results = [np.empty((count, 60), "float32"), np.empty(count, np.uint8)]
    scratch = np.empty(handler.launch.scratch * blocks, np.uint8)
    assert caller(handler.address, given, [*results, scratch]) is None
    ((function, shape, _, values),) = fake.launches
    assert (function, shape) == (0xF0, (blocks, 1, 1, THREADS, 1, 1, SHARED))
    rows = [y for x, stride in zip(given, (60, 0, 60), strict=True) for y in (x.ctypes.data, stride)]
    assert values == [*rows, *(x.ctypes.data for x in (*results, scratch)), count]
    assert handler.launch.scratch >= THREADS * SCRATCH * 4


def test_gpus_that_need_different_launches_are_refused(monkeypatch):
    Driver(monkeypatch, context=0xA0)
    _, kernels = gpu_kernels(sl.zoo.puma(), threads=(32, 64))
    with pytest.raises(UnsupportedError, match="choose some of one kind with CUDA_VISIBLE_DEVICES"):
        runtime.gpu_handler(kernels, (False, False, False), 10)


def test_a_launch_that_fails_is_an_error_of_xla(monkeypatch):
    _, kernels = gpu_kernels(sl.zoo.puma())
    given, results = states(3, "float32"), [np.empty((3, 6), "float32"), np.empty(3, np.uint8)]
    for context, answer, sentence in (
        (0xA0, 701, "cuLaunchKernel failed (CUDA error 701)"),
        (0xD0, 0, "the kernel is not loaded on this GPU"),
    ):
        fake, caller = Driver(monkeypatch, context, answer), Caller()
        handler = runtime.gpu_handler(kernels, (False, False, False), 3)
        assert caller(handler.address, given, results) == ERROR
        assert sentence in caller.errors[0][0]
        assert len(fake.launches) == (answer != 0)


def test_scratch_memory_suffices_for_all_threads_and_not_more_than_the_device_runs(monkeypatch):
    kernel = sl.compile(sl.zoo.puma(), "forward_dynamics", target="cuda")
    monkeypatch.setattr(type(kernel), "device", SimpleNamespace(multiprocessors=2))
    handler = runtime.Handler(None, (kernel,), xla.Launch(64, 64, 0, 1000))
    assert runtime.scratch_size(handler, 65) == 2000
    assert runtime.scratch_size(handler, 10**9) == 1000 * 2 * runtime.RESIDENT // 64
    assert runtime.scratch_size(runtime.Handler(None, (kernel,), xla.Launch(64, 64, 0)), 65) == 0
