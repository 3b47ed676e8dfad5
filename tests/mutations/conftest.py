"""The table of a mutation run: printed at its end, written with ``--mutations-table FILE``."""

import csv
from pathlib import Path

import pytest

#: Columns of the table: area and name of the fault, its result with the former tests (see `mutation_cases`) and with
#: the present ones, the test that failed, duration of the tests (s).
COLUMNS = ("area", "fault", "before", "result", "killed_by", "seconds")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutations-table", type=Path, help="write the results of -m mutations to this CSV file")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    rows = [dict(report.user_properties) for report in reports if getattr(report, "when", "") == "call"]
    rows = sorted((row for row in rows if "fault" in row), key=lambda row: (row["area"], row["fault"]))
    if not rows:
        return
    killed = sum(row["result"] == "killed" for row in rows)
    terminalreporter.write_line(f"{killed} of {len(rows)} faults killed")
    for row in rows:
        if row["result"] == "survived":
            terminalreporter.write_line(f"survived: {row['area']}: {row['fault']}")
    if file := config.getoption("--mutations-table"):
        with file.open("w", newline="", encoding="utf-8") as stream:
            table = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
