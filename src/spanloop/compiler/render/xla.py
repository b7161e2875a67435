"""Handlers of XLA's foreign function interface (FFI) as LLVM text:  ptr error = handler(ptr call_frame)

XLA calls a handler with buffers of the inputs, one for the answer and one for the status of every state, a byte each.
The handler passes their memory on to a kernel, without Python in between, and returns null, or an error. Offsets of
fields are those of XLA's C interface 0.x (`xla/ffi/api/c_api.h`, which jaxlib contains), which later versions of 0.x
extend at the ends of its structures only. XLA also asks a handler for the version that it was written for.

The host fills the global `table`: the address of the kernel, or what a launch on a GPU needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spanloop.compiler.render.instructions import Real

CALL_FRAME = {"extension_start": 8, "api": 16, "ctx": 24, "args.args": 72, "rets.rets": 112}
BUFFER = {"data": 24, "rank": 32, "dims": 40}
API = {"api_version.major_version": 32, "api_version.minor_version": 36, "Error_Create": 48, "Stream_Get": 80}
METADATA = {"api_version.major_version": 24, "api_version.minor_version": 28, "traits": 32}
EXTENSION = {"type": 8, "metadata": 24}
STREAM_GET = {"ctx": 16, "stream": 24}
ERROR_CREATE = {"message": 16, "errc": 24}
_METADATA_TYPE, _MAJOR, _OLDEST_MINOR, _RESOURCE_EXHAUSTED, _INTERNAL = 1, 0, 1, 8, 13
_MAY_BE_RECORDED = 1  # the trait of a handler that always launches the same: into a graph of the GPU
_MESSAGE = 128  # bytes of an error's text
HEAD = 2  # entries of a GPU's table before those of devices


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched: threads, states and bytes of shared memory of a block, and of scratch memory if any."""

    threads: int
    states: int
    shared: int
    scratch: int | None = None


def one_state(n_inputs: int, n_outputs: int, real: str) -> str:
    """A handler that calls table[0], the function of one state (render/single.py); NaN where it has no answer."""
    w = _Writer()
    inputs, out, status, _ = w.buffers(n_inputs)
    passed = ", ".join(f"ptr {w.data(x)}" for x in inputs)
    answer, marks = w.data(out), w.data(status)
    found = w.new(f"call i32 {w.entry(0)}({passed}, ptr {answer})")
    w.add(f"store i8 {w.new(f'trunc i32 {found} to i8')}, ptr {marks}")
    if n_outputs:
        w.branch(w.new(f"icmp eq i32 {found}, 0"), "done", "refused")
        w.loop("refused", str(n_outputs), "done", lambda k: _store_nan(w, Real(real), answer, k))
        w.block("done")
    w.add("ret ptr null")
    return w.source("[1 x ptr]")


def many_states(sizes: Sequence[int], real: str, scratch: int) -> str:
    """A handler that calls table[0], the function of many states (render/batch.py), with `scratch` numbers of memory.

    An input of one axis has one row for all states.
    """
    w = _Writer()
    inputs, out, status, _ = w.buffers(len(sizes))
    n = w.count(status)
    rows = []
    for x, size in zip(inputs, sizes, strict=True):
        is_shared = w.new(f"icmp eq i64 {w.at(x, BUFFER['rank'], 'i64')}, 1")
        rows.append(f"ptr {w.data(x)}, i64 {w.new(f'select i1 {is_shared}, i64 0, i64 {size}')}")
    answer, marks = w.data(out), w.data(status)
    memory = w.new(f"call ptr @malloc(i64 {(scratch + 64) * Real(real).size})")
    w.branch(w.new(f"icmp eq ptr {memory}, null"), "full", "go")
    w.block("full")
    w.fail("spanloop: there is too little memory for a batch", _RESOURCE_EXHAUSTED)
    w.block("go")
    w.add(f"call void @llvm.memset.p0.i64(ptr {marks}, i8 0, i64 {n}, i1 false)")
    up = w.new(f"add i64 {w.new(f'ptrtoint ptr {memory} to i64')}, 63")
    aligned = w.new(f"inttoptr i64 {w.new(f'and i64 {up}, -64')} to ptr")
    w.new(f"call i64 {w.entry(0)}({', '.join(rows)}, ptr {answer}, ptr {marks}, ptr {aligned}, i64 0, i64 {n})")
    w.add(f"call void @free(ptr {memory})")
    w.add("ret ptr null")
    declared = "declare ptr @malloc(i64)\ndeclare void @free(ptr)\ndeclare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
    return w.source("[1 x ptr]") + declared


