"""Exports: all designs of a result as a table (Parquet, CSV), the stored arrays with named axes (NetCDF).

The table has a row for each design, numbered as in `designopt.store.result.Result`, and these columns: ``design``; the
parameters and the objectives under their names, in the study's units, an objective in its own direction; ``violation``,
``feasible``, ``stage`` and ``ask`` (where and when it was first requested); and for each scenario every figure in the
model's unit (``sag@loaded``), then ``status@``, ``reason@`` and ``wall@`` (seconds) of the evaluation. A name already
in use gets an underscore. A missing value (an inactive parameter, a figure of a failure) is an empty cell, null in
Parquet.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from designopt.exports.errors import ExportError
from designopt.plugin import ExportPlugin, PluginError, Use, find
from designopt.plugin.calling import calling, value_text, wrong_return
from designopt.store.errors import StoreError

if TYPE_CHECKING:
    from designopt.store.result import Result

__all__ = ["ExportError", "export"]


def export(
    result: Result, folder: str | Path, formats: Sequence[str | Use[ExportPlugin]], *, prefix: str = ""
) -> list[Path]:
    """Write `result` into `folder` and return the files: ``designs.parquet``, ``designs.csv`` with its description in
    ``designs.csv-metadata.json`` (CSV on the Web), ``arrays.nc``, and those of other exporters; `prefix` precedes these
    names.

    Files are replaced as a whole. Raises `ExportError` for an unknown format, a library that is not installed, or
    arrays if none are stored; `OSError` if a file cannot be written; `PluginFailed` if the code of a format fails.
    """
    uses: list[Use[ExportPlugin]] = []
    for form in formats:
        try:
            use = Use(find("export", form)) if isinstance(form, str) else form
        except PluginError as error:
            raise ExportError(f"export format '{form}': {error}") from None
        if missing_settings := [
            f.name for f in use.plugin.settings.values() if f.required and f.name not in use.settings
        ]:
            raise ExportError(
                f"export format '{use.plugin.name}' needs '{missing_settings[0]}': name it in the study, report: export"
            )
        uses += [] if use in uses else [use]
    return [file for use in uses for file in _files_of(use, result, Path(folder), prefix)]


def _files_of(use: Use[ExportPlugin], result: Result, folder: Path, prefix: str) -> list[Path]:
    with calling(use.plugin, ExportError, StoreError, OSError):
        files = use.build()(result, folder, prefix)
    if not isinstance(files, (list, tuple)) or not all(isinstance(file, (str, Path)) for file in files):
        raise wrong_return(use.plugin, f"must return a list with the paths of its files, not {value_text(files)}")
    return [Path(file) for file in files]
