"""A study whose report names a part that the run cannot fill is remarked on before it runs, at its position."""

from pathlib import Path

from designopt.api import load
from designopt.study.remarks import remarks

STUDY = """
study: reach
model: {use: reach_arm6}
space: {duration: [0.5, 0.8]}
objectives: [{minimize: effort}]
solver: {use: cma_es}
budget: {evaluations: 20}
execution: {arrays: [time, path, excitations, activations]}
report:
  plots: [arm_reach, spectrum, damper_families]
"""


def test_a_part_without_its_arrays_or_its_scan_is_named_with_its_position(tmp_path: Path) -> None:
    file = tmp_path / "reach.yaml"
    file.write_text(STUDY.lstrip())
    notes = [note.removeprefix(str(file)) for note in remarks(load(file).definition) if "will be empty" in note]
    assert notes == [
        ":9:11: note: part 'arm_reach' will be empty: it draws the array torques; add it to 'execution: arrays'",
        ":9:22: note: part 'spectrum' will be empty: model 'reach_arm6' has no arrays spectrum_frequency, "
        "spectrum_amplitude",
        ":9:32: note: part 'damper_families' will be empty: it needs a scan of stiffness and damping_ratio, a stage of "
        "full_factorial",
    ]