def on_gpu(sizes: Sequence[int], common: Sequence[bool], launch: Launch, n_devices: int) -> str:
    """A handler that launches a kernel on XLA's stream (render/gpu/).

    table: cuLaunchKernel, cuCtxGetCurrent, then context and function of every device. common: of each input, whether
    all states share one row. A kernel with scratch memory finds it in a third result, whose size says how many blocks
    there are.
    """
    w = _Writer(_MAY_BE_RECORDED)
    inputs, out, status, rets = w.buffers(len(sizes))
    n = w.count(status)
    w.branch(w.new(f"icmp eq i64 {n}, 0"), "nothing", "some")
    w.block("nothing")
    w.add("ret ptr null")
    w.block("some")
    stream = w.stream()
    function = _function_of_context(w, n_devices)
    values: list[tuple[str, str]] = []
    for x, size, is_common in zip(inputs, sizes, common, strict=True):
        values.append(("ptr", w.data(x)))
        if launch.scratch is not None:
            values.append(("i64", "0" if is_common else str(size)))
    values += [("ptr", w.data(out)), ("ptr", w.data(status))]
    if launch.scratch is None:
        up = w.new(f"add i64 {n}, {launch.states - 1}")
        blocks = w.new(f"udiv i64 {up}, {launch.states}")
        values.append(("i32", w.new(f"trunc i64 {n} to i32")))
    else:
        memory = w.at(rets, 16)
        length = w.new(f"load i64, ptr {w.at(memory, BUFFER['dims'])}")
        blocks = w.new(f"udiv i64 {length}, {launch.scratch}")
        values += [("ptr", w.data(memory)), ("i64", n)]
    _launch(w, function, blocks, launch, stream, values)
    return w.source(f"[{HEAD + 2 * n_devices} x ptr]") + "declare i32 @snprintf(ptr, i64, ptr, ...)\n"


def _function_of_context(w: _Writer, n_devices: int) -> str:
    """The kernel's function on the device whose context is current."""
    cell = w.new("alloca ptr")
    w.add(f"store ptr null, ptr {cell}")
    w.new(f"call i32 {w.entry(1)}(ptr {cell})")
    context, function = w.new(f"load ptr, ptr {cell}"), "null"
    for k in range(n_devices):
        is_here = w.new(f"icmp eq ptr {context}, {w.entry(HEAD + 2 * k)}")
        function = w.new(f"select i1 {is_here}, ptr {w.entry(HEAD + 2 * k + 1)}, ptr {function}")
    w.branch(w.new(f"icmp eq ptr {function}, null"), "elsewhere", "here")
    w.block("elsewhere")
    w.fail("spanloop: the kernel is not loaded on this GPU; it was not there when the function was compiled", _INTERNAL)
    w.block("here")
    return function


