"""A recorded walk against the moments that OpenSim computed for it (shared data; skipped where it is absent).

The trial of Rajagopal et al. 2016 has skin markers only: no static posture, no medial markers. Joint centres stand
beside the lateral ones, those of the hips by regression on the pelvis; OpenSim's are those of its scaled model. So the
moments agree in shape and size, not to digits.
"""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from designopt_mechanics.moment_balance import MomentBalance
from designopt_recordings.files.read import read_recording
from designopt_recordings.files.storage import read_storage
from designopt_recordings.files.text import input_file
from designopt_recordings.loads.tables import plates_from_table
from designopt_recordings.table import TimeTable
from designopt_wholebody.dynamics.balance import moment_balance
from designopt_wholebody.model.library import load_model
from designopt_wholebody.trial.analysis import Settings, analyse
from designopt_wholebody.trial.landmarks import static_subject
from designopt_wholebody.trial.marker_set import read_marker_set

SHARED = Path(os.environ.get("DESIGNOPT_SHARED", Path(__file__).parents[4] / "shared"))
FOLDER = SHARED / "data" / "mocap" / "walk_fullbody_opensim"

PELVIS = """\
marker_set: rajagopal_walk
landmarks:
  CIAS_R: R.ASIS
  CIAS_L: L.ASIS
  PMCP: [R.PSIS, L.PSIS]
  CAL: [R.ASIS, L.ASIS, R.PSIS, L.PSIS]
"""
#: Hip centre by Harrington et al. 2007 for a pelvis of 25 x 21 cm; half a knee is 5.5 cm wide, half an ankle 4 cm.
LEG = """\
  CAQ_{s}: {{at: [R.ASIS, L.ASIS], right: [L.ASIS, R.ASIS], forward: [R.PSIS, R.ASIS], by: [-0.060, -0.087, {hip}]}}
  CL_{s}: {s}.Knee
  CM_{s}: {{at: [{s}.Knee], along: [{s}.ASIS, {o}.ASIS], by: 0.11}}
  ML_{s}: {s}.Ankle
  MM_{s}: {{at: [{s}.Ankle], along: [{s}.ASIS, {o}.ASIS], by: 0.08}}
  CALC_{s}: {s}.Heel
  MT5_{s}: {s}.MT5
  MT1_{s}: {s}.Toe
"""
MARKERS = PELVIS + LEG.format(s="R", o="L", hip=0.0905) + LEG.format(s="L", o="R", hip=-0.0905)


@pytest.fixture(scope="module")
def moments() -> tuple[MomentBalance, TimeTable]:
    """Ours, and OpenSim's."""
    if not FOLDER.is_dir():
        pytest.skip(
            "the shared recordings (../shared/data/mocap/walk_fullbody_opensim, or DESIGNOPT_SHARED) are absent"
        )
    walk = read_recording(input_file(FOLDER / "markers_walk.trc"))
    walk = replace(walk, plates=plates_from_table(read_storage(input_file(FOLDER / "grf_walk.mot"))))
    markers = read_marker_set(MARKERS.encode(), "rajagopal_walk.yaml")
    subject = static_subject(load_model("lower_limbs7"), walk, markers, 75.0)
    analysis = analyse(subject, walk, Settings(preparation="filtered", cutoff=6.0), markers)
    for bearing in analysis.plates.bearings:
        carried = {bearing.segments[k] for k in np.unique(bearing.segment_indices) if k >= 0}
        assert carried == {f"foot_{bearing.plate.upper()}"}
    return moment_balance(subject, analysis.motion, analysis.loads), read_storage(input_file(FOLDER / "id_walk.sto"))


@pytest.mark.parametrize("side", ["R", "L"])
@pytest.mark.parametrize(
    ("row", "column", "sign", "correlation", "difference"),  # correlation above, RMS difference in N m below
    [
        ("ankle_{}.dorsiflexion", "ankle_angle_{}_moment", 1.0, 0.995, 5.5),  # 0.997; 4.9 and 5.0 of 150
        ("knee_{}.flexion", "knee_angle_{}_moment", 1.0, 0.95, 12.0),  # 0.970 and 0.957; 11.1 and 7.7 of 99
        ("hip_{}.flexion", "hip_flexion_{}_moment", 1.0, 0.90, 13.5),  # 0.934 and 0.905; 11.7 and 12.8 of 117
        ("hip_{}.abduction", "hip_adduction_{}_moment", -1.0, 0.97, 9.5),  # 0.977 and 0.990; 8.8 and 6.4 of 85
    ],
)
def test_moments_are_those_of_opensim(
    moments: tuple[MomentBalance, TimeTable],
    side: str,
    row: str,
    column: str,
    sign: float,
    correlation: float,
    difference: float,
) -> None:
    ours, theirs = moments
    inner = (ours.time > theirs.time[0] + 0.01) & (ours.time < theirs.time[-1])
    assert inner.sum() > 120
    a = ours.moments[inner, ours.rows.index(row.format(side))]
    b = sign * np.interp(ours.time[inner], theirs.time, theirs.column(column.format(side.lower())))
    assert np.corrcoef(a, b)[0, 1] > correlation
    assert np.sqrt(np.mean((a - b) ** 2)) < difference
