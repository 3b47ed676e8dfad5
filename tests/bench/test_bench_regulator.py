"""Cost of one closed-loop run of the tracked vehicle, against SciPy and python-control. Run: pytest -m bench -s.

The peers run one vehicle at a time in plain Python numbers (peers/vehicle_loop.py), with the coarsest settings whose
error stays below a share of 1e-5 of the iae; all times are processor seconds of one core. python-control is no
dependency: install it (``pip install control``) where the tests run, or name the Python that has it in the environment
variable DESIGNOPT_PEERS.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from designopt_regulator.vehicle.declarations import Disturbance
from designopt_regulator.vehicle.model import TrackedVehicle

from designopt.store.result import Result

sys.path.insert(0, str(Path(__file__).parents[1] / "designopt_regulator"))
sys.path.insert(0, str(Path(__file__).parent / "peers"))
import vehicle_loop
from vehicle_cases import COURSE, A, B, course_runs

pytestmark = pytest.mark.bench

PYTHON = os.environ.get("DESIGNOPT_PEERS", sys.executable)
SCRIPT = Path(__file__).parent / "peers" / "vehicle_loop.py"
STUDY = Path(__file__).parents[2] / "studies" / "course_pid_2obj.yaml"

#: Of everybody who is compared, as a share of the iae.
ACCURACY = 1e-5


def _rows(count):
    """Designs between A and B, each in the scenarios of the course study."""
    places = np.linspace(0.0, 1.0, count // len(COURSE))
    designs = [{name: A[name] ** (1.0 - s) * B[name] ** s for name in A} for s in places for _ in COURSE]
    return designs, list(COURSE) * len(places)


def _run_seconds(count):
    """Processor seconds of one closed-loop run in a batch of `count`."""
    designs, scenarios = _rows(count)
    seconds = []
    for _ in range(5):
        began = time.process_time()
        course_runs(designs, scenarios, substeps=5, quality_loops=("course",))
        seconds.append((time.process_time() - began) / count)
    return statistics.median(seconds)


def _evaluation_seconds(count):
    """Processor seconds of one evaluation of the model, the robustness of the loop included."""
    model = TrackedVehicle(disturbance=Disturbance(moment=6000.0, at=15.0))
    designs, scenarios = _rows(count)
    conditions = [{"terrain": terrain, "speed": float(speed)} for terrain, speed in scenarios]
    seconds = []
    for _ in range(3):
        began = time.process_time()
        model.batch(designs, conditions, frozenset())
        seconds.append((time.process_time() - began) / count)
    return statistics.median(seconds)


def _iae(substeps):
    """iae of the cases that the peers run."""
    cases = vehicle_loop.CASES
    runs = course_runs([g for *_, g in cases], [(ground, speed) for ground, speed, _ in cases], substeps=substeps)
    return runs.quality["course"].iae


def _control():
    """For each manner of using python-control the processor seconds of a run, and the iae of the cases."""
    completed = subprocess.run([PYTHON, str(SCRIPT), "3"], capture_output=True, text=True, timeout=300)
    if "ModuleNotFoundError" in completed.stderr:
        pytest.skip(f"{completed.stderr.strip().splitlines()[-1]}; install control, or set DESIGNOPT_PEERS")
    if completed.returncode:
        raise RuntimeError(completed.stderr)
    return json.loads(completed.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def our_seconds():
    """Processor seconds of one run by size of the batch; the model requests batches of 400."""
    _run_seconds(8)
    seconds = {count: _run_seconds(count) for count in (200, 400, 1600)}
    print("\nvehicle, a run: " + ", ".join(f"{1e3 * s:.2f} ms in batches of {n}" for n, s in seconds.items()))
    print(f"vehicle, an evaluation with the loop's measures: {1e3 * _evaluation_seconds(400):.2f} ms in batches of 400")
    return seconds


def test_lanes_take_less_than_two_thirds_of_the_time_of_one_row_after_another(monkeypatch, record_property):
    """A batch of 400 runs with their figures, which NumPy computes; in turn, the medians."""
    from designopt_regulator.vehicle import compiled_step

    widths = {"lanes": compiled_step.lane_flags(), "one row after another": ("-DLANES=1",)}
    seconds = {name: [] for name in widths}
    for _ in range(3):
        for name, flags in widths.items():
            monkeypatch.setattr(compiled_step, "lane_flags", lambda flags=flags: flags)
            compiled_step._compile.cache_clear()
            _run_seconds(8)
            seconds[name].append(_run_seconds(400))
    compiled_step._compile.cache_clear()
    lanes, alone = (statistics.median(values) for values in seconds.values())
    print(f"\nvehicle: {1e3 * alone:.2f} ms a run one after another, {1e3 * lanes:.2f} in lanes")
    record_property("one row after another / lanes", alone / lanes)
    assert alone / lanes >= 1.5


@pytest.fixture(scope="module")
def with_scipy():
    """Processor seconds of a run with `solve_ivp` begun again at every sample, and the iae of each case."""
    return vehicle_loop.timed(lambda case: vehicle_loop.with_scipy(case, vehicle_loop.COARSEST_TOLERANCE), 5)


@pytest.fixture(scope="module")
def with_control():
    """The same with python-control's `input_output_response`, by manner of using it."""
    return _control()


