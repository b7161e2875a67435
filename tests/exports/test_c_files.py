"""The C files themselves: compilers, self-test, names, symbols, and what writing leaves."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from c_code import COMPILERS, compile_c, needs_compiler

import spanloop as sl
from spanloop import zoo
from spanloop.errors import FileError, InputError, SpanloopError, UnsupportedError
from spanloop.exports import c_requests, c_writer
from spanloop.exports.c_names import comment, identifiers

HOSTILE = ["a b", 'quote " and \\', "end */ int x; /*", "what??/", "gelenk_\u00fc\n", "a_b", "1st", "// line"]


def hostile_model() -> sl.Model:
    """A chain whose joints have names that C does not allow."""
    b = sl.Builder('*/ #error "model" ??/')
    parent = "world"
    for k, name in enumerate(HOSTILE):
        b.body(f"body {k} */", 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
        b.revolute(name, parent, f"body {k} */", axis="z")
        parent = f"body {k} */"
    return b.build()


def self_test(path, folder, compiler=None, *flags):
    """Exit code and lines of the self-test."""
    program = compile_c([path], folder / "self_test", f"-D{path.stem.upper()}_TEST", *flags, compiler=compiler)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@needs_compiler
@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_self_test_passes_without_a_warning(real, compiler, tmp_path):
    functions, start = ["forward_dynamics", "mass_matrix"], zoo.four_bar_start()
    path = sl.export(zoo.four_bar(), functions, tmp_path / "bar.c", real=real, step=1e-3, q=start)
    code, out = self_test(path, tmp_path, compiler)
    assert (code, out.splitlines()[-1]) == (0, "bar: all tests passed")
    assert [line.split()[:2] for line in out.splitlines()[:-1]] == [
        ["bar_forward_dynamics", "ok,"],
        ["bar_mass_matrix", "ok,"],
        ["bar_step", "ok,"],
    ]


@needs_compiler
def test_the_self_test_fails_where_the_code_is_damaged(tmp_path):
    path = sl.export(zoo.pendulum(2), ["forward_dynamics"], tmp_path / "arm.c", step=1e-3)
    text = path.read_text()
    found = re.search(r"const double v\d+ = ([^;\n]*) \+ ([^;\n]*);", text)
    assert found
    path.write_text(text.replace(found[0], found[0].replace(" + ", " - ", 1), 1))
    code, out = self_test(path, tmp_path)
    assert code == 1
    assert "FAILED" in out


@needs_compiler
@pytest.mark.slow
def test_two_files_are_linked_into_one_program_and_all_symbols_have_the_prefix(tmp_path):
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    for name, model in (("left", zoo.pendulum(2)), ("right", zoo.four_bar())):
        sl.export(model, ["forward_dynamics"], tmp_path / f"{name}.c", step=1e-3, parameters="live")
    main = '#include "left.h"\n#include "right.h"\nint main(void) { left_motion a; right_motion b;'
    main += " left_start(&a); right_start(&b); return left_NV_ + right_NV_; }\n"
    main = main.replace("left_NV_", "(LEFT_NV - 2)").replace("right_NV_", "(RIGHT_NV - 3)")
    (tmp_path / "main.c").write_text(main)
    files = [tmp_path / f for f in ("main.c", "left.c", "right.c")]
    program = compile_c(files, tmp_path / "both")
    assert subprocess.run([str(program)], check=False).returncode == 0
    compile_c(files[1:2], tmp_path / "left.o", "-c")
    listed = subprocess.run(["nm", str(tmp_path / "left.o")], capture_output=True, text=True, check=True).stdout
    symbols = [line.split()[-2:] for line in listed.splitlines()]
    assert {kind for kind, _ in symbols} <= {"T", "t", "U", "r"}  # no variables
    assert all(name.startswith("left_") for kind, name in symbols if kind == "T")
    assert {name for kind, name in symbols if kind == "U"} <= {"memcpy", "memset", "sqrt", "_GLOBAL_OFFSET_TABLE_"}


@needs_compiler
def test_float_code_has_no_operation_in_double(tmp_path):
    if COMPILERS[0] != "gcc" or shutil.which("objdump") is None:
        pytest.skip("gcc and objdump are needed")
    path = sl.export(zoo.four_bar(), ["forward_dynamics"], tmp_path / "arm.c", real="float", step=1e-3)
    compile_c([path], tmp_path / "arm.o", "-c")
    listed = subprocess.run(
        ["objdump", "-d", str(tmp_path / "arm.o")], capture_output=True, text=True, check=True
    ).stdout
    assert "mulss" in listed or "fmul" in listed
    assert not re.search(r"\b\w*(mulsd|addsd|subsd|divsd|cvtss2sd|cvtsd2ss|sqrtsd)\b", listed)


@needs_compiler
@pytest.mark.slow
def test_names_hostile_to_c_are_safe_in_comments_and_identifiers(tmp_path):
    path = sl.export(hostile_model(), ["gravity_torques"], tmp_path / "arm.c", parameters="live", step=1e-3)
    for compiler in COMPILERS:
        assert self_test(path, tmp_path, compiler, "-trigraphs")[0] == 0
    header = path.with_suffix(".h").read_text()
    assert header.isascii()
    for word in ("ARM_Q_A_B = 0,", "ARM_Q_A_B_2 = 5,", "ARM_Q_1ST = 6,", "'gelenk_{U+00FC}{U+000A}'"):
        assert word in header
    assert comment("a*/b//c??/d\\") == "a* /b/ /c? ?/d{U+005C}"
    assert identifiers(["a b", "a_b", "A-B"]) == ["A_B", "A_B_2", "A_B_3"]


@needs_compiler
def test_the_header_serves_c_plus_plus(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    sl.export(zoo.pendulum(2), ["forward_dynamics"], tmp_path / "arm.c", step=1e-3)
    (tmp_path / "main.cpp").write_text(
        '#include "arm.h"\nint main() { arm_motion m; arm_start(&m); return ARM_NQ - 2; }\n'
    )
    compile_c([tmp_path / "arm.c"], tmp_path / "arm.o", "-c")
    words = ["g++", "-Wall", "-Wextra", "-Werror", str(tmp_path / "main.cpp"), str(tmp_path / "arm.o")]
    subprocess.run([*words, "-o", str(tmp_path / "program"), "-lm"], check=True)
    assert subprocess.run([str(tmp_path / "program")], check=False).returncode == 0


@needs_compiler
def test_fast_math_is_refused_by_the_file(tmp_path):
    path = sl.export(zoo.pendulum(2), ["forward_dynamics"], tmp_path / "arm.c")
    words = [COMPILERS[0], "-ffast-math", "-c", str(path), "-o", str(tmp_path / "arm.o")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "compile without -ffast-math" in done.stderr


def test_names_that_c_does_not_allow_are_refused_with_a_suggestion(tmp_path):
    model = zoo.pendulum()
    wrong = {
        "my arm.c": "is no name in C",
        "2r.c": "Try name='model_2r'",
        "int.c": "is a word of C or C++. Try name='int_model'",
        "_arm.c": "is reserved",
        "a__b.c": "Try name='a_b'",
        "\u00fc.c": "Try name='model'",
        "x" * 41 + ".c": "has 41 characters; expected 40 at most",
    }
    for file, sentence in wrong.items():
        with pytest.raises(InputError, match=re.escape(sentence)):
            sl.export(model, ["energy"], tmp_path / file)
    with pytest.raises(InputError, match="name 'while' is a word of C"):
        sl.export(model, ["energy"], tmp_path / "a.c", name="while")
    assert list(tmp_path.iterdir()) == []


def test_a_path_with_spaces_or_a_capital_ending_is_written(tmp_path):
    folder = tmp_path / "my robots"
    folder.mkdir()
    path = sl.export(zoo.pendulum(), ["energy"], str(folder / "my arm.C"), name="arm")
    assert sorted(p.name for p in folder.iterdir()) == ["my arm.C", "my arm.h"]
    assert '#include "my arm.h"' in path.read_text()


def test_both_files_are_written_or_none(tmp_path, monkeypatch):
    model, path = zoo.pendulum(), tmp_path / "arm.c"
    path.mkdir()
    with pytest.raises(FileError, match="cannot be written"):
        sl.export(model, ["energy"], path)
    assert [p.name for p in tmp_path.iterdir()] == ["arm.c"]
    path.rmdir()
    sl.export(model, ["energy"], path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    original = c_writer.write_file

    def fails(target, data):
        if target.suffix == ".c":
            raise FileError("the disk is full")
        original(target, data)

    monkeypatch.setattr(c_writer, "write_file", fails)
    with pytest.raises(FileError):
        sl.export(model, ["bias"], path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_header_that_is_not_ours_is_not_overwritten(tmp_path):
    (tmp_path / "arm.h").write_text("/* mine */\n")
    with pytest.raises(InputError, match=r"arm\.h is there, and spanloop did not write it"):
        sl.export(zoo.pendulum(), ["energy"], tmp_path / "arm.c")
    assert [p.name for p in tmp_path.iterdir()] == ["arm.h"]
    with pytest.raises(FileError, match="there is no folder"):
        sl.export(zoo.pendulum(), ["energy"], tmp_path / "missing" / "arm.c")


WRONG = {
    "nothing": ([], {}, "there is nothing to write"),
    "function": (["forward_dynamic"], {}, "did you mean 'forward_dynamics'"),
    "no name": ([3], {}, "is no name of a function"),
    "twice": (["energy", "energy"], {}, "named twice"),
    "reserved": ({"step": "energy"}, {}, "is the name of another function of the file"),
    "option": (["energy"], {"stepp": 1e-3}, "a C file takes no stepp=; did you mean 'step'"),
    "real": (["energy"], {"real": "half"}, "expected 'double' or 'float'"),
    "frame": (["energy"], {"frame": "rod1"}, "none of 'energy' takes frame="),
    "method": (["energy"], {"method": "dense"}, "none of 'energy' takes method="),
    "body": (["bias"], {"forces": ["rod9"]}, "has no body 'rod9'"),
    "no step": (["energy"], {"integrator": "rk4"}, "integrator= is for a motion; give its step= too"),
    "step": ([], {"step": 0.0}, "step is 0.0; expected a length in seconds"),
    "adaptive": ([], {"step": 1e-3, "integrator": "DOP853"}, "chooses its own steps"),
    "batch": ([], {"step": 1e-3, "q": [[0.1], [0.2]]}, "a batch of 2 runs"),
    "inputs": ([], {"step": 1e-3, "inputs": [1.0]}, "inputs= are those of a controller"),
    "parameters": (["energy"], {"parameters": "alive"}, "parameters is 'alive'"),
    "callback": ([], {"controller": sl.control.callback(lambda t, q, v: q)}, "a callback runs in Python"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused(name, tmp_path):
    functions, options, sentence = WRONG[name]
    with pytest.raises(SpanloopError, match=re.escape(sentence)):
        sl.export(zoo.pendulum(1), functions, tmp_path / "arm.c", **options)
    assert list(tmp_path.iterdir()) == []


def test_looped_kernels_and_large_ones_are_named_with_their_size(tmp_path, monkeypatch):
    with pytest.raises(UnsupportedError, match=r"loops over links.*operations \(about \d+ kB\); lowering='unrolled'"):
        sl.export(zoo.chain(49), ["gravity_torques"], tmp_path / "arm.c")
    assert c_requests.MANY == 100_000
    monkeypatch.setattr(c_requests, "MANY", 10)
    with pytest.warns(sl.SpanloopWarning, match=r"operations, about \d+ kB of machine code"):
        sl.export(zoo.pendulum(2), ["forward_dynamics"], tmp_path / "arm.c")


def test_closed_mechanisms_have_no_inverse_dynamics_of_their_own(tmp_path):
    for file in ("arm.c", "arm.mjs"):
        with pytest.raises(UnsupportedError, match=r"inverse_dynamics.*sl\.control\.computed_torque"):
            sl.export(zoo.four_bar(), ["inverse_dynamics"], tmp_path / file)


@pytest.mark.parametrize("file", ["arm.c", "arm.mjs", "arm.wasm"])
@pytest.mark.parametrize(
    ("functions", "words"),
    [
        (None, "functions is None; expected names of functions"),
        (5, "functions is 5; expected names"),
        ([None], "None is no name of a function"),
        ({"a": None}, "the function 'a' is None; expected a name as 'pose'"),
        ({"a": {"function": "pose", "frame": "rod1", "colour": 1}}, "the table of 'a' takes no 'colour'"),
        ({"a": {"function": "energy", "dtype": "float32"}}, "the table of 'a' takes no 'dtype'"),
        ({"a": {"frame": "rod1"}}, "the table of 'a' has no \"function\""),
        ({"a": {"function": 3}}, "is 3; expected a name"),
    ],
)
def test_functions_that_are_none_are_refused_with_a_sentence(functions, words, file, tmp_path):
    with pytest.raises(InputError, match=words):
        sl.export(zoo.pendulum(), functions, tmp_path / file)
    assert not list(tmp_path.iterdir())


def test_a_function_under_its_own_name_takes_options(tmp_path):
    header = sl.export(zoo.pendulum(), {"pose": {"frame": "rod1"}}, tmp_path / "arm.c").with_suffix(".h").read_text()
    assert "int arm_pose(" in header


@pytest.mark.parametrize("name", ["math.c", "stdint.c", "string.c", "float.c", "Time.c"])
def test_files_that_would_hide_headers_of_the_library_are_refused(name, tmp_path):
    with pytest.raises(InputError, match=r"is a header of C's library.*Choose another file name"):
        sl.export(zoo.pendulum(), ["energy"], tmp_path / name, name="arm")
    assert not list(tmp_path.iterdir())


def test_long_names_are_shortened_in_messages(tmp_path):
    with pytest.raises(InputError, match="has 5000 characters") as found:
        sl.export(zoo.pendulum(), ["energy"], tmp_path / "arm.c", name=5000 * "x")
    assert len(str(found.value)) < 300


def test_a_start_is_warned_of_once(tmp_path):
    off = [zoo.four_bar_start()[0] + 1e-4, *zoo.four_bar_start()[1:]]
    with pytest.warns(sl.SpanloopWarning) as found:
        sl.export(zoo.four_bar(), tmp_path / "arm.c", step=1e-3, q=off)
    assert len({str(w.message) for w in found}) == len(found) >= 1