def _launch(w: _Writer, function: str, blocks: str, launch: Launch, stream: str, values) -> None:
    arguments = w.new(f"alloca [{len(values)} x ptr]")
    for k, (kind, value) in enumerate(values):
        cell = w.new(f"alloca {kind}")
        w.add(f"store {kind} {value}, ptr {cell}")
        w.put(arguments, 8 * k, "ptr", cell)
    shape = f"i32 {w.new(f'trunc i64 {blocks} to i32')}, i32 1, i32 1, i32 {launch.threads}, i32 1, i32 1"
    rest = f"i32 {launch.shared}, ptr {stream}, ptr {arguments}, ptr null"
    found = w.new(f"call i32 {w.entry(0)}(ptr {function}, {shape}, {rest})")
    w.branch(w.new(f"icmp eq i32 {found}, 0"), "started", "refused")
    w.block("refused")
    text = w.new(f"alloca [{_MESSAGE} x i8]")
    form = w.text("spanloop: cuLaunchKernel failed (CUDA error %d)")
    w.new(f"call i32 (ptr, i64, ptr, ...) @snprintf(ptr {text}, i64 {_MESSAGE}, ptr {form}, i32 {found})")
    w.fail_with(text, _INTERNAL)
    w.block("started")
    w.add("ret ptr null")


def _store_nan(w: _Writer, t: Real, answer: str, k: str) -> None:
    p = w.new(f"getelementptr {t.real}, ptr {answer}, i64 {k}")
    w.add(f"store {t.real} {t.constant(float('nan'))}, ptr {p}, align {t.size}")


