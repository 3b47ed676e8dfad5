"""Results leave as STO, MOT and TRC files that hold the kept arrays to the last bit."""

from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
import pytest
from designopt_recordings.files.read import read_recording, read_table
from designopt_recordings.files.text import input_file

import designopt
from designopt import Array
from designopt import Quantity as Q
from designopt.exports import ExportError, export
from designopt.store.result import Result

MUSCLES = ("soleus_r", "tib_ant_r")
TIME = np.arange(20) / 100.0


class Design(TypedDict):
    gain: Annotated[float, Q("", "of everything", gt=0)]


class Out(TypedDict):
    peak: Annotated[float, Q("", "of the activations")]


@designopt.model(
    "exported_motion",
    version=1,
    arrays={
        "time": Array(("time",), "s"),
        "muscle": Array(("muscle",), dtype="str"),
        "activation": Array(("time", "muscle"), "", "of the muscles"),
        "knee": Array(("time",), "deg"),
        "power": Array(("time",), "W"),
        "path": Array(("time", "point", "axis"), "mm"),
        "arm": Array(("time", "lever"), "m"),
        "mode": Array(("node",), ""),
        "sample": Array(("sample",), "ms", "times of a record"),
        "force": Array(("sample",), "kN", "of the record"),
    },
)
def motion(design: Design, scenario: dict[str, Any], arrays: frozenset[str]) -> tuple[Out, dict[str, Any]]:
    """A motion with two muscles."""
    wave = design["gain"] * np.sin(np.outer(1.0 + TIME, [1.0, 2.0]))
    series = {
        "time": TIME,
        "muscle": np.array(MUSCLES),
        "activation": wave,
        "knee": np.degrees(wave[:, 0]),
        "power": wave[:, 1],
        "path": 1000.0 * np.stack([wave, wave + 1.0, wave + 2.0], axis=2),
        "arm": wave / 10.0,
        "mode": np.ones(3),
        "sample": np.array([0.0, 5.0, 7.0]),
        "force": np.array([1.0, np.nan, 2.5]),
    }
    return {"peak": float(wave.max())}, {name: series[name] for name in arrays}


def run(folder: Path, *names: str) -> Result:
    study = designopt.define(
        study="moved",
        model={"use": motion},
        space={"gain": [0.5, 1.0]},
        scenarios=[{"name": "level-walk"}],
        objectives=[{"name": "peak", "minimize": "peak"}],
        solver={"use": "full_factorial", "levels": 2},
        execution={"executor": "serial", "arrays": dict.fromkeys(names, "all")},
    )
    return study.run(folder / "moved.study")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return run(tmp_path_factory.mktemp("moved"), "time", "muscle", "activation", "knee", "power", "path", "arm", "mode")


@pytest.mark.parametrize("form", ["sto", "mot"])
def test_arrays_over_time_become_tables_with_the_names_of_their_columns(
    result: Result, tmp_path: Path, form: str
) -> None:
    files = export(result, tmp_path, [form], prefix="p.")
    stems = [f"p.design{i}.level-walk{part}.{form}" for i in (0, 1) for part in ("", ".activation", ".arm", ".path")]
    assert sorted(file.name for file in files) == sorted(stems)
    activation = read_table(input_file(tmp_path / f"p.design1.level-walk.activation.{form}"))
    assert activation.names == MUSCLES
    assert activation.title == "moved, design 1, level-walk, activation"
    arrays = result.arrays(1)
    assert (activation.values == arrays["activation"]).all()
    assert (activation.time == TIME).all()
    single = read_table(input_file(tmp_path / f"p.design1.level-walk.{form}"))
    assert set(single.names) == {"knee", "power"}
    np.testing.assert_allclose(single.column("knee"), np.radians(arrays["knee"]), rtol=1e-15)  # deg become rad
    assert not single.in_degrees
    assert read_table(input_file(tmp_path / f"p.design0.level-walk.arm.{form}")).names == ("arm_1", "arm_2")
    path = read_table(input_file(tmp_path / f"p.design0.level-walk.path.{form}"))
    assert path.names == tuple(f"path_{i}_{axis}" for i in (1, 2) for axis in "xyz")


