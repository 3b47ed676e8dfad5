"""What OpenSim reads, in a process of its own: ``python opensim_reads.py FILE...``.

Prints one line of JSON for each file: times, column labels and values, NaN as null.
"""

import json
import sys

import numpy as np
import opensim

opensim.Logger.setLevelString("error")


def read(path: str) -> dict[str, object]:
    if path.endswith(".trc"):
        table = opensim.TimeSeriesTableVec3(path)
        columns = [table.getDependentColumn(c) for c in table.getColumnLabels()]
        values = np.array([[column[i].to_numpy() for i in range(table.getNumRows())] for column in columns])
        values = np.moveaxis(values, 0, 1).reshape(table.getNumRows(), -1)
        flag = table.getTableMetaDataString("Units")
    else:
        table = opensim.TimeSeriesTable(path)
        values = table.getMatrix().to_numpy()
        flag = table.getTableMetaDataString("inDegrees")
    numbers = [[None if np.isnan(x) else x for x in row] for row in values.tolist()]
    return {
        "time": list(table.getIndependentColumn()),
        "labels": list(table.getColumnLabels()),
        "values": numbers,
        "flag": flag,
    }


for file in sys.argv[1:]:
    print(json.dumps(read(file)))
