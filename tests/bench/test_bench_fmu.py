"""`use: fmu` against FMPy: its `simulate_fmu` called for each design, and a bare loop over its functions."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from designopt_external.fmu.model import Fmu
from fmus import fmu, needs_fmus

from designopt.files import InputFile
from designopt.plugin import Permission

pytestmark = [pytest.mark.bench, needs_fmus]

#: Steps of 10 ms in 2 s, and designs in each measurement.
STEP, STEPS, DESIGNS, REPETITIONS = 0.01, 200, 20, 15
STIFFNESS, TRAVEL, STRETCH = 2, 7, 12


def bare_loop(path: Path) -> Callable[[float], float]:
    """A loop written by hand for this FMU: reset, set, step, read."""
    from fmpy import extract, read_model_description
    from fmpy.fmi2 import FMU2Slave

    about = read_model_description(path)
    unit = FMU2Slave(guid=about.guid, unzipDirectory=extract(path), modelIdentifier="spring", instanceName="bare")
    unit.instantiate()

    def run(stiffness: float) -> float:
        unit.reset()
        unit.setupExperiment(startTime=0.0, stopTime=2.0)
        unit.setReal([STIFFNESS], [stiffness])
        unit.enterInitializationMode()
        unit.exitInitializationMode()
        rows = [unit.getReal([TRAVEL, STRETCH])]
        for k in range(STEPS):
            unit.doStep(currentCommunicationPoint=k * STEP, communicationStepSize=STEP)
            rows.append(unit.getReal([TRAVEL, STRETCH]))
        unit.terminate()
        return max(abs(stretch) for _, stretch in rows)

    return run


def test_an_instance_that_is_reset_beats_a_new_one_for_each_design(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    from fmpy import simulate_fmu

    path = fmu(tmp_path / "spring.fmu")
    sections = {"travel": {"variable": "x2"}, "stretch": {"variable": "spring.stretch", "take": "largest"}}
    model = Fmu(file=InputFile.at(path, "spring.fmu"), outputs=sections)
    model.prepare(Permission.of(["spring.fmu"]))
    bare = bare_loop(path)

    def ours(stiffness: float) -> float:
        return model.evaluate({"spring_k": stiffness}, {}, frozenset())[0]["stretch"]

    def new_instance(stiffness: float) -> float:
        result = simulate_fmu(
            path, fmi_type="CoSimulation", output_interval=STEP, start_values={"spring.k": stiffness},
            output=["x2", "spring.stretch"],
        )  # fmt: skip
        return float(abs(result["spring.stretch"]).max())

    runs = {"ours": ours, "bare": bare, "new": new_instance}
    assert ours(300.0) == pytest.approx(bare(300.0), rel=1e-9)
    assert ours(300.0) == pytest.approx(new_instance(300.0), rel=1e-9)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(REPETITIONS):
        for name, run in runs.items():
            count = 3 if name == "new" else DESIGNS
            begin = time.perf_counter()
            for i in range(count):
                run(100.0 + i)
            times[name].append((time.perf_counter() - begin) / count)
    median = {name: statistics.median(values) for name, values in times.items()}
    record_property("rate over simulate_fmu", median["new"] / median["ours"])
    record_property("rate over a bare loop", median["bare"] / median["ours"])
    record_property("ms per design", 1e3 * median["ours"])
    print({name: f"{1e3 * value:.3f} ms" for name, value in median.items()})
    assert median["new"] / median["ours"] > 5.0
    assert median["bare"] / median["ours"] > 0.8
