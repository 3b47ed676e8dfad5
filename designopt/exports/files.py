"""Files of an export, with their provenance."""

from __future__ import annotations

import contextlib
import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from designopt.exports.arrays import stored_arrays, write_arrays
from designopt.exports.errors import ExportError
from designopt.plugin import exporter
from designopt.store.views.table import Column, in_study_units

if TYPE_CHECKING:
    from designopt.store.result import Result

#: Rows converted to Python objects at once.
BLOCK = 20_000


def _blocks(count: int) -> Iterator[slice]:
    return (slice(begin, min(begin + BLOCK, count)) for begin in range(0, count, BLOCK))


def facts(result: Result) -> dict[str, Any]:
    """Provenance: study, seed, problem, model, versions, state of the run."""
    import designopt

    study, model = result.study, result.problem.model.plugin
    sessions = result.sessions
    return {
        "study": study.name,
        "title": study.title,
        "seed": study.seed,
        "problem": result.problem.digest,
        "model": model.name,
        "model_version": model.version,
        "run": result.ended,
        "versions": dict(sessions[-1]["versions"]) if sessions else {},
        "written_by": f"designopt {designopt.__version__}",
    }


@contextlib.contextmanager
def _replacing(file: Path) -> Iterator[Path]:
    """A temporary file beside `file` that replaces `file` at the end, and is removed on failure."""
    partial = file.with_name(f".{file.name}.part")
    partial.unlink(missing_ok=True)  # a link of that name is not followed
    try:
        partial.touch(exist_ok=False)
        yield partial
        os.replace(partial, file)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def _missing(subject: str, error: ImportError) -> ExportError:
    return ExportError(f"{subject} needs {error.name or 'h5py'}; install it with: pip install 'designopt[export]'")


@exporter("csv", version=1)
def write_csv(result: Result, folder: Path, prefix: str) -> list[Path]:
    """All designs as a table: RFC 4180 in UTF-8, units in the heads, numbers in their shortest exact form."""
    table = _table(result)
    file = folder / f"{prefix}designs.csv"
    with _replacing(file) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([c.heading for c in table])
        for rows in _blocks(len(result.outcomes)):
            writer.writerows(zip(*(_csv_cells(c, rows) for c in table), strict=True))
    metadata_file = folder / f"{file.name}-metadata.json"
    data = {
        "@context": "http://www.w3.org/ns/csvw",
        "url": file.name,
        "tableSchema": {"columns": [_csvw(c) for c in table]},
        "notes": [facts(result), *({"titles": c.name, **c.facts} for c in table)],
    }
    with _replacing(metadata_file) as partial:
        partial.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return [file, metadata_file]


def _table(result: Result) -> list[Column]:
    """All designs in the units of the study."""
    return in_study_units(result.in_stated_units.columns(), result.problem)


def _csv_cells(column: Column, rows: slice) -> list[Any]:
    values = column.values(rows)
    if column.kind == "boolean":
        return [None if v is None else "true" if v else "false" for v in values]
    return values


def _csvw(column: Column) -> dict[str, str]:
    """Metadata of a column by `CSV on the Web <https://www.w3.org/TR/tabular-metadata/>`_."""
    attributes = {"titles": column.heading, "datatype": column.kind}
    if column.unit:
        attributes["schema:unitText"] = column.unit
    if column.meaning:
        attributes["dc:description"] = column.meaning
    return attributes


@exporter("parquet", version=1, packages=("pyarrow",), extra="export")
def write_parquet(result: Result, folder: Path, prefix: str) -> list[Path]:
    """All designs as a table in Apache Parquet."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise _missing("Parquet", error) from None
    kinds = {
        "number": pyarrow.float64(), "integer": pyarrow.int64(), "boolean": pyarrow.bool_(), "string": pyarrow.string(),
    }  # fmt: skip
    table = _table(result)
    schema = pyarrow.schema(
        [pyarrow.field(c.name, kinds[c.kind], metadata=c.facts or None) for c in table],
        metadata={"designopt": json.dumps(facts(result), ensure_ascii=False)},
    )
    file = folder / f"{prefix}designs.parquet"
    with _replacing(file) as partial, partial.open("wb") as stream, parquet.ParquetWriter(stream, schema) as writer:
        for rows in _blocks(len(result.outcomes)):
            arrays = [pyarrow.array(c.values(rows), kinds[c.kind]) for c in table]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
    return [file]


@exporter("netcdf", version=1, packages=("h5netcdf", "h5py"), extra="export")
def write_netcdf(result: Result, folder: Path, prefix: str) -> list[Path]:
    """The stored arrays with named axes in NetCDF 4."""
    arrays = stored_arrays(result)
    if not arrays:
        array_names = ", ".join(result.study.execution.arrays)
        why = (
            f"no evaluation returned any of {array_names}"
            if array_names
            else "name some in the study: execution: {arrays: [...]}"
        )
        raise ExportError(f"{result.path}: no arrays are kept, so there is nothing for NetCDF; {why}")
    file = folder / f"{prefix}arrays.nc"
    try:
        with _replacing(file) as partial:
            write_arrays(result, arrays, partial, facts(result))
    except ImportError as error:
        raise _missing("NetCDF", error) from None
    return [file]
