"""The result of a benchmark: scores, tables, page."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from designopt.benchmarking.cells import Benchmark
from designopt.benchmarking.page import write_benchmark_page
from designopt.benchmarking.scores import BenchmarkScores, read_scores
from designopt.benchmarking.table import as_markdown, tables, write_records, write_tables

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class BenchmarkResult:
    """The scores of a benchmark's runs in `folder`, and by (problem, solver, seed) the `failures` of runs
    that failed."""

    folder: Path
    scores: BenchmarkScores
    failures: Mapping[tuple[str, str, int], str] = field(default_factory=dict)

    def __str__(self) -> str:
        """The table of medians in Markdown."""
        return as_markdown(tables(self.scores))

    def _repr_html_(self) -> str:
        """The table for notebooks."""
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_pandas(self) -> pandas.DataFrame:
        """One row for each run and number of designs: problem, solver, seed, evaluations, score, search_ms (ms per
        design). Needs pandas (``pip install 'designopt[export]'``)."""
        import pandas

        frame = pandas.DataFrame([asdict(record) for record in self.scores.records])
        frame.attrs["units"] = {"search_ms": "ms"}
        return frame

    def write(self, command: str = "") -> list[Path]:
        """Write the page (``report.html``), the table of medians (``table.csv``, ``.md``, ``.tex``) and that of all
        scores (``scores.csv``) into the folder; return the files. `command` repeats the benchmark. Raises `OSError`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        page = write_benchmark_page(self.scores, self.folder / "report.html", self.failures, command)
        rows = self.folder / "scores.csv"
        write_records(rows, self.scores.records)
        return [page, *write_tables(self.scores, self.folder), rows]


def read_result(benchmark: Benchmark, folder: Path, failures: Mapping[tuple[str, str, int], str]) -> BenchmarkResult:
    """The result of the runs in `folder` that are complete. Raises `StoreError`."""
    return BenchmarkResult(folder, read_scores(benchmark, folder), dict(failures))
