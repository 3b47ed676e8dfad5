"""What is exported reads back as the result that it came from, with its units, and is written in seconds."""

import csv
import json
import re
import resource
import sys
import time
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
import pytest

import designopt
from designopt import Array, Diverged, api
from designopt import Quantity as Q
from designopt.exports import ExportError, export
from designopt.store.result import Result


class Beam(TypedDict):
    side: Annotated[float, Q("m", "of the square section", gt=0)]
    holes: Annotated[int, Q("", "in the web")]
    steel: str
    coated: bool


class Load(TypedDict):
    force: Annotated[float, Q("N", "at the tip")]


class Bent(TypedDict):
    sag: Annotated[float, Q("mm", "of the tip")]
    mass: Annotated[float, Q("kg", "of the beam")]


@designopt.model(
    "exported_beam",
    version=3,
    arrays={
        "time": Array(("time",), "s"),
        "swing": Array(("time",), "mm", "of the tip"),
        "node": Array(("node",), "m", "place along the beam"),
        "shape": Array(("node",), "", "first mode"),
        "hit": Array(("time", "node")),
        "pole": Array((), "1/s"),
    },
)
def beam(design: Beam, scenario: Load, arrays: frozenset[str]) -> tuple[Bent, dict[str, Any]]:
    """A cantilever whose record is the longer the more holes it has."""
    if design["side"] < 0.015:
        raise Diverged("it folds", reason="folded")
    sag = scenario["force"] / design["side"] ** 4 * 1e-6
    samples = 5 + design["holes"]
    node = np.linspace(0.0, 1.0, 4)
    arrays_by_name = {
        "time": np.arange(samples) / 10.0,
        "swing": sag * np.cos(np.arange(samples)),
        "node": node,
        "shape": np.array([0, 1, 3, 6]),
        "hit": np.add.outer(np.arange(samples), node) > 3.0,
        "pole": np.array(-1.0 + 2.0j),
    }
    mass = 7850.0 * design["side"] ** 2 * (2.0 if design["steel"] == "hard" else 1.0)
    return {"sag": sag, "mass": mass}, {name: arrays_by_name[name] for name in arrays}


class Stiff(TypedDict):
    mass: Annotated[float, Q("kg", "of the beam")]


@designopt.model("exported_unbothered", version=1)
def unbothered(design: Mapping[str, Any], scenario: Mapping[str, Any]) -> Stiff:
    """A model that takes what is there."""
    return {"mass": float(design["side"]) + float(design.get("holes", 0))}


@designopt.model(
    "exported_half_broken", version=1, arrays={"count": Array(("lag",)), "word": Array(("lag",), dtype="str")}
)
def half_broken(design: Beam, scenario: Load, arrays: frozenset[str]) -> tuple[Bent, dict[str, Any]]:
    """A model that breaks in a storm."""
    if scenario["force"] > 20.0:
        raise Diverged("blown away")
    arrays_by_name = {"count": np.array([1, 2]), "word": np.array(["a", "bc", "d"])}
    return {"sag": 1.0, "mass": 2.0}, {name: arrays_by_name[name] for name in arrays}


def study(**changed: Any) -> designopt.Study:
    """The study of this page, with some sections changed, or left out where they are None."""
    sections: dict[str, Any] = {
        "study": "exported",
        "title": "Beams, über Maß",
        "seed": 5,
        "model": {"use": beam},
        "space": {
            "side": {"low": "10 mm", "high": "50 mm", "unit": "mm"},
            "holes": {"type": "int", "low": 0, "high": 3},
            "steel": {"values": ["mild", "hard"]},
            "coated": {"value": True},
        },
        "scenarios": [{"name": "calm", "force": 10.0}, {"name": "storm", "force": 40.0}],
        "objectives": [{"name": "stiffness", "maximize": "1 / sag"}, {"name": "mass", "minimize": "mass"}],
        "constraints": [{"name": "light", "of": "mass", "max": "30 kg"}],
        "solver": {"use": "sobol", "samples": 32},
        "execution": {"executor": "serial"},
    }
    return designopt.define(**{k: v for k, v in {**sections, **changed}.items() if v is not None})


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    names = ("time", "swing", "node", "shape", "hit", "pole")
    definition = study(execution={"executor": "serial", "arrays": dict.fromkeys(names, "all")})
    return definition.run(tmp_path_factory.mktemp("exported") / "beam.study")


