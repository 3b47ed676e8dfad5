"""The page on the knee shows the parameter set that is computed with, and its recipe gives the cycle of a recording."""

import re
from pathlib import Path

import numpy as np
import pytest
from designopt_knee.gait import SIGNALS, Gait, read_gait
from designopt_knee.parameters import SUBSTITUTE_V1, quantities

PAGE = Path(__file__).parents[2] / "docs" / "four_bar_knee.md"


def test_the_table_of_parameters_holds_every_value_unit_and_source():
    rows = re.findall(r"^\| `(\w+)` \| .*? \| (\S+) \| (.*?) \| ([PRS]) \|", PAGE.read_text(), flags=re.MULTILINE)
    table = {name: (float(value), unit, source) for name, value, unit, source in rows}
    assert set(table) == set(SUBSTITUTE_V1)
    for name, parameter in SUBSTITUTE_V1.items():
        value, unit, source = table[name]
        assert abs(value - parameter.value) <= 5e-6 * abs(parameter.value), name
        assert (unit, source) == (quantities()[name].unit or "-", parameter.source), name


def test_the_recipe_writes_the_mean_cycle_of_a_recording_of_many_strides(
    gait: Gait, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten strides at 80 Hz that begin in mid-stride, with noise of 1 mm and 0.3 deg, a third of it in the mean."""
    time = np.arange(0.0, 10.2 * gait.period, 0.0125)
    phase = time / gait.period + 0.3
    noise = np.random.default_rng(0).normal(size=(5, len(time)))
    columns = [
        values + 1e-3 * error if signal.startswith("hip") else np.degrees(values) + 0.3 * error
        for signal, error in zip(SIGNALS, noise, strict=True)
        for values in [gait.series(signal, phase)]
    ]
    table = np.stack([time, *columns, phase % 1.0 < 0.6], axis=1)
    head = "# inDegrees=yes\ntime," + ",".join(SIGNALS) + ",switch"
    monkeypatch.chdir(tmp_path)
    np.savetxt("strides.csv", table, "%.6f", delimiter=",", header=head, comments="")
    (recipe,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    exec(compile(recipe, PAGE.name, "exec"), {})
    mean = read_gait(Path("my_cycle.csv").read_text())
    assert mean.warnings == ()
    assert mean.period == pytest.approx(gait.period, abs=2e-3)
    assert mean.belt_speed == 1.015
    share = np.linspace(0.0, 1.0, 101)
    for (
        signal
    ) in SIGNALS:  # a strike is found up to one frame late: 1 % of the cycle, 3.3 deg where the knee is fastest
        tolerance = 3e-3 if signal.startswith("hip") else np.radians(3.3)
        np.testing.assert_allclose(mean.series(signal, share), gait.series(signal, share), atol=tolerance)
