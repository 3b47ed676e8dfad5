"""Solutions in files: plain arrays and a JSON header, read without running anything, equal to what was written."""

import dataclasses
import json
import math
import pickle
from collections.abc import Mapping
from dataclasses import replace

import benchmark_problems as problems
import numpy as np
import pytest

from designopt.collocation import (
    Constraint,
    Guess,
    Mesh,
    Options,
    Program,
    Status,
    TrajectoryProblem,
    explain,
    load_solution,
    resimulate,
    save_solution,
)
from designopt.collocation.solution.saving import from_arrays, to_arrays
from designopt.collocation.solution.solution import Round, StartRecord
from designopt.collocation.statement.mesh import radau, refined


def assert_equal(a, b, where="solution"):
    """Everything that two results hold is the same, NaN included."""
    if isinstance(a, np.ndarray):
        assert isinstance(b, np.ndarray), where
        assert a.dtype == b.dtype, where
        np.testing.assert_array_equal(a, b, err_msg=where)
    elif isinstance(a, Mesh):
        assert_equal(a.nodes, b.nodes, where)
        assert_equal(a.fractions, b.fractions, where)
        assert_equal(a.weights, b.weights, where)
        for first, second in zip(a.schemes, b.schemes, strict=True):
            assert (first.name, first.degree) == (second.name, second.degree), where
            assert_equal(first.P, second.P, where)
            assert_equal(first.Q, second.Q, where)
            assert_equal(first.control_rows, second.control_rows, where)
    elif dataclasses.is_dataclass(a):
        assert type(a) is type(b), where
        for field in dataclasses.fields(a):
            assert_equal(getattr(a, field.name), getattr(b, field.name), f"{where}.{field.name}")
    elif isinstance(a, Mapping):
        assert list(a) == list(b), where
        for name in a:
            assert_equal(a[name], b[name], f"{where}.{name}")
    elif isinstance(a, tuple):
        assert type(a) is type(b), where
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_equal(x, y, f"{where}[{i}]")
    elif isinstance(a, float) and math.isnan(a):
        assert math.isnan(b), where
    else:
        assert a == b, where


def two_phases():
    block = problems.block_move().phases[0]
    return TrajectoryProblem(
        [replace(block, name="first", tf=(0.2, 0.8), final={}), replace(block, name="second", t0=None, initial={})],
        cost=lambda e: e.phase["first"].integral["effort"] + e.phase["second"].integral["effort"],
        constraints={
            n: Constraint(lambda e, n=n: e.phase["second"].initial[n] - e.phase["first"].final[n], 0.0, 0.0)
            for n in ("x", "v")
        },
        terms={"first part": lambda e: e.phase["first"].integral["effort"]},
        figures={"joint": lambda e: e.phase["first"].final["x"]},
    )


SOLUTIONS = {
    "hermite_simpson": lambda: Program(problems.cart_pole(), Options(intervals=10)).solve(),
    "linear midpoint": lambda: Program(problems.block_move(), Options(intervals=5, midpoint_control="linear")).solve(),
    "trapezoidal": lambda: Program(problems.van_der_pol(), Options(intervals=20, scheme="trapezoidal")).solve(),
    "parameters": lambda: Program(problems.quarter_car(), Options(intervals=20, scheme="radau", degree=2)).solve(),
    "phases": lambda: Program(two_phases(), Options(intervals=5)).solve(),
    "failed": lambda: Program(problems.cart_pole(), Options(intervals=10, max_iterations=2)).solve(),
    "over-constrained": lambda: Program(
        replace(
            problems.damped_start(), phases=[replace(problems.damped_start().phases[0], final={"x": 0.0, "v": 0.0})]
        ),
        Options(intervals=5),
    ).solve(),
}


@pytest.mark.parametrize("solution", SOLUTIONS.values(), ids=SOLUTIONS)
def test_a_loaded_result_equals_the_saved_one(solution, tmp_path):
    original = solution()
    save_solution(original, tmp_path / "result.npz")

    assert_equal(original, load_solution(tmp_path / "result.npz"))
    assert_equal(original, from_arrays(to_arrays(original)))


def test_results_of_checks_and_refinement_are_saved(tmp_path):
    solution = SOLUTIONS["hermite_simpson"]()
    phase = replace(
        solution.phase,
        error=np.linspace(1e-6, 1e-3, 10),
        segment_errors=np.full(10, 1e-9),
        resimulation_error=1e-4,
        path_violation_between_points=0.0,
    )
    solution = replace(
        solution,
        status=Status.MESH_UNRESOLVED,
        phases={"motion": phase},
        error_estimate=1e-3,
        rounds=(Round(10, 1e-2, 14), Round(20, 1e-3, 5)),
        starts=(StartRecord(0, Status.SOLVED, 1.0, 3), StartRecord(1, Status.DIVERGING, -math.inf, 30)),
        warm_path=("full", "primal"),
        warnings=("nonsmooth_model: …",),
    )
    save_solution(solution, tmp_path / "result.npz")

    assert_equal(solution, load_solution(tmp_path / "result.npz"))


