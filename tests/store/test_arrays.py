"""Kept arrays: what is kept of what a model returns, what is read of what a file claims, what resume repairs."""

import io
import random
import shutil
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner
from run_cases import dump, make_study, use

from designopt.cli import main
from designopt.plugin import Array, Diverged, PluginError, Use, model
from designopt.run.runner import resume_study, run_study
from designopt.store.disk import arrays as kept
from designopt.store.errors import StoreError
from designopt.store.result import Result
from designopt.study.study import Stage
from designopt.workers.evaluation import arrays as taken

GIVEN = {}
DECLARED = {
    "time": Array(("time",), "s"),
    "signal": Array(("time",), "m", dtype="float"),
    "small": Array(("time",), dtype="float32"),
    "count": Array(("time",), dtype="int"),
    "status": Array(("time",), categories=("ok", "gap", "clipped")),
    "names": Array(("joint",), dtype="str"),
    "field": Array(("time", "joint")),
}


@model("array_giver", version=1, unchecked=True, arrays=DECLARED)
def giver(design, scenario, arrays):
    """Returns what the test says."""
    if "diverged" in GIVEN:
        raise Diverged("fell over", arrays=GIVEN["diverged"])
    return {"value": design["a"] ** 2}, {name: GIVEN[name] for name in arrays}


def of_giver(names, keep="all", values=(0.5,)):
    stage = Stage("list", use("solver", "listed", values=[float(v) for v in values]))
    study = make_study(names=("a",), minimize=("value",), stages=(stage,), execution={
        "executor": "serial", "arrays": dict.fromkeys(names, keep)})  # fmt: skip
    return study.__class__(**{**study.__dict__, "model": Use(giver.__designopt__, {})})


@pytest.fixture(autouse=True)
def _forget():
    GIVEN.clear()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("time", np.array([1, None]), "'time' contains objects instead of numbers"),
        ("time", np.array(["a"]), "'time' has values of type <U1, not numbers; declare Array(..., dtype='str')"),
        ("time", np.zeros(2, [("x", float)]), "'time' has values of type"),
        ("time", np.zeros((2, 3)), r"'time' has shape (2, 3); its declared axes are: time"),
        ("time", 1.0, r"'time' has shape (); its declared axes are: time"),
        ("time", [[1.0], [1.0, 2.0]], "inhomogeneous"),
        ("time", np.array(["2020-01-01"], "datetime64[D]"), "'time' has values of type datetime64[D]"),
        ("field", np.zeros(3), r"'field' has shape (3,); its declared axes are: time, joint"),
        ("count", np.array([0.5]), "'count' has values of type float64, not int"),
        ("signal", np.array([1j]), "'signal' has values of type complex128, not float"),
        ("status", np.array([0, 3]), "'status' has the value 3; its categories are numbers 0 to 2"),
        ("status", np.array([-1]), "'status' has the value -1"),
        ("names", np.array([1.0]), "'names' has values of type float64, not str"),
        ("time", np.broadcast_to(0.0, 2**27), "the arrays have 1024 MiB, and at most 512 MiB per evaluation are kept"),
    ],
)
def test_an_array_that_cannot_be_kept_is_an_error_of_its_evaluation(tmp_path, name, value, message):
    GIVEN[name] = value
    study = of_giver([name])
    result = run_study(study, tmp_path / "s")
    assert result.status.tolist() == [["error"]]
    assert message in result.message(0)
    assert result.arrays(0) == {}


def test_arrays_are_kept_in_their_declared_types(tmp_path):
    GIVEN.update(
        time=[0, 1, 2], signal=[1, 2, 3], small=np.arange(3.0), count=np.arange(3, dtype=np.uint8),
        status=np.array([0, 2, 1]), names=["knee", "hüfte"], field=np.zeros((3, 2), bool),
    )  # fmt: skip
    arrays = run_study(of_giver(list(GIVEN)), tmp_path / "s").arrays(0)
    types = {name: str(array.dtype) for name, array in arrays.items()}
    assert types == {
        "time": "int64", "signal": "float64", "small": "float32", "count": "uint8", "status": "uint8", "names": "<U5",
        "field": "bool",
    }  # fmt: skip
    assert arrays["names"].tolist() == ["knee", "hüfte"]
    assert arrays["status"].tolist() == [0, 2, 1]


def test_the_arrays_of_a_diverged_evaluation_are_checked_too(tmp_path):
    GIVEN["diverged"] = {"time": np.array([object()])}
    result = run_study(of_giver(["time"]), tmp_path / "a")
    assert (result.status[0, 0], result.arrays(0)) == ("error", {})
    assert "fell over; the array 'time' contains objects instead of numbers" in result.message(0)
    GIVEN["diverged"] = {"time": np.arange(2.0)}
    result = run_study(of_giver(["time"]), tmp_path / "b")
    assert (result.status[0, 0], result.arrays(0)["time"].tolist()) == ("diverged", [0.0, 1.0])