def same(read: Any, expected: np.ndarray[Any, Any]) -> bool:
    return np.array_equal(np.asarray(read, float), expected, equal_nan=True)


def test_a_csv_file_reads_back_as_the_result(result: Result, tmp_path: Path) -> None:
    file, _ = export(result, tmp_path, ["csv"])
    with file.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    outcomes = result.outcomes
    assert len(rows) == len(outcomes) > 20
    assert outcomes.failed.any()

    def column(name: str) -> list[float]:
        return [float(row[name]) if row[name] else np.nan for row in rows]

    rows = [{head.partition(" [")[0]: value for head, value in row.items()} for row in rows]
    assert same(column("side"), outcomes.X[:, 0])
    assert [row["steel"] for row in rows] == [("mild", "hard")[int(x)] for x in outcomes.X[:, 2]]
    assert {row["coated"] for row in rows} == {"true"}
    assert same(column("stiffness"), np.where(outcomes.failed, np.nan, -outcomes.objectives[:, 0]))
    assert same(column("violation"), outcomes.violation)
    assert [row["feasible"] == "true" for row in rows] == outcomes.feasible.tolist()
    assert same(column("sag@storm"), outcomes.figures["sag"][:, 1])
    assert [row["status@calm"] for row in rows] == result.status[:, 0].tolist()
    assert [row["reason@calm"] for row in rows] == result.reason[:, 0].tolist()


def test_a_csv_file_is_described_beside_it_with_the_units(result: Result, tmp_path: Path) -> None:
    file, described = export(result, tmp_path, ["csv"])
    data = json.loads(described.read_text())
    assert described.name == f"{file.name}-metadata.json"  # where CSV on the Web looks for it
    assert data["url"] == file.name
    columns = {c["titles"]: c for c in data["tableSchema"]["columns"]}
    assert list(columns) == file.read_text(encoding="utf-8").splitlines()[0].split(",")
    assert columns["side [mm]"]["schema:unitText"] == "mm"
    assert columns["sag@calm [mm]"] == {
        "titles": "sag@calm [mm]",
        "datatype": "number",
        "schema:unitText": "mm",
        "dc:description": "of the tip",
    }
    about = data["notes"][0]
    assert about["problem"] == result.problem.digest
    assert (about["model"], about["model_version"], about["seed"]) == ("exported_beam", 3, 5)
    assert "numpy" in about["versions"]