class _Writer:
    """The text of one handler; begins with the answer to XLA's question for the version."""

    def __init__(self, traits: int = 0):
        self._lines: list[str] = ["entry:"]
        self._texts: list[str] = []
        self._here = "entry"
        self._describe(traits)

    def add(self, line: str) -> None:
        """An instruction without a value."""
        self._lines.append(line)

    def new(self, instruction: str) -> str:
        """The value of an instruction."""
        name = f"%v{len(self._lines)}"
        self._lines.append(f"{name} = {instruction}")
        return name

    def at(self, pointer: str, offset: int, kind: str = "ptr") -> str:
        """The field that is `offset` bytes after the beginning of a structure."""
        return self.new(f"load {kind}, ptr {self.new(f'getelementptr i8, ptr {pointer}, i64 {offset}')}")

    def put(self, pointer: str, offset: int, kind: str, value: str) -> None:
        """Write a field."""
        self.add(f"store {kind} {value}, ptr {self.new(f'getelementptr i8, ptr {pointer}, i64 {offset}')}")

    def entry(self, k: int) -> str:
        """Entry k of the table."""
        return self.at("@table", 8 * k)

    def text(self, words: str) -> str:
        """A string constant."""
        self._texts.append(words)
        return f"@text{len(self._texts) - 1}"

    def block(self, name: str) -> None:
        """Begin a block."""
        self._here = name
        self.add(f"{name}:")

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        """Go on at one of two blocks."""
        self.add(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def loop(self, name: str, count: str, after: str, body: Callable[[str], None]) -> None:
        """A block that repeats body(k) for k = 0, ..., count − 1, and goes on at `after`; count is at least 1."""
        before = self._here
        self.block(name)
        self.add(f"%{name}.k = phi i64 [0, %{before}], [%{name}.next, %{name}]")
        body(f"%{name}.k")
        self.add(f"%{name}.next = add i64 %{name}.k, 1")
        self.branch(self.new(f"icmp slt i64 %{name}.next, {count}"), name, after)

    def _describe(self, traits: int) -> None:
        """Tell XLA our version, if it asks: its own, as long as that is 0.x; go on otherwise."""
        extension = self.at("%frame", CALL_FRAME["extension_start"])
        self.branch(self.new(f"icmp eq ptr {extension}, null"), "run", "asked")
        self.block("asked")
        is_question = self.new(f"icmp eq i32 {self.at(extension, EXTENSION['type'], 'i32')}, {_METADATA_TYPE}")
        self.branch(is_question, "told", "run")
        self.block("told")
        metadata, api = self.at(extension, EXTENSION["metadata"]), self.at("%frame", CALL_FRAME["api"])
        for field, value in (("api_version.major_version", _MAJOR), ("api_version.minor_version", _OLDEST_MINOR)):
            self.put(metadata, METADATA[field], "i32", str(value))
        self.put(metadata, METADATA["traits"], "i32", str(traits))
        self.branch(self.new(f"icmp eq ptr {api}, null"), "leave", "compare")
        self.block("compare")
        is_known = self.new(f"icmp eq i32 {self.at(api, API['api_version.major_version'], 'i32')}, {_MAJOR}")
        self.branch(is_known, "follow", "leave")
        self.block("follow")
        minor = self.at(api, API["api_version.minor_version"], "i32")
        self.put(metadata, METADATA["api_version.minor_version"], "i32", minor)
        self.add("br label %leave")
        self.block("leave")
        self.add("ret ptr null")
        self.block("run")

    def buffers(self, n_inputs: int) -> tuple[list[str], str, str, str]:
        """The buffers of the inputs, of answer and status, and the list of all results."""
        arguments, rets = (self.at("%frame", CALL_FRAME[x]) for x in ("args.args", "rets.rets"))
        return [self.at(arguments, 8 * k) for k in range(n_inputs)], self.at(rets, 0), self.at(rets, 8), rets

    def data(self, buffer: str) -> str:
        """The memory of a buffer."""
        return self.at(buffer, BUFFER["data"])

    def count(self, buffer: str) -> str:
        """How many entries a buffer has."""
        rank, dims = self.at(buffer, BUFFER["rank"], "i64"), self.at(buffer, BUFFER["dims"])
        self.add("br label %count")
        before = self._here
        self.block("count")
        self.add(f"%axis = phi i64 [0, %{before}], [%axis.next, %multiply]")
        self.add(f"%n = phi i64 [1, %{before}], [%n.next, %multiply]")
        self.branch(self.new(f"icmp slt i64 %axis, {rank}"), "multiply", "counted")
        self.block("multiply")
        length = self.new(f"load i64, ptr {self.new(f'getelementptr i64, ptr {dims}, i64 %axis')}")
        self.add(f"%n.next = mul i64 %n, {length}")
        self.add("%axis.next = add i64 %axis, 1")
        self.add("br label %count")
        self.block("counted")
        return "%n"

    def stream(self) -> str:
        """XLA's stream; its error is returned if it has none."""
        asked = self.new("alloca [4 x i64], align 8")
        self.put(asked, 0, "i64", "32")
        self.put(asked, 8, "ptr", "null")
        self.put(asked, STREAM_GET["ctx"], "ptr", self.at("%frame", CALL_FRAME["ctx"]))
        self.put(asked, STREAM_GET["stream"], "ptr", "null")
        get = self.at(self.at("%frame", CALL_FRAME["api"]), API["Stream_Get"])
        error = self.new(f"call ptr {get}(ptr {asked})")
        self.branch(self.new(f"icmp eq ptr {error}, null"), "streaming", "still")
        self.block("still")
        self.add(f"ret ptr {error}")
        self.block("streaming")
        return self.at(asked, STREAM_GET["stream"])

    def fail(self, words: str, code: int) -> None:
        """Return an error with this text."""
        self.fail_with(self.text(words), code)

    def fail_with(self, text: str, code: int) -> None:
        """Return an error with the text at a pointer."""
        asked = self.new("alloca [4 x i64], align 8")
        self.put(asked, 0, "i64", str(ERROR_CREATE["errc"] + 4))
        self.put(asked, 8, "ptr", "null")
        self.put(asked, ERROR_CREATE["message"], "ptr", text)
        self.put(asked, ERROR_CREATE["errc"], "i32", str(code))
        create = self.at(self.at("%frame", CALL_FRAME["api"]), API["Error_Create"])
        self.add(f"ret ptr {self.new(f'call ptr {create}(ptr {asked})')}")

    def source(self, table: str) -> str:
        """The whole text; table: type of the table."""
        texts = "".join(
            f'@text{k} = internal constant [{len(x) + 1} x i8] c"{x}\\00"\n' for k, x in enumerate(self._texts)
        )
        body = "\n".join(self._lines)
        return f"@table = global {table} zeroinitializer\n{texts}define ptr @handler(ptr %frame) {{\n{body}\n}}\n"
