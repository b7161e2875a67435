"""Models with bodies from finite elements in files."""

import io
import pickle

import numpy as np
import pytest

import spanloop as sl
from spanloop.flexible.matrices import reduced_file
from spanloop.model.files.toml import reader, writer

BOOM = sl.flexible.beam(1.0, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), elements=3)


@pytest.fixture(scope="module")
def part():
    fe = sl.flexible.to_matrices(BOOM)
    return sl.flexible.from_matrices(fe, interfaces={"root": 0, "tip": 6}, modes=1, damping=0.01, surface=[[0, 2, 4]])


@pytest.fixture(scope="module")
def model(part):
    b = (
        sl.Builder("arm")
        .body("boom", flexible=part)
        .body("other", flexible=part)
        .body("load", 0.1, inertia=(1e-4,) * 3)
    )
    b.revolute("hinge", "world", "boom").fixed("grip", "boom.tip", "load").revolute("second", "load", "other")
    return b.build()


def test_a_model_is_saved_with_a_file_beside_it_and_read_back_bit_for_bit(model, tmp_path):
    model.save(tmp_path / "arm.toml")
    assert sorted(x.name for x in tmp_path.iterdir()) == ["arm.boom.npz", "arm.toml"]
    again = sl.load(tmp_path / "arm.toml")
    assert again == model
    text = (tmp_path / "arm.toml").read_text()
    assert 'file = "arm.boom.npz"' in text
    assert "sha256:" in text
    again.save(tmp_path / "arm.toml")
    assert (tmp_path / "arm.toml").read_text() == text


def test_names_that_differ_in_case_alone_have_files_that_differ_in_more(part, tmp_path):
    fe = sl.flexible.to_matrices(BOOM)
    short = sl.flexible.from_matrices(fe, interfaces={"root": 0, "tip": 4}, modes=1)
    b = sl.Builder("arm").body("Arm", flexible=part).body("arm", flexible=short)
    b.revolute("hinge", "world", "Arm").revolute("second", "Arm.tip", "arm").build().save(tmp_path / "a.toml")
    assert sorted(x.name for x in tmp_path.glob("*.npz")) == ["a.Arm.npz", "a.arm_.npz"]


def test_text_alone_has_the_body_inside(model):
    assert reader.loads(writer.dumps(model)) == model
    assert pickle.loads(pickle.dumps(model)) == model


def test_a_file_that_is_not_the_one_of_the_model_is_refused(model, part, tmp_path):
    model.save(tmp_path / "arm.toml")
    (tmp_path / "arm.boom.npz").write_bytes(reduced_file.to_bytes(part) + b" ")
    with pytest.raises(sl.errors.FileError, match=r"arm.boom.npz is another file than the model was saved with"):
        sl.load(tmp_path / "arm.toml")
    (tmp_path / "arm.boom.npz").unlink()
    with pytest.raises(sl.errors.FileError, match=r"arm.toml: .*'boom': .*arm.boom.npz: there is no such file"):
        sl.load(tmp_path / "arm.toml")
    text = (tmp_path / "arm.toml").read_text()
    (tmp_path / "up.toml").write_text(text.replace("arm.boom.npz", "../arm.boom.npz"))
    with pytest.raises(sl.errors.FileError, match="the name of a file in the same folder"):
        sl.load(tmp_path / "up.toml")


def test_mutated_files_have_a_message(part):
    content = reduced_file.to_bytes(part)
    rng = np.random.default_rng(5)
    refused = []
    for _ in range(300):
        data = bytearray(content)
        if rng.random() < 0.3:
            data = data[: rng.integers(len(data))]
        else:
            for k in rng.integers(len(data), size=rng.integers(1, 6)):
                data[k] = rng.integers(256)
        try:
            reduced_file.from_bytes(bytes(data), "boom.npz")
        except sl.errors.FileError as error:
            refused.append(str(error))
    assert len(refused) > 200
    assert all(text.startswith("boom.npz: ") for text in refused)


def test_arrays_of_other_types_and_shapes_have_a_message(part):
    """Whole files, with checksums that are right: each array in turn is another one."""
    with np.load(io.BytesIO(reduced_file.to_bytes(part))) as file:
        good = {name: file[name] for name in file.files}
    others = [np.array(2.5), np.array("x"), np.array(-5), np.zeros((1, 1, 1, 1, 1)), np.array(["a", "b", "c"])]
    for name, array in good.items():
        for other in others:
            if (other.dtype.kind, other.ndim) == (array.dtype.kind, array.ndim):
                continue
            out = io.BytesIO()
            np.savez(out, **{**good, name: other})
            with pytest.raises(sl.errors.FileError, match=r"^boom\.npz: "):
                reduced_file.from_bytes(out.getvalue(), "boom.npz")


def test_other_formats_write_the_body_rigid_when_forced(model, tmp_path):
    with pytest.raises(sl.errors.UnsupportedError, match="that bodies are flexible"):
        model.save(tmp_path / "arm.urdf")
