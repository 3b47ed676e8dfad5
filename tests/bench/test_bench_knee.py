"""Cost of one evaluation of the knee on one core, against the same physics as a plain-array model under LSODA.

Both run in one process, one after the other: ratios are of the same machine in the same minute. The plain-array model
is the seven-coordinate form of the tests (NumPy, multipliers) under SciPy's LSODA at relative tolerance 1e-6.
"""

import statistics
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from designopt_knee import figures
from designopt_knee.model import FourBarKnee
from designopt_knee.parameters import SUBSTITUTE_V1, complete

sys.path.insert(0, str(Path(__file__).parents[1] / "designopt_knee"))
from seven_coordinate import SevenCoordinates

pytestmark = pytest.mark.bench

#: Spread over the study's range, below and above the critical stiffness.
DESIGNS = [(k, ratio) for k in np.linspace(12000.0, 30000.0, 10) for ratio in (0.02, 0.05, 0.12)]


def evaluation_seconds(knee):
    """Processor seconds of each of DESIGNS, all outputs included."""
    seconds = []
    for stiffness, ratio in DESIGNS:
        began = time.process_time()
        knee.evaluate({"stiffness": stiffness, "damping_ratio": ratio}, {}, set())
        seconds.append(time.process_time() - began)
    return seconds


def plain_array_seconds(gait):
    """Processor seconds of one design (18 kN/m, c/k = 0.05) over 20 cycles in seven coordinates, and its rho."""
    from scipy.integrate import solve_ivp

    base = {name: parameter.value for name, parameter in SUBSTITUTE_V1.items()}
    leg = SevenCoordinates(complete(base, {}, {"stiffness": 18000.0, "damping_ratio": 0.05}), gait)
    times = np.arange(4001) * gait.period / 200
    began = time.process_time()
    run = solve_ivp(
        leg.rhs, (0.0, times[-1]), leg.consistent(0.0, -0.15, 0.25, 0.0, 0.0),
        method="LSODA", t_eval=times, rtol=1e-6, atol=1e-8,
    )  # fmt: skip
    seconds = time.process_time() - began
    assert run.success
    phase = np.arange(3000, 4000) / 200
    knee = gait.series("thigh", phase) - run.y[0, 3000:4000]
    return seconds, figures.correlation(knee, gait.series("knee", phase))


@pytest.fixture(scope="module")
def gait():
    from designopt_knee.gait import bundled_text, read_gait

    return read_gait(bundled_text())


@pytest.fixture(scope="module")
def knee():
    model = FourBarKnee()
    model.prepare()
    model.evaluate({"stiffness": 18000.0, "damping_ratio": 0.05}, {}, set())
    return model


def test_compiled_minimal_form_is_300_times_the_plain_array_route(knee, gait, capsys, record_property):
    """At least 12 designs per second and core where the plain-array route needs 30 s: the rates before and after it."""
    seconds = evaluation_seconds(knee)
    plain, rho = plain_array_seconds(gait)
    seconds += evaluation_seconds(knee)
    per_design = statistics.mean(seconds)
    rate = plain / 30.0 / per_design
    with capsys.disabled():
        print(
            f"\nknee: {1.0 / per_design:.1f} designs/s and core (mean {1e3 * per_design:.1f} ms, median "
            f"{1e3 * statistics.median(seconds):.1f}, slowest {1e3 * max(seconds):.1f}, {len(seconds)} evaluations); "
            f"seven coordinates under LSODA {plain:.1f} s: ratio {plain / per_design:.0f}, "
            f"{rate:.1f} designs/s on a machine where that takes 30 s"
        )
    record_property("seven coordinates under LSODA / designopt", plain / per_design)
    assert rho == pytest.approx(0.92015, abs=1e-3)
    assert plain / per_design >= 300.0
    assert rate >= 12.0