@pytest.fixture(scope="module")
def scipy_ratios(our_seconds, with_scipy):
    """Times as fast as SciPy, by size of the batch."""
    return _speed_ratios("solve_ivp begun again at every sample", with_scipy[0], our_seconds)


@pytest.fixture(scope="module")
def control_ratios(our_seconds, with_control):
    """Times as fast as python-control, by manner of using it and size of the batch."""
    return {
        manner: _speed_ratios(f"input_output_response, {manner}", seconds, our_seconds)
        for manner, (seconds, _) in with_control.items()
    }


def _speed_ratios(name, seconds, our_seconds):
    ratios = {count: seconds / mine for count, mine in our_seconds.items()}
    text = ", ".join(f"{ratio:.0f} in batches of {count}" for count, ratio in ratios.items())
    print(f"{name}: {1e3 * seconds:.1f} ms, ratio {text}")
    return ratios


def test_the_runs_compared_with_scipy_are_of_the_same_accuracy(with_scipy):
    exact = _iae(80)
    assert _iae(5) == pytest.approx(exact, rel=ACCURACY)
    assert with_scipy[1] == pytest.approx(exact, rel=ACCURACY)


def test_the_runs_compared_with_python_control_are_of_the_same_accuracy(with_control):
    for _, iae in with_control.values():
        assert iae == pytest.approx(_iae(80), rel=ACCURACY)


def test_a_run_is_250_times_as_fast_as_scipy(scipy_ratios, record_property):
    """Measured 290 to 350 in batches of every size."""
    record_property("solve_ivp, begun again / designopt", min(scipy_ratios.values()))
    assert min(scipy_ratios.values()) >= 250.0


def test_a_run_is_60_times_as_fast_as_python_control(control_ratios, record_property):
    """`input_output_response` of the continuous vehicle, begun again at every sample: measured 850 to 940."""
    record_property("input_output_response, begun again / designopt", min(control_ratios["begun again"].values()))
    assert min(control_ratios["begun again"].values()) >= 60.0


def test_a_run_is_60_times_as_fast_as_an_integrator_written_by_hand_under_python_control(control_ratios):
    """Measured 64 to 71.

    Here `input_output_response` only calls a function at every sample, which makes one Runge-Kutta step in plain
    numbers: the quickest way to have this loop there.
    """
    assert control_ratios["discrete"][400] >= 60.0


def test_a_study_of_5000_evaluations_in_four_scenarios_takes_less_than_20_seconds(tmp_path):
    """From the command to the finished run and its page, with two workers; it needs two idle cores."""
    scenarios = ", ".join(f"{{name: s{i}, terrain: {ground}, speed: {v}}}" for i, (ground, v) in enumerate(COURSE[:4]))
    changes = [
        f"scenarios=[{scenarios}]",
        "stages=[{name: front, solver: {use: nsga2, population: 100}, budget: {evaluations: 5000}}]",
        "execution.arrays=[]",  # of the whole front, each kept in a file of its own
        "report.validate.scenarios.count=1",
    ]
    command = [
        sys.executable,
        "-m",
        "designopt",
        "run",
        str(STUDY),
        "-o",
        str(tmp_path / "four.study"),
        "--workers",
        "2",
    ]
    before, began = os.times(), time.perf_counter()
    subprocess.run([*command, *(word for c in changes for word in ("--set", c))], check=True, capture_output=True)
    wall, after = time.perf_counter() - began, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"5000 designs in 4 scenarios: {wall:.1f} s, {cpu:.1f} s of processors")
    assert len(Result.open(tmp_path / "four.study").outcomes.X) == 5000
    assert wall < 20.0
