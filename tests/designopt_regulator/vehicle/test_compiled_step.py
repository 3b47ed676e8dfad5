"""The closed loops as machine code: the same numbers as with numpy, which takes its place without a compiler."""

import logging
from dataclasses import replace

import numpy as np
import pytest
from designopt_regulator.vehicle import compiled_step as step_compiled
from designopt_regulator.vehicle.simulation import RateLoop, Schedule
from vehicle_cases import COURSE, course_runs, random_designs, turn

N = 24
EVERY_OTHER = np.arange(N) % 2

#: What is computed besides the loops of level 1, each with its own terms of the equations.
REFINED = {
    "constant gain": {},
    "scheduled gain": {"schedule": Schedule(3.5, 1.0)},
    "stiction": {"changes": {"stiction": 4000.0 * EVERY_OTHER}},
    "side slope": {"changes": {"shift": 0.05 * EVERY_OTHER, "side_moment": -900.0}},
    "slip": {"changes": {"shear_modulus": 0.03 * EVERY_OTHER}, "substeps": 30},
    "yaw-rate loop": {"rate_loop": RateLoop(0.8 * EVERY_OTHER, np.full(N, 0.5))},
    "noise": {"noise": 0.002},
    "feed-forward": {"feed": 0.05},
}


def figures(machine_code, substeps=5, noise=0.0, feed=None, **options):
    """All figures and samples of 24 random designs, by name."""
    designs = random_designs(N, seed=5)
    scenarios = [COURSE[i % 8] for i in range(N)]
    added = np.random.default_rng(1).standard_normal((N, 2, 120)) * noise if noise else None
    manoeuvre = replace(
        turn([speed for _, speed in scenarios], horizon=6.0, load_at=4.0),
        noise=added,
        feed=None if feed is None else np.full(N, feed),
    )
    runs = course_runs(
        designs, scenarios, substeps=substeps, manoeuvre=manoeuvre, trace=True, machine_code=machine_code, **options
    )
    outputs = {f"{loop}.{name}": values for loop, q in runs.quality.items() for name, values in vars(q).items()}
    return outputs | {"energy": runs.energy, "sharp": runs.sharp, "final": runs.final} | vars(runs.trace)


@pytest.mark.parametrize("case", REFINED)
def test_machine_code_and_numpy_agree_to_the_thirteenth_digit(case):
    machine, arrays = figures(True, **REFINED[case]), figures(False, **REFINED[case])
    assert machine.keys() == arrays.keys()
    for name, values in machine.items():
        scale = np.abs(arrays[name][np.isfinite(arrays[name])]).max(initial=0.0)
        np.testing.assert_allclose(values, arrays[name], rtol=1e-13, atol=1e-13 * scale, err_msg=name)


def test_without_a_compiler_numpy_computes_with_one_warning(monkeypatch, caplog):
    with_compiler = figures(True)
    monkeypatch.setenv("CC", "no-such-compiler")
    step_compiled._compile.cache_clear()
    try:
        with caplog.at_level(logging.INFO, logger="designopt_regulator"):
            without = figures(True)
            figures(True)
    finally:
        step_compiled._compile.cache_clear()
    assert [record.message for record in caplog.records] == [
        "the closed loops are computed with numpy, which is slower: the C compiler 'no-such-compiler' (CC) is not found"
    ]
    assert without["course.iae"] == pytest.approx(with_compiler["course.iae"], rel=1e-13)


def test_where_tanh_is_cut_it_is_one_to_the_last_digit():
    """Beyond 22 machine code takes 1 for the hyperbolic tangent, which rolling resistance has of the speed."""
    assert np.tanh(22.0) == 1.0
    assert np.tanh(-22.0) == -1.0