def test_a_parquet_file_reads_back_as_the_result_with_types_and_units(result: Result, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (file,) = export(result, tmp_path, ["parquet"])
    table = parquet.read_table(file)
    outcomes = result.outcomes
    assert same(table["side"].to_numpy(), outcomes.X[:, 0])
    assert [str(table.schema.field(n).type) for n in ("holes", "steel", "coated", "feasible", "ask")] == [
        "int64", "string", "bool", "bool", "int64",
    ]  # fmt: skip
    assert table["mass"].null_count == outcomes.failed.sum()  # no value is null, not a number
    assert same(table["mass"].to_numpy(), np.where(outcomes.failed, np.nan, outcomes.objectives[:, 1]))
    assert same(table["wall@storm"].to_numpy(), result.wall[:, 1])
    side = {k.decode(): v.decode() for k, v in table.schema.field("side").metadata.items() if not k.startswith(b"PARQ")}
    assert side == {"role": "parameter", "of": "side", "unit": "mm"}
    figure = table.schema.field("mass@calm").metadata
    assert (figure[b"role"], figure[b"scenario"], figure[b"unit"]) == (b"figure", b"calm", b"kg")
    about = json.loads(table.schema.metadata[b"designopt"])
    assert (about["study"], about["title"], about["run"]) == ("exported", "Beams, über Maß", "done")


def test_parquet_and_csv_hold_the_same_columns_in_the_same_order(result: Result, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    files = export(result, tmp_path, ["csv", "parquet"])
    head = [name.partition(" [")[0] for name in files[0].read_text(encoding="utf-8").splitlines()[0].split(",")]
    assert parquet.read_schema(files[2]).names == head
    assert head[:8] == ["design", "side", "holes", "steel", "coated", "stiffness", "mass", "violation"]


def test_ask_is_the_position_among_what_the_stage_asked_for(tmp_path: Path) -> None:
    stages = [
        {"name": "grid", "solver": {"use": "full_factorial", "levels": 3}},
        {"name": "again", "solver": {"use": "full_factorial", "levels": 5}},
    ]
    space = {"side": {"low": 20, "high": 60, "unit": "mm"}, "holes": 0, "steel": {"value": "mild"}, "coated": True}
    definition = study(stages=stages, solver=None, space=space)
    file, _ = export(definition.run(tmp_path / "s.study"), tmp_path, ["csv"])
    with file.open(newline="", encoding="utf-8") as stream:
        rows = [(row["stage"], int(row["ask"]), float(row["side [mm]"])) for row in csv.DictReader(stream)]
    # The second grid asks for 20, 30, 40, 50, 60 mm; every other one is known from the first.
    assert rows == [("grid", 0, 20.0), ("grid", 1, 40.0), ("grid", 2, 60.0), ("again", 1, 30.0), ("again", 3, 50.0)]


def test_a_parameter_that_is_not_active_has_no_value(tmp_path: Path) -> None:
    space = {
        "side": [0.02, 0.05],
        "holes": {"type": "int", "low": 1, "high": 2, "when": {"steel": "hard"}},
        "steel": {"values": ["mild", "hard"]},
        "coated": {"value": True, "when": {"steel": "hard"}},
    }
    sections = {
        "space": space,
        "model": {"use": unbothered},
        "scenarios": None,
        "objectives": [{"name": "m", "minimize": "mass"}],
    }
    result = study(**sections, constraints=None).run(tmp_path / "s.study")
    file, _ = export(result, tmp_path, ["csv"])
    with file.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert {(row["steel"], row["holes"] != "", row["coated"]) for row in rows} == {
        ("mild", False, ""),
        ("hard", True, "true"),
    }


def test_names_that_are_taken_get_an_underscore(tmp_path: Path) -> None:
    space = {"side": [0.02, 0.05], "holes": 0, "steel": {"value": "mild"}, "coated": True}
    result = study(space=space, objectives=[{"name": "stage", "minimize": "sag"}]).run(tmp_path / "s.study")
    file, _ = export(result, tmp_path, ["csv"])
    head = [name.partition(" [")[0] for name in file.read_text().splitlines()[0].split(",")]
    assert "stage" in head
    assert "stage_" in head
    assert len(set(head)) == len(head)


def test_netcdf_holds_the_kept_arrays_with_their_axes_units_and_designs(result: Result, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5py")
    (file,) = export(result, tmp_path, ["netcdf"])
    with xarray.open_dataset(file, engine="h5netcdf") as data:
        assert data["swing"].dims == ("design", "scenario", "time_index")  # "time" differs between designs
        assert data["shape"].dims == ("design", "scenario", "node")
        assert (data["swing"].units, data["swing"].long_name) == ("mm", "of the tip")
        assert data["node"].dims == ("node",)  # shared by all: the coordinate of its axis
        assert data["node"].values.tolist() == np.linspace(0.0, 1.0, 4).tolist()
        assert data["scenario"].values.tolist() == ["calm", "storm"]
        assert data.attrs["problem"] == result.problem.digest
        rows = np.flatnonzero(~result.outcomes.failed)
        assert data["design"].values.tolist() == rows.tolist()
        assert same(data["side"].values, result.outcomes.X[rows, 0])
        assert data["side"].units == "mm"
        assert data["steel"].values.tolist() == [("mild", "hard")[int(x)] for x in result.outcomes.X[rows, 2]]
        assert same(data["stiffness"].values, -result.outcomes.objectives[rows, 0])
        assert data["shape"].dtype == np.int64  # whole numbers stay whole where every array is as long
        for position, row in enumerate(rows.tolist()):
            for k in range(2):
                arrays = result.arrays(row, k)
                length = int(data["time_index_length"][position, k])
                assert length == len(arrays["time"]) == 5 + result.outcomes.X[row, 1]
                for name in ("time", "swing"):
                    values = data[name].values[position, k]
                    assert same(values[:length], arrays[name])
                    assert np.isnan(values[length:]).all()
                assert same(data["hit"].values[position, k, :length], arrays["hit"])
                pole = complex(data["pole_real"].values[position, k], data["pole_imag"].values[position, k])
                assert pole == arrays["pole"]


def test_arrays_are_exported_of_results_that_are_judged_anew_too(result: Result, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5py")
    (file,) = export(result.with_changes(["objectives.stiffness.over=mean"]), tmp_path, ["netcdf"], prefix="mean.")
    assert file.name == "mean.arrays.nc"
    with xarray.open_dataset(file, engine="h5netcdf") as data:
        first = int(data["design"][0])
        sag = result.outcomes.figures["sag"][first]
        assert data["stiffness"].values[0] == pytest.approx((1.0 / sag).mean(), rel=1e-15)


def test_netcdf_of_designs_of_which_some_scenarios_failed_leaves_them_empty(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5py")
    changed = study(
        model={"use": half_broken}, execution={"executor": "serial", "arrays": {"count": "all", "word": "all"}}
    )
    result = changed.run(tmp_path / "s.study")
    (file,) = export(result, tmp_path, ["netcdf"])
    with xarray.open_dataset(file, engine="h5netcdf") as data:
        assert (data["count"].values[:, 0] == [1.0, 2.0]).all()
        assert np.isnan(data["count"].values[:, 1]).all()
        # Two arrays of one evaluation that differ along "lag" have an axis each.
        assert data["count"].dims[2:] == ("count_lag",)
        assert data["word"].dims[2:] == ("word_lag",)
        assert data["word"].values[0, 0].tolist() == ["a", "bc", "d"]


def test_from_python_a_store_is_exported_into_itself_or_a_folder_that_is_made(tmp_path: Path) -> None:
    first, second = study().run(tmp_path / "a.study"), study(seed=6).run(tmp_path / "b.study")
    assert api.export(first, formats=["csv"]) == [
        tmp_path / "a.study" / name for name in ("designs.csv", "designs.csv-metadata.json")
    ]
    (path, _) = api.export(second.path, tmp_path / "new" / "tables", ["csv"])
    assert path == tmp_path / "new" / "tables" / "designs.csv"
    page = api.compare([first, second.path], tmp_path / "both.html")
    assert "Comparison of a and b" in page.read_text()


def test_netcdf_without_kept_arrays_says_how_to_keep_some(tmp_path: Path) -> None:
    result = study().run(tmp_path / "s.study")
    with pytest.raises(ExportError, match=r"no arrays are kept.*execution: \{arrays"):
        export(result, tmp_path, ["netcdf"])
    assert not list(tmp_path.glob("*.nc*"))


def test_an_unknown_format_is_refused_before_anything_is_written(result: Result, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"no plugin named 'xlsx' \(installed: .*csv, .*netcdf, .*parquet.*\)"):
        export(result, tmp_path, ["csv", "xlsx"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("form", "library"), [("parquet", "pyarrow"), ("netcdf", "h5netcdf")])
def test_a_library_that_is_not_installed_is_reported_with_the_way_to_install_it(
    result: Result, tmp_path: Path, form: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (library, "h5py"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ExportError, match=r"pip install 'designopt\[export\]'"):
        export(result, tmp_path, [form])
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_as_a_whole_or_not_at_all(result: Result, tmp_path: Path) -> None:
    export(result, tmp_path, ["csv"])
    before = (tmp_path / "designs.csv").read_bytes()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limit[1]))  # as a full disk
    try:
        with pytest.raises(OSError, match="too large"):
            export(result, tmp_path, ["csv"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert (tmp_path / "designs.csv").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["designs.csv", "designs.csv-metadata.json"]


@pytest.mark.slow
def test_a_hundred_thousand_designs_are_written_in_seconds_with_little_more_memory(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    space = {"side": {"low": 20, "high": 60, "unit": "mm"}, "holes": {"type": "int", "low": 0, "high": 3}}
    many = study(
        space={**space, "steel": {"value": "mild"}, "coated": True}, solver={"use": "sobol", "samples": 100_000}
    )
    result = many.run(tmp_path / "s.study")
    assert len(result.outcomes) == 100_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for form, target in (("csv", 10.0), ("parquet", 10.0)):  # 3.4 s and 1.4 s on a busy two-core machine
        start = time.perf_counter()
        export(result, tmp_path, [form])
        assert time.perf_counter() - start < target
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024.0
    assert grown < 200.0  # MB; the table as Python objects at once would take 600


@designopt.model(
    "exported_statuses",
    version=1,
    arrays={
        "joint": Array(("joint",), dtype="str"),
        "angle": Array(("time", "joint"), "rad", dtype="float32"),
        "status": Array(("time",), "", "of the frame", categories=("ok", "marker missing")),
    },
)
def statuses(design: Beam, scenario: Load, arrays: frozenset[str]) -> tuple[Bent, dict[str, Any]]:
    """A model with names of joints, and frames that are bad."""
    arrays_by_name = {
        "joint": np.array(["knee", "hüfte"]),
        "angle": np.full((6, 2), design["side"]),
        "status": np.array([0, 0, 1, 1, 0, 0]),
    }
    return {"sag": 1.0, "mass": 2.0}, {name: arrays_by_name[name] for name in arrays}


def test_text_coordinates_and_categories_are_read_by_others(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    execution = {"executor": "serial", "arrays": dict.fromkeys(("joint", "angle", "status"), "all")}
    result = study(model={"use": statuses}, execution=execution).run(tmp_path / "s")
    (file,) = export(result, tmp_path, ["netcdf"])
    with xarray.open_dataset(file, engine="h5netcdf") as data:
        assert data["joint"].values.tolist() == ["knee", "hüfte"]
        knee = data["angle"].sel(joint="knee")
        assert knee.dtype == np.float32
        assert same(
            knee[0, 0], np.full(6, result.problem.space.values(result.outcomes.X[0].tolist())["side"] / 1000, "f4")
        )
        assert data["status"].attrs["flag_meanings"] == "ok marker_missing"
        assert data["status"].attrs["flag_values"].tolist() == [0, 1]
        assert same(data["status"][0, 0], np.array([0, 0, 1, 1, 0, 0]))


def rewritten(result: Result, row: int, **arrays: Any) -> None:
    """Other arrays of a design, as an older version may have kept them."""
    from designopt.store.disk.arrays import array_reference

    key = result.recorded_problem.keys(result.outcomes.X[[row]])[0][0]
    np.savez(result.path / array_reference(key), **arrays)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"angle": np.zeros(3)}, "the array 'angle' has 1 axes in one evaluation and 2 in another"),
        ({"joint": np.zeros(2)}, "the array 'joint' is text in one evaluation and numbers in another"),
    ],
)
def test_arrays_that_are_no_variable_are_reported_by_name(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    execution = {"executor": "serial", "arrays": dict.fromkeys(("joint", "angle", "status"), "all")}
    result = study(model={"use": statuses}, execution=execution).run(tmp_path / "s")
    rewritten(result, 1, **arrays)
    with pytest.raises(ExportError, match=re.escape(message)):
        export(result, tmp_path, ["netcdf"])
    assert not list(tmp_path.glob("*.nc*"))


@designopt.model("exported_large", version=1, arrays={"wave": Array(("time",), dtype="float")})
def large(design: Beam, scenario: Load, arrays: frozenset[str]) -> tuple[Bent, dict[str, Any]]:
    """A model that keeps 2 MB an evaluation."""
    return {"sag": 1.0, "mass": 2.0}, {"wave": np.full(250_000, design["side"])}


def test_the_memory_of_an_export_does_not_grow_with_the_number_of_evaluations(tmp_path: Path) -> None:
    pytest.importorskip("h5netcdf")
    execution = {"executor": "serial", "arrays": {"wave": "all"}}
    result = study(model={"use": large}, execution=execution).run(tmp_path / "s")
    _ = result.outcomes
    tracemalloc.start()
    (file,) = export(result, tmp_path, ["netcdf"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(result.outcomes) * 2 >= 64  # evaluations, 128 MB
    assert peak < 64 * 2**20  # 12 MB alone; threads that earlier tests left may allocate meanwhile
    assert file.stat().st_size < 4 * 2**20  # they are constant


def test_a_study_file_may_keep_arrays_of_the_chosen_designs_only(tmp_path: Path) -> None:
    execution = {"executor": "serial", "arrays": {"swing": "chosen"}}
    result = study(execution=execution).run(tmp_path / "s")
    chosen = set(result.chosen().values())
    assert chosen
    assert {row for row in range(len(result.outcomes)) if result.arrays(row)} == chosen


def test_a_row_has_one_unit_for_each_quantity_and_reads_back_as_a_table_of_designs(tmp_path: Path) -> None:
    space = {"side": [20e-3, 50e-3], "holes": 0, "steel": {"value": "mild"}, "coated": True}
    objectives = [{"name": "droop", "minimize": "sag", "unit": "cm", "over": "nominal"}]
    result = study(space=space, objectives=objectives, constraints=None).run(tmp_path / "s.study")
    file, _ = export(result, tmp_path, ["csv"])
    with file.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["droop [cm]"] for row in rows] == [row["sag@calm [cm]"] for row in rows]
    assert float(rows[0]["sag@calm [cm]"]) == pytest.approx(0.1 * result.outcomes.figures["sag"][0, 0])
    assert "<th>droop [cm]</th>" in result._repr_html_()
