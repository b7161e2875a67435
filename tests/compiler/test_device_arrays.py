"""Arrays of other libraries, borrowed and lent without a copy: NumPy, and PyTorch and JAX where installed."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

from spanloop.compiler.runtime import dlpack
from spanloop.compiler.runtime.arrays import aligned
from spanloop.compiler.runtime.device_arrays import DeviceArray, borrowed, checked, returned
from spanloop.errors import InputError


def numpy_array(x: np.ndarray):
    return x


def torch_tensor(x: np.ndarray):
    return pytest.importorskip("torch").from_numpy(x)


def jax_array(x: np.ndarray):
    pytest.importorskip("jax")
    import jax

    if x.dtype == np.float64 and not jax.config.jax_enable_x64:
        pytest.skip("JAX has no float64 in this process")
    return jax.numpy.asarray(x)


LIBRARIES = (numpy_array, torch_tensor, jax_array)


def address(x) -> int:
    """Where a library says that its numbers begin."""
    if isinstance(x, np.ndarray):
        return x.ctypes.data
    return x.data_ptr() if hasattr(x, "data_ptr") else x.unsafe_buffer_pointer()


class Memory:
    """Numbers with an end that can be observed."""

    def __init__(self, numbers: np.ndarray):
        self.numbers = numbers


def lent(numbers: np.ndarray, **more) -> tuple[DeviceArray, weakref.ref]:
    memory = Memory(numbers)
    array = DeviceArray(numbers.ctypes.data, numbers.shape, numbers.strides, numbers.dtype, owner=memory, **more)
    return array, weakref.ref(memory)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_a_borrowed_array_is_where_its_library_says(library, dtype):
    x = library(np.arange(6).reshape(2, 3).astype(dtype))
    found = borrowed("f", "q", x)
    assert found.pointer == address(x)
    assert (found.shape, found.dtype, found.__dlpack_device__()) == ((2, 3), np.dtype(dtype), (dlpack.CPU, 0))
    assert found.is_contiguous


@pytest.mark.parametrize("library", [numpy_array, torch_tensor])
def test_strides_are_in_bytes_and_offsets_count(library):
    whole = library(np.arange(24.0).reshape(4, 6))
    part = whole[1:, 1::2]
    found = borrowed("f", "q", part)
    assert found.pointer == address(whole) + 8 * 7
    assert found.strides == (48, 16)
    assert not found.is_contiguous


@pytest.mark.slow
def test_a_borrowed_array_keeps_its_memory_alive():
    numbers = np.arange(5.0)
    source, memory = lent(numbers)
    found = borrowed("f", "q", source)
    del source
    gc.collect()
    assert memory() is not None
    del found
    gc.collect()
    assert memory() is None


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_lent_array_is_read_in_place_and_let_go_once(library):
    numbers = aligned(48).view(np.float32).reshape(3, 4)  # JAX copies what does not begin at a multiple of 64
    numbers[:] = np.arange(12).reshape(3, 4)
    like = library(np.zeros(1, np.float32))
    array, memory = lent(numbers)
    held = sys.getrefcount(numbers)
    found = returned(array, like)
    assert type(found) is type(like)
    assert address(found) == numbers.ctypes.data
    assert np.array_equal(np.asarray(found), numbers)
    del array
    gc.collect()
    assert memory() is not None
    del found
    gc.collect()
    assert memory() is None
    assert sys.getrefcount(numbers) == held - 1  # the reference of Memory, and no other


@pytest.mark.parametrize("library", [numpy_array, torch_tensor])
def test_a_lent_array_keeps_its_strides(library):
    numbers = np.arange(24.0).reshape(4, 6)[:, ::2]
    array, _ = lent(numbers)
    found = returned(array, library(np.zeros(1)))
    assert np.array_equal(np.asarray(found), numbers)
    assert address(found) == numbers.ctypes.data


@pytest.mark.slow
@pytest.mark.parametrize("version", [None, (1, 0), (1, 3)])
def test_a_capsule_that_nobody_consumes_lets_its_memory_go(version):
    array, memory = lent(np.zeros(3))
    capsule = array.__dlpack__(max_version=version)
    assert ("versioned" in repr(capsule)) == (version is not None)
    del array
    gc.collect()
    assert memory() is not None
    del capsule
    assert memory() is None


@pytest.mark.slow
def test_a_thread_may_let_the_memory_go():
    array, memory = lent(np.zeros(3))
    found = [np.from_dlpack(array)]
    del array
    thread = threading.Thread(target=found.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert memory() is None


@pytest.mark.slow
def test_a_consumer_that_raises_lets_the_memory_go_and_keeps_its_own_error():
    class Refusing:
        def __init__(self, source):
            self.source = source

        def __dlpack_device__(self):
            return (99, 0)

        def __dlpack__(self, **_):
            return self.source.__dlpack__()

    array, memory = lent(np.zeros(3), device_type=99)
    with pytest.raises((BufferError, ValueError, RuntimeError)):
        np.from_dlpack(Refusing(array))
    del array
    gc.collect()
    assert memory() is None


def test_an_array_that_outlives_the_interpreter_ends_quietly():
    code = (
        "import numpy as np\n"
        "from spanloop.compiler.runtime.device_arrays import DeviceArray\n"
        "x = np.zeros(3)\n"
        "y = np.from_dlpack(DeviceArray.of_rows(x.ctypes.data, (3,), x.dtype, owner=x))\n"
        "import builtins; builtins.kept = (y, DeviceArray.of_rows(x.ctypes.data, (3,), x.dtype).__dlpack__())\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_read_only_arrays_stay_so():
    numbers = np.arange(3.0)
    numbers.flags.writeable = False
    assert borrowed("f", "q", numbers).read_only
    array, _ = lent(numbers, read_only=True)
    assert not np.from_dlpack(array).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        array.__dlpack__()


def test_a_lender_makes_no_copies():
    array, _ = lent(np.zeros(3))
    with pytest.raises(BufferError, match="makes no copies"):
        array.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="lends its memory on the CPU"):
        array.__dlpack__(dl_device=(dlpack.CUDA, 0))


def test_a_consumers_stream_is_waited_for_unless_it_says_not_to():
    asked: list[int | None] = []
    array, _ = lent(np.zeros(3), ready=asked.append)
    array.__dlpack__(stream=7)
    array.__dlpack__(stream=-1)
    assert asked == [7]


class OnCuda:
    """What a CUDA library's array looks like; its numbers are never touched."""

    def __init__(self, **more):
        given = {"shape": (4, 3), "typestr": "<f4", "data": (4096, False), "version": 3}
        self.__cuda_array_interface__ = given | more