def test_categories_are_names_of_whole_numbers():
    assert Array(("time",), categories=("ok",)).dtype == "int"
    with pytest.raises(PluginError, match="categories name integers, not float"):
        Array(("time",), dtype="float", categories=("ok",))
    with pytest.raises(PluginError, match="'double' is not an array type"):
        Array(("time",), dtype="double")


# ---------------------------------------------------------------------------------------------------------- policies


def test_arrays_of_the_chosen_designs_alone_can_be_kept(tmp_path):
    study = make_study(
        "wave", minimize=("value", "square"), names=("a",), stages=(Stage("list", use("solver", "listed", values=[
            -1.0, -0.5, -0.2, 0.0, 0.1, 0.2, 0.25])),),
        execution={"executor": "serial", "arrays": {"signal": "chosen", "time": "front"}},
    )  # fmt: skip
    result = run_study(study, tmp_path / "s")
    front, chosen = set(result.front().tolist()), set(result.chosen().values())
    assert chosen < front < set(range(len(result.outcomes)))
    for row in range(len(result.outcomes)):
        expected = ["signal", "time"] if row in chosen else ["time"] if row in front else []
        assert sorted(result.arrays(row)) == expected
    resumed = resume_study(tmp_path / "s")
    assert resumed.sessions[-1]["executor"] == "none"  # all of it is there
    assert dump(resumed) == dump(result)


# ------------------------------------------------------------------------------------------------------- compression


