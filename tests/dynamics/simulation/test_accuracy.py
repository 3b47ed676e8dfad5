"""Adaptive runs against reference values from the literature, and the two ways to run against each other."""

import concurrent.futures

import numpy as np
import pytest

from designopt.dynamics import SimulationStatus, Simulator
from designopt.dynamics.simulation.tableau import METHODS

METHOD = pytest.mark.parametrize("method", METHODS)

#: Hairer & Wanner (1996), reference solutions of their test set: VDPOL, eps = 1e-6 from (2, 0), at t = 1 and 2.
VAN_DER_POL = np.array([[-1.863646254808130, 0.7535430865435460], [1.706167732170456, -0.8928097010248257]])
#: ROBER from (1, 0, 0) at t = 40 and 1e11.
ROBERTSON = np.array(
    [
        [0.7158270687193941, 0.9185534764557338e-5, 0.2841637457458413],
        [0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050],
    ]
)


def run_van_der_pol(system, method, tolerance, **options):
    simulator = Simulator(system, method, rtol=tolerance, atol=tolerance, **options)
    run = simulator.run([2.0, 0.0], [0.0, 1.0, 2.0], p={"eps": 1e-6})
    assert run.status is SimulationStatus.DONE
    return run, float((np.abs(run.x[1:] - VAN_DER_POL) / np.abs(VAN_DER_POL)).max())


@pytest.mark.usefixtures("compiler")
@METHOD
def test_van_der_pol_follows_the_tolerance(van_der_pol, method):
    tolerances = np.logspace(-4, -9, 6)
    errors = np.array([run_van_der_pol(van_der_pol, method, tolerance)[1] for tolerance in tolerances])
    assert (errors < 50 * tolerances).all()
    slope = np.polyfit(np.log10(tolerances), np.log10(errors), 1)[0]
    assert 0.6 < slope < 1.3


@pytest.mark.usefixtures("compiler")
@METHOD
def test_robertson_over_eleven_decades_of_time(robertson, method):
    simulator = Simulator(robertson, method, rtol=1e-7, atol=[1e-12, 1e-16, 1e-12])
    run = simulator.run([1, 0, 0], [0.0, 40.0, 1e11])
    assert run.x[1] == pytest.approx(ROBERTSON[0], rel=1e-5)
    assert run.x[2] == pytest.approx(ROBERTSON[1], rel=1e-4)
    assert np.abs(run.x.sum(axis=1) - 1.0).max() < 1e-12  # a linear invariant, kept exactly but for rounding


@pytest.mark.usefixtures("compiler")
@METHOD
def test_compiled_and_interpreted_runs_agree_within_the_tolerance(smooth, smooth_exact, method):
    times = np.linspace(0.0, 5.0, 101)
    compiled = Simulator(smooth, method, rtol=1e-7, atol=1e-9).run([0.25, 0.0625], times, p=[3.0])
    interpreted = Simulator(smooth, method, rtol=1e-7, atol=1e-9, compiled=False).run([0.25, 0.0625], times, p=[3.0])
    for run in (compiled, interpreted):
        assert np.abs(run.x - smooth_exact(times)).max() < 3e-6
        assert run.y[:, 0] == pytest.approx(run.x.sum(axis=1), abs=1e-15)
        assert run.y[:, 1] == pytest.approx(run.x[:, 0] + times, abs=1e-15)


def test_interpreted_van_der_pol(van_der_pol):
    _, error = run_van_der_pol(van_der_pol, "rosenbrock4", 1e-6, compiled=False)
    assert error < 1e-5


@pytest.mark.usefixtures("compiler")
def test_samples_do_not_change_the_steps(van_der_pol):
    simulator = Simulator(van_der_pol, rtol=1e-6, atol=1e-6)
    few = simulator.run([2.0, 0.0], [0.0, 2.0], p=[1e-6])
    many = simulator.run([2.0, 0.0], np.linspace(0.0, 2.0, 1001), p=[1e-6])
    assert many.x[-1].tolist() == few.x[-1].tolist()
    assert (many.steps, many.rejected, many.evaluations) == (few.steps, few.rejected, few.evaluations)


@pytest.mark.usefixtures("compiler")
@METHOD
def test_runs_repeat_bit_by_bit_alone_and_in_threads(van_der_pol, method):
    simulator = Simulator(van_der_pol, method, rtol=1e-8, atol=1e-8)
    times = np.linspace(0.0, 2.0, 201)

    def run(eps):
        return simulator.run([2.0, 0.0], times, p=[eps]).x.tobytes()

    stiffness = [1e-6, 1e-5, 1e-4, 1e-3] * 3
    alone = [run(eps) for eps in stiffness]
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert list(threads.map(run, stiffness)) == alone
    repeated = Simulator(van_der_pol, method, rtol=1e-8, atol=1e-8)
    assert repeated.run([2.0, 0.0], times, p=[1e-6]).x.tobytes() == alone[0]


@pytest.mark.parametrize("compiled", ["auto", False])
def test_a_run_in_pieces_continues_with_the_step_it_had(smooth, smooth_exact, compiled):
    simulator = Simulator(smooth, rtol=1e-8, atol=1e-10, compiled=compiled)
    uninterrupted = simulator.run([0.25, 0.0625], [0.0, 4.0], p=[3.0])
    x, step, steps = [0.25, 0.0625], None, 0
    for start in range(4):
        piece = simulator.run(x, [start, start + 1], p=[3.0], first_step=step)
        x, step, steps = piece.x[-1], piece.last_step, steps + piece.steps
    assert np.abs(x - smooth_exact([4.0])[0]).max() < 1e-6
    if simulator.compiled:  # a multistep method begins again at order one
        assert steps <= 1.25 * uninterrupted.steps + 8