def test_meshes_of_unequal_intervals_and_degrees_are_kept(tmp_path):
    mesh = refined(Mesh.at(radau(3), [0.0, 0.2, 1.0]), [1, 3])
    mesh = Mesh(mesh.nodes, (radau(2), radau(4), radau(4), radau(2)))
    solution = Program(problems.block_move(), meshes=[mesh]).solve()
    save_solution(solution, tmp_path / "result.npz")

    assert_equal(solution, load_solution(tmp_path / "result.npz"))


def test_a_loaded_result_interpolates_explains_simulates_and_is_a_guess(tmp_path):
    solution = SOLUTIONS["hermite_simpson"]()
    save_solution(solution, tmp_path / "result.npz")
    loaded = load_solution(tmp_path / "result.npz")

    times = np.linspace(0.0, 2.0, 77)
    for name, trajectory in solution.phase.interpolate(times).items():
        assert loaded.interpolate(times)[name] == pytest.approx(trajectory, abs=0.0)
    with pytest.raises(KeyError, match="there is no variable 'height'; known: "):
        loaded.interpolate(times)["height"]
    assert (
        resimulate(problems.cart_pole().phases[0], loaded.phase, loaded.parameters).error
        == resimulate(problems.cart_pole().phases[0], solution.phase, solution.parameters).error
    )
    assert str(explain(loaded)) == str(explain(solution))
    assert loaded.phase.saturation == solution.phase.saturation
    program = Program(problems.cart_pole(), Options(intervals=10))
    assert program.solve(guess=Guess.from_solution(loaded)).iterations < solution.iterations
    assert program.solve(warm="full", previous=loaded).iterations <= 2


def test_a_result_may_be_sent_to_another_process():
    solution = SOLUTIONS["parameters"]()

    assert_equal(solution, pickle.loads(pickle.dumps(solution)))


def test_the_header_is_json_and_no_array_holds_objects():
    arrays = to_arrays(SOLUTIONS["phases"]())

    header = json.loads(bytes(arrays["header"]).decode(), parse_constant=lambda text: pytest.fail(text))
    assert header["format"] == "designopt trajectory"
    assert all(array.dtype.kind in "fiu" for array in arrays.values())
    assert {"phases.first.values.x", "phases.second.costates.v"} <= set(arrays)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "result.npz"
    save_solution(SOLUTIONS["trapezoidal"](), path)
    return path.read_bytes()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_file_that_was_cut_off_is_refused_in_a_sentence(file, share, tmp_path):
    path = tmp_path / "cut.npz"
    path.write_bytes(file[: int(share * len(file))])

    with pytest.raises(ValueError, match=r"cut\.npz: this is not a readable trajectory result") as error:
        load_solution(path)
    assert "\n" not in str(error.value)


def test_a_file_with_other_bytes_in_it_is_refused_or_read_as_it_was(file, tmp_path):
    path = tmp_path / "bytes.npz"
    expected = to_arrays(load_solution(_file_with(path, file)))
    refused = []
    for position in np.random.default_rng(0).integers(0, len(file), 40).tolist():
        damaged = bytearray(file)
        damaged[position] ^= 0xFF
        try:
            loaded = load_solution(_file_with(path, bytes(damaged)))
        except ValueError as error:
            refused.append(str(error))
        else:  # a byte that no reader looks at
            assert_equal(to_arrays(loaded), expected)
    assert len(refused) > 30
    assert not any("\n" in text for text in refused)


def _file_with(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda h: h.update(format="something"), "it is a 'something'"),
        (lambda h: h.update(version=99), "its version is 99, this designopt reads version 1"),
        (lambda h: h["solution"]["Solution"].pop("iterate"), "iterate"),
        (lambda h: h["solution"]["Solution"].update(objective={"array": "lost"}), "'lost' is missing"),
        (lambda h: h.update(solution={"map": {}}), "it contains something else"),
        (lambda h: h.update(solution={"os.system": "true"}), "'os.system' is missing"),
    ],
    ids=["format", "version", "field", "array", "kind", "code"],
)
def test_a_header_that_says_something_else_is_refused(file, change, reason, tmp_path):
    arrays = to_arrays(load_solution(_file_with(tmp_path / "result.npz", file)))
    header = json.loads(bytes(arrays["header"]).decode())
    change(header)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)

    with pytest.raises(ValueError, match="this is not a readable trajectory result") as error:
        from_arrays(arrays)
    assert reason in str(error.value)


def test_pickled_arrays_are_not_unpickled(tmp_path):
    path = tmp_path / "objects.npz"
    np.savez(path, header=np.array([{"a": 1}], dtype=object))

    with pytest.raises(ValueError, match=r"objects\.npz: this is not a readable trajectory result"):
        load_solution(path)


def test_a_missing_file_is_not_reported_as_damaged(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_solution(tmp_path / "none.npz")
