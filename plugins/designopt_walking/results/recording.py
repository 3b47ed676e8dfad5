"""A recorded cycle beside which a walk is drawn: means and standard deviations of angles and activations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_table
from designopt_recordings.table import TimeTable

from designopt.arrays import Floats
from designopt.plugin import InputFile
from designopt_walking.results.cycle import SAMPLES

#: Ending of the column with the standard deviation over the recorded cycles.
DEVIATION = "_deviation"


def recorded_cycle(file: InputFile) -> TimeTable:
    """The table (STO, MOT or CSV) of one cycle from right heel strike to the next, its time in s or in any other
    measure: columns called like coordinates and muscles have means, those that end in `DEVIATION` deviations.

    Raises `RecordingError` for an unusable file, a negative deviation, and one without its mean.
    """
    table = read_table(file)
    for name in table.names:
        if name.endswith(DEVIATION):
            if name.removesuffix(DEVIATION) not in table.names:
                raise RecordingError(
                    f"there is no column '{name.removesuffix(DEVIATION)}' for '{name}'", file=file.name
                )
            if (table.column(name) < 0.0).any():
                raise RecordingError(f"column '{name}' has negative values", file=file.name)
    if len(table.time) < 4:
        raise RecordingError(f"{len(table.time)} rows are no cycle; at least four are needed", file=file.name)
    return table


def bands(cycle: TimeTable | None, names: Sequence[str], rotations: Sequence[str] = ()) -> Floats:
    """(`SAMPLES`, k, 2) means and deviations of the columns `names` over the cycle, NaN where nothing is recorded.

    The columns of `rotations` are in the table's unit of rotations, the result in rad.
    """
    band = np.full((SAMPLES, len(names), 2), np.nan)
    if cycle is None:
        return band
    columns = [name for name in rotations if name in cycle.names]
    with_deviation = [f"{name}{DEVIATION}" for name in columns if f"{name}{DEVIATION}" in cycle.names]
    table = cycle.radians([*columns, *with_deviation])
    share = (table.time - table.time[0]) / (table.time[-1] - table.time[0])
    for k, name in enumerate(names):
        for i, column in enumerate((name, f"{name}{DEVIATION}")):
            if column in table.names:
                band[:, k, i] = np.interp(np.linspace(0.0, 1.0, SAMPLES), share, table.column(column))
    return band