def test_arrays_are_compressed_where_that_pays(tmp_path):
    noise = np.random.default_rng(0).normal(size=20_000)
    statuses = (np.arange(20_000) // 700 % 3).astype(np.uint8)
    arrays_by_key = {b"k" * 16: {"noise": noise, "statuses": statuses, "little": np.zeros(3)}}
    (reference,) = kept.write_arrays(tmp_path, arrays_by_key).values()
    with zipfile.ZipFile(tmp_path / reference) as packed:
        sizes = {m.filename: (m.compress_size, m.file_size) for m in packed.infolist()}
    assert sizes["noise.npy"][0] == sizes["noise.npy"][1]
    assert sizes["statuses.npy"][0] < sizes["statuses.npy"][1] / 20
    assert sizes["little.npy"][0] == sizes["little.npy"][1]
    back = kept.read_arrays(tmp_path, reference)
    with np.load(tmp_path / reference) as loaded:  # anyone can read it
        for name, array in arrays_by_key[b"k" * 16].items():
            assert back[name].dtype == loaded[name].dtype == array.dtype
            assert np.array_equal(back[name], array)
            assert np.array_equal(loaded[name], array)


@pytest.mark.parametrize(
    "array",
    [np.zeros((0, 3)), np.array(2.0), np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.array(["a", "bcd"]),
     np.array(1j), np.arange(3, dtype=">f8"), np.zeros((2, 0, 3), bool)],
)  # fmt: skip
def test_arrays_of_every_shape_come_back(tmp_path, array):
    (reference,) = kept.write_arrays(tmp_path, {b"k" * 16: {"x": array}}).values()
    back = kept.read_arrays(tmp_path, reference)["x"]
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert np.array_equal(back, array)
    assert back.flags.writeable


# ------------------------------------------------------------------------------------------------- files that lie


def claimed(shape, dtype="<f8", *, size=None, content=b""):
    """A file with an array of that shape and type, and what it says of its size."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": dtype, "fortran_order": False, "shape": shape})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("signal.npy", head.getvalue() + content)
    data = packed.getvalue()
    if size is not None:  # in the directory of the archive
        at = data.index(b"PK\1\2") + 24
        data = data[:at] + struct.pack("<I", size) + data[at + 4 :]
    return data


LIES = {
    "8 PB": lambda: claimed((2**50,)),
    # 128 MiB of zeros in 130 kB, which claims to be 1 GiB
    "a bomb": lambda: claimed((2**30,), "|u1", content=bytes(2**27)),
    "many bombs": lambda: claimed((2**27,), "|u1", content=bytes(2**27), size=2**32 - 2),
    "a wrong shape": lambda: claimed((3,), content=bytes(16)),
    "a negative shape": lambda: claimed((-3, -1), content=bytes(24)),
    "objects": lambda: claimed((1,), "|O", content=b"cos\nsystem\n."),
    "a structure": lambda: claimed((1,), [("x", "<f8")], content=bytes(8)),
    "no archive": lambda: b"garbage" * 100,
    "an empty archive": lambda: b"PK\5\6" + bytes(18),
    "nothing": lambda: b"",
}


@pytest.fixture(scope="module")
def waves(tmp_path_factory):
    path = tmp_path_factory.mktemp("waves") / "s"
    study = make_study(
        "wave", minimize=("square",), names=("a",), stages=(Stage("list", use("solver", "listed", values=np.linspace(
            -1.0, 1.0, 30).tolist())),), execution={"executor": "serial", "arrays": {"signal": "all", "time": "all"}},
    )  # fmt: skip
    run_study(study, path)
    return path


@pytest.mark.timeout(60)
@pytest.mark.parametrize("what", LIES)
def test_a_file_that_lies_is_damage_and_costs_nothing(waves, tmp_path, what):
    path = tmp_path / "s"
    shutil.copytree(waves, path)
    reference = kept.array_reference(Result.open(path).recorded_problem.keys(np.array([[-1.0]]))[0][0])
    (path / reference).write_bytes(LIES[what]())
    if what == "an empty archive":
        assert Result.open(path).arrays(0) == {}
    else:
        tracemalloc.start()
        with pytest.raises(StoreError):
            kept.read_arrays(path, reference)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 64 * 2**20  # they hold 128 MB or claim more; other threads may allocate
        with pytest.raises(StoreError, match=r"npz is damaged \(.*compute it again with: designopt resume"):
            Result.open(path).arrays(0)
    answer = CliRunner().invoke(main, ["show", f"{path}/0"])
    assert isinstance(answer.exception, SystemExit | None)
    exported = CliRunner().invoke(main, ["report", str(path), "--export", "netcdf"])
    assert isinstance(exported.exception, SystemExit | None)
    resumed = resume_study(path)
    assert sorted(resumed.arrays(0)) == ["signal", "time"]


BOMB = 2**23


@pytest.fixture
def bombs(waves, tmp_path):
    """A store with 30 files of some kB, the arrays of which have 8 MiB each."""
    shutil.copytree(waves, tmp_path / "s")
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in ("signal", "time"):
            array = io.BytesIO()
            np.lib.format.write_array(array, np.zeros(BOMB // 16))
            packed.writestr(f"{name}.npy", array.getvalue())
    for file in (tmp_path / "s" / "arrays").glob("*/*.npz"):
        file.write_bytes(data.getvalue())
    return tmp_path / "s"


def test_resume_checks_compressed_arrays_without_holding_them(bombs):
    tracemalloc.start()
    resumed = resume_study(bombs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert resumed.sessions[-1]["executor"] == "none"
    assert peak < 2 * kept.FLUSHES * 2**20 + BOMB


def test_a_process_holds_a_limited_size_of_compressed_arrays(bombs, monkeypatch):
    monkeypatch.setattr(kept, "EXPANDED", 4 * BOMB)
    result = Result.open(bombs)
    for row in range(30):
        assert result.arrays(row)["signal"].shape == (BOMB // 16,)  # deleted before the next
    views = [result.arrays(row)["signal"][::2] for row in range(7)]  # a view keeps the whole array
    with pytest.raises(
        StoreError,
        match=r"npz has a compressed array of 4 MiB, and others in memory have 32 MiB; a process holds at most 32 MiB"
        r" of them: use the arrays of fewer designs at a time",
    ):
        result.arrays(8)
    del views
    assert result.arrays(8)
    for arguments in (["show", f"{bombs}/0"], ["report", str(bombs), "--export", "netcdf"]):
        answer = CliRunner().invoke(main, arguments)
        assert answer.exit_code == 0, answer.output


def test_arrays_of_files_that_are_not_compressed_are_not_counted(waves, monkeypatch):
    monkeypatch.setattr(kept, "EXPANDED", 0)
    result = Result.open(waves)
    assert [len(result.arrays(row)) for row in range(30)] == [2] * 30


def test_resume_repairs_every_one_of_30_altered_files(waves, tmp_path):
    path = tmp_path / "s"
    shutil.copytree(waves, path)
    before = Result.open(path)
    expected = [before.arrays(row) for row in range(30)]
    dice = random.Random(7)
    files = sorted((path / "arrays").glob("*/*.npz"))
    assert len(files) == 30
    altered = 0
    for number, file in enumerate(files):
        data = bytearray(file.read_bytes())
        if number % 3 == 0:
            data = data[: dice.randrange(len(data))]
        elif number % 3 == 1:
            begin = data.index(b"NUMPY")
            data[begin + 80 + dice.randrange(60)] ^= 1 << dice.randrange(8)
        else:
            data = bytearray(dice.randbytes(len(data)))
        file.write_bytes(data)
        altered += 1
    damaged = 0
    for row in range(30):
        try:
            read = Result.open(path).arrays(row)
        except StoreError:
            damaged += 1
        else:
            assert all(np.array_equal(read[name], expected[row][name]) for name in expected[row])
    assert altered == damaged == 30
    after = resume_study(path)
    for row in range(30):
        assert all(np.array_equal(after.arrays(row)[name], expected[row][name]) for name in expected[row])
    assert dump(after) == dump(before)


def test_stored_arrays_are_read_back():
    assert taken.LARGEST < kept.LARGEST
