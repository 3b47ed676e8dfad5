"""Tables of one gait cycle, as a laboratory writes them."""

from collections.abc import Mapping

import numpy as np
from designopt_knee.gait import Gait

from designopt.arrays import Floats

PERIOD, SPEED = 1.232, 1.015
Columns = dict[str, Floats]


def cycle(gait: Gait, samples: int = 101, at: Floats | None = None, **changed: Floats) -> Columns:
    """Columns of a cycle file made from the bundled series, `at` phases or even ones; `changed` replaces columns."""
    phase = np.linspace(0.0, 1.0, samples) if at is None else at
    thigh, knee, ankle = (np.degrees(gait.series(s, phase)) for s in ("thigh", "knee", "ankle"))
    columns = {
        "phase": phase,
        "time_s": phase * PERIOD,
        "hip_x_m": gait.series("hip_x", phase),
        "hip_y_m": gait.series("hip_y", phase),
        "thigh_deg": thigh,
        "shank_deg": thigh - knee,
        "foot_deg": ankle + thigh - knee,
        "knee_deg": knee,
        "ankle_deg": ankle,
    }
    return {**columns, **changed}


def text_of(columns: Mapping[str, Floats], comment: str = f"# period_s={PERIOD} belt_speed_m_s={SPEED}") -> str:
    rows = [comment, ",".join(columns)]
    rows += [",".join(repr(float(v)) for v in row) for row in zip(*columns.values(), strict=True)]
    return "\n".join(rows) + "\n"


def with_links(columns: Columns) -> Columns:
    """`columns` with the angles of shank and foot computed from those of thigh and joints."""
    shank = columns["thigh_deg"] - columns["knee_deg"]
    return {**columns, "shank_deg": shank, "foot_deg": shank + columns["ankle_deg"]}


def with_joints(columns: Columns) -> Columns:
    """`columns` with the angles of the joints computed from those of the links."""
    shank = columns["shank_deg"]
    return {**columns, "knee_deg": columns["thigh_deg"] - shank, "ankle_deg": columns["foot_deg"] - shank}