def test_a_walk_that_repeats_costs_less_than_half_of_its_twenty_cycles(knee, capsys, record_property):
    """Newton's method after a few cycles against 20 cycles in one run, the way it was done before, with equal figures.

    Designs without a motion of period T are simulated to the end and looked at for the one they cross: they cost more.
    """
    from designopt_knee.model import initial_states
    from designopt_knee.parameters import EQUATION_PARAMETERS

    gait, start = knee._gait, next(iter(initial_states(1)))
    times = np.arange(4001) * gait.period / 200
    recorded = np.degrees(gait.series("knee", np.arange(1000) / 200))
    ratios, all_shot, all_run = [], 0.0, 0.0
    for stiffness, ratio in DESIGNS:
        design = {"stiffness": stiffness, "damping_ratio": ratio}
        leg = complete(knee._base(), {}, design)
        p = np.array([leg[name] for name in EQUATION_PARAMETERS])
        began = time.process_time()
        outputs, _ = knee.evaluate(design, {}, set())
        shot = time.process_time() - began
        began = time.process_time()
        run = knee._integrators.plain.run(start, times, p=p, q=gait.data())
        run_seconds = time.process_time() - began
        all_shot, all_run = all_shot + shot, all_run + run_seconds
        if outputs["period_n"] == 1.0:
            ratios.append(run_seconds / shot)
            angle = np.degrees(run.y[3000:4000, 0])
            assert outputs["rho"] == pytest.approx(figures.correlation(angle, recorded), abs=1e-3)
            peak = angle.reshape(5, 200).max(axis=1).mean()
            assert outputs["peak_flexion"] == pytest.approx(peak, abs=0.05)
    with capsys.disabled():
        print(
            f"\nknee: 20 cycles in one run cost {statistics.median(ratios):.2f} times an evaluation that ends on a "
            f"motion of period T (median of {len(ratios)} designs; all {len(DESIGNS)}: {all_run / all_shot:.2f} times)"
        )
    record_property("20 cycles / evaluation, designs of period T", statistics.median(ratios))
    record_property("20 cycles / evaluation, all designs", all_run / all_shot)
    assert len(ratios) >= 20
    assert statistics.median(ratios) >= 2.0


def sweep():
    """The designs of the stage `sweep` of ``studies/knee_damper.yaml``, shuffled."""
    grid = [(k, ratio) for k in np.linspace(10e3, 30e3, 101) for ratio in np.linspace(0.02, 0.12, 11)]
    order = np.random.default_rng(0).permutation(len(grid))
    return [{"stiffness": grid[i][0], "damping_ratio": grid[i][1]} for i in order]


def test_lanes_compute_two_and_a_half_designs_in_the_time_of_one(capsys, record_property):
    """Every third design of the sweep, alone and side by side in turn: equal bits, processor time of both."""
    from designopt.plugin import Diverged

    model = FourBarKnee(parameter_set="substitute_v2", compiled="always")
    model.prepare()
    arrays = {"spectrum_frequency", "spectrum_amplitude", "knee_peaks"}  # those that the study stores
    designs = sweep()[::3]

    def evaluated(design):
        try:
            return model.evaluate(design, {}, arrays)[0]
        except Diverged as error:
            return str(error)

    model.batch(designs[:2], [{}] * 2, arrays)
    seconds = {"alone": 0.0, "in lanes": 0.0}
    for first in range(0, len(designs), model.batch_size):
        part = designs[first : first + model.batch_size]
        began = time.process_time()
        alone = [evaluated(design) for design in part]
        between = time.process_time()
        answers = model.batch(part, [{}] * len(part), arrays)
        seconds["alone"] += between - began
        seconds["in lanes"] += time.process_time() - between
        assert alone == [str(answer) if isinstance(answer, Exception) else answer[0] for answer in answers]
    rates = {name: len(designs) / total for name, total in seconds.items()}
    with capsys.disabled():
        print(f"\nknee: {rates['alone']:.1f} designs/s alone, {rates['in lanes']:.1f} in lanes")
    record_property("in lanes / alone", rates["in lanes"] / rates["alone"])
    record_property("designs per second in lanes", rates["in lanes"])
    assert rates["in lanes"] / rates["alone"] >= 2.5


class Pace:
    """Notes when how many designs were done, from the first finished ones on."""

    def __init__(self):
        self.counts = []

    def update(self, snapshot):
        if snapshot.done:
            self.counts.append((time.perf_counter(), snapshot.done))

    def event(self, kind, text):
        pass

    def close(self):
        pass

    @property
    def rate(self):
        (began, before), (ended, after) = self.counts[0], self.counts[-1]
        return (after - before) / (ended - began)


def test_two_workers_do_nearly_twice_the_work_of_one(tmp_path, capsys):
    """At least 1.8 times the rate on two Dask workers; needs two cores that nobody else uses."""
    import designopt

    study = {
        "study": "scaling",
        "model": {"use": "four_bar_knee"},
        "space": {"stiffness": {"low": 12e3, "high": 30e3}, "damping_ratio": {"low": 0.02, "high": 0.12}},
        "objectives": [{"name": "mismatch", "minimize": "1 - rho"}],
        "solver": {"use": "full_factorial", "levels": 14},
        "execution": {"executor": "dask"},
    }
    rates = {1: [], 2: []}
    for i in range(3):
        for workers in rates:  # in turn: both meet the same changes of the machine's speed
            pace = Pace()
            designopt.define(**study).run(tmp_path / f"{workers}-{i}.study", workers=workers, progress=pace)
            rates[workers].append(pace.rate)
    of_one, of_two = (statistics.median(r) for r in rates.values())
    with capsys.disabled():
        print(f"\nknee: {of_one:.1f} designs/s with one worker, {of_two:.1f} with two: ratio {of_two / of_one:.2f}")
    assert of_two / of_one >= 1.8