def test_the_cuda_array_interface_is_read():
    found = borrowed("f", "q", OnCuda(stream=5))
    assert (found.pointer, found.shape, found.strides, found.dtype) == (4096, (4, 3), (12, 4), np.float32)
    assert (found.device_type, found.device_id, found.stream) == (dlpack.CUDA, None, 5)
    columns = borrowed("f", "q", OnCuda(strides=(4, 16), data=(4096, True)))
    assert columns.strides == (4, 16)
    assert columns.read_only
    assert not columns.is_contiguous


def test_an_array_on_a_device_offers_the_cuda_array_interface():
    array = DeviceArray.of_rows(4096, (4, 3), np.float32, device_type=dlpack.CUDA, stream=5)
    again = borrowed("f", "q", OnCuda(**array.__cuda_array_interface__))
    assert (again.pointer, again.shape, again.strides, again.stream) == (4096, (4, 3), (12, 4), 5)
    assert not hasattr(DeviceArray.of_rows(4096, (4, 3), np.float32), "__cuda_array_interface__")


def test_the_cuda_array_interface_names_the_default_stream_for_readers_on_streams_that_do_not_wait_for_it():
    """Version 3 of the interface: 1 is the legacy default stream, None means that there is nothing to wait for."""
    for stream, offered in ((None, None), (0, 1), (5, 5)):
        array = DeviceArray.of_rows(4096, (4, 3), np.float32, device_type=dlpack.CUDA, stream=stream)
        assert array.__cuda_array_interface__["stream"] == offered


def test_a_dlpack_source_on_cuda_gets_the_stream_of_the_reader():
    class Source:
        def __init__(self):
            self.asked = []

        def __dlpack_device__(self):
            return (dlpack.CUDA, 1)

        def __dlpack__(self, stream=None, max_version=None):
            self.asked.append(stream)
            return DeviceArray.of_rows(4096, (2,), np.float64, device_type=dlpack.CUDA, device_id=1).__dlpack__()

    source = Source()
    found = [borrowed("f", "q", source, stream=s) for s in (None, 0, 77)]
    assert source.asked == [None, 1, 77]  # DLPack calls the default stream 1
    assert all((x.pointer, x.__dlpack_device__()) == (4096, (dlpack.CUDA, 1)) for x in found)


def test_a_result_for_an_unknown_library_offers_both_protocols():
    array = DeviceArray.of_rows(4096, (4, 3), np.float32, device_type=dlpack.CUDA)
    assert returned(array, OnCuda()) is array


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        ([1.0, 2.0], "f: q is a list; expected an array with __dlpack__ or __cuda_array_interface__"),
        (OnCuda(mask=1), "f: q is a OnCuda that lends no numbers: it has a mask"),
        (np.array(["text"]), "f: q is a ndarray that lends no numbers"),
    ],
)
def test_what_lends_no_numbers_is_refused(x, sentence):
    with pytest.raises(InputError) as caught:
        borrowed("f", "q", x)
    assert str(caught.value).startswith(sentence)


def test_numbers_that_numpy_does_not_have_are_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match="bfloat16, 16 bits"):
        borrowed("f", "q", torch.zeros(3, dtype=torch.bfloat16))
    with pytest.raises(InputError, match=r"lends no numbers: .*grad"):
        borrowed("f", "q", torch.zeros(3, requires_grad=True))


def test_a_wrong_dtype_and_a_wrong_device_are_refused_with_what_was_found():
    array = borrowed("f", "q", np.zeros(3))
    assert checked("f", "q", array, dtype=np.dtype("float64"), device_type=dlpack.CPU) is array
    with pytest.raises(InputError, match="f: q holds float64; expected float32"):
        checked("f", "q", array, dtype=np.dtype("float32"), device_type=dlpack.CPU)
    with pytest.raises(InputError, match=r"f: q is on the CPU; expected it on a CUDA device \(number 0\)"):
        checked("f", "q", array, dtype=np.dtype("float64"), device_type=dlpack.CUDA)
    other = DeviceArray.of_rows(4096, (3,), np.float64, device_type=dlpack.CUDA, device_id=1)
    with pytest.raises(
        InputError, match=r"is on a CUDA device \(number 1\); expected it on a CUDA device \(number 0\)"
    ):
        checked("f", "q", other, dtype=np.dtype("float64"), device_type=dlpack.CUDA)


def test_a_capsule_that_was_consumed_is_not_read_again():
    array, _ = lent(np.zeros(3))

    class Used:
        def __init__(self):
            self.capsule = array.__dlpack__()

        def __dlpack_device__(self):
            return (dlpack.CPU, 0)

        def __dlpack__(self, **_):
            return self.capsule

    used = Used()
    assert np.from_dlpack(used).shape == (3,)
    with pytest.raises(InputError, match="no capsule named 'dltensor'"):
        borrowed("f", "q", used)
