"""Export: all designs of a result as a table (Parquet, CSV), the kept arrays with named axes (NetCDF).

The table has a row for each design, numbered as in `designopt.store.result.Result`, and these columns: ``design``; the
parameters and the objectives under their names, in the study's units, an objective in its own direction; ``violation``,
``feasible``, ``stage`` and ``ask`` (where and when it was first asked for); and for each scenario every figure in the
model's unit (``sag@loaded``), then ``status@``, ``reason@`` and ``wall@`` (seconds) of the evaluation. A name that is
taken gets an underscore. No value is an empty cell, null in Parquet: an inactive parameter, a figure of a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from designopt.exports.files import ExportError, write_csv, write_netcdf, write_parquet

if TYPE_CHECKING:
    from designopt.store.result import Result

__all__ = ["FORMATS", "ExportError", "export"]

#: What can be written, by the name of the format.
FORMATS: Mapping[str, Callable[[Result, Path, str], list[Path]]] = {
    "parquet": write_parquet,
    "csv": write_csv,
    "netcdf": write_netcdf,
}


def export(result: Result, folder: str | Path, formats: Sequence[str], *, prefix: str = "") -> list[Path]:
    """Write `result` into `folder` and return the files: ``designs.parquet``, ``designs.csv`` with its description in
    ``designs.csv-metadata.json`` (CSV on the Web), ``arrays.nc``; `prefix` goes before these names.

    Files are replaced as a whole. Raises `ExportError` for an unknown format, a library that is not installed, or
    arrays when none are kept; `OSError` when a file cannot be written.
    """
    for form in formats:
        if form not in FORMATS:
            raise ExportError(f"no export format '{form}' (there are {', '.join(FORMATS)})")
    return [file for form in dict.fromkeys(formats) for file in FORMATS[form](result, Path(folder), prefix)]