def test_points_over_time_become_markers(result: Result, tmp_path: Path) -> None:
    files = export(result, tmp_path, ["trc"])
    assert [file.name for file in files] == ["design0.level-walk.path.trc", "design1.level-walk.path.trc"]
    back = read_recording(input_file(files[1]))
    assert back.marker_names == ("path_1", "path_2")
    np.testing.assert_allclose(back.markers, result.arrays(1)["path"] / 1000.0, rtol=1e-15)
    np.testing.assert_allclose(back.rate, 100.0)


@pytest.mark.parametrize(
    ("names", "form", "message"),
    [
        (("activation", "knee"), "sto", r"keeps no array with the times \(one axis, in s\); name it .* execution"),
        (("time", "muscle"), "mot", "besides the time, the study keeps no array of numbers over time"),
        (("time", "activation"), "trc", "keeps no array of points over time"),
        ((), "sto", "no array with the times"),
    ],
)
def test_expressions_that_cannot_be_written_are_reported(
    tmp_path: Path, names: tuple[str, ...], form: str, message: str
) -> None:
    with pytest.raises(ExportError, match=message):
        export(run(tmp_path, *names), tmp_path, [form])


def test_columns_without_names_are_numbered(tmp_path: Path) -> None:
    (first, *_) = export(run(tmp_path, "time", "activation"), tmp_path, ["sto"])
    assert read_table(input_file(first)).names == ("activation_1", "activation_2")


@designopt.model(
    "exported_unevenly",
    version=1,
    arrays={
        "t": Array(("step",), "ms"),
        "path": Array(("step", "point", "axis"), "m"),
        "word": Array(("step",), dtype="str"),
    },
)
def unevenly(design: Design, scenario: dict[str, Any], arrays: frozenset[str]) -> tuple[Out, dict[str, Any]]:
    """Points at times that are not even."""
    series = {"t": np.array([0.0, 1.0, 5.0]), "path": np.ones((3, 2, 3)), "word": np.array(["a", "b", "c"])}
    return {"peak": 1.0}, {name: series[name] for name in arrays}


def test_uneven_times_are_kept_in_tables_and_refused_for_markers(tmp_path: Path) -> None:
    study = designopt.define(
        study="uneven",
        model={"use": unevenly},
        space={"gain": [0.5, 1.0]},
        objectives=[{"name": "peak", "minimize": "peak"}],
        solver={"use": "full_factorial", "levels": 2},
        execution={"executor": "serial", "arrays": dict.fromkeys(("t", "path", "word"), "all")},
    )
    result = study.run(tmp_path / "uneven.study")
    (first, _) = export(result, tmp_path, ["sto"])
    assert read_table(input_file(first)).time.tolist() == [0.0, 0.001, 0.005]
    with pytest.raises(
        ExportError, match=r"uneven, design 0, .*: the times of 'path' are not evenly spaced.*export sto"
    ):
        export(result, tmp_path, ["trc"])


def test_tables_in_csv_have_units_in_their_heads_and_are_read_back_in_si_units(result: Result, tmp_path: Path) -> None:
    export(result, tmp_path, ["csv_time"], prefix="p.")
    single = tmp_path / "p.design1.level-walk.csv"
    assert single.read_text().splitlines()[0] == "time [s],knee [rad],power [W]"
    path = tmp_path / "p.design1.level-walk.path.csv"
    assert path.read_text().splitlines()[0].startswith("time [s],path_1_x [mm],path_1_y [mm]")
    table = read_table(input_file(path))
    assert table.names[:2] == ("path_1_x", "path_1_y")
    assert table.values == pytest.approx(1e-3 * result.arrays(1)["path"].reshape(len(TIME), -1))
    angles = read_table(input_file(single))
    assert angles.column("knee") == pytest.approx(np.radians(result.arrays(1)["knee"]))
    assert angles.radians(["knee"]).notes == ()  # the unit is stated, nothing is assumed


def test_arrays_along_a_second_axis_with_a_time_leave_in_files_of_their_own(tmp_path: Path) -> None:
    files = export(run(tmp_path, "time", "knee", "sample", "force"), tmp_path, ["csv_time"], prefix="p.")
    assert sorted(file.name for file in files) == [
        f"p.design{i}.level-walk{part}.csv" for i in (0, 1) for part in ("", ".sample")
    ]
    assert (tmp_path / "p.design0.level-walk.sample.csv").read_text().splitlines() == [
        "time [s],force [kN]", "0.0,1.0", "0.005,", "0.007,2.5",
    ]  # fmt: skip
