"""Stores of format 1: no digests, one row per ask, and validation scenarios and programs encoded as scenario numbers.
They are read through views in format 2; `rebuild` converts them when their run continues."""

from __future__ import annotations

import sqlite3

from designopt.problem import Problem
from designopt.store.journal.schema import names

#: Scenario numbers from here on were programs of the solver of stage 0, 1, ... of the study.
PROGRAMS = 1_000_000


def show_as_2(db: sqlite3.Connection, problem: Problem) -> None:
    """Create temporary views over the tables of `db` in the form of format 2."""
    scenario_count = len(problem.scenarios)
    tables = {name for (name,) in db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")}
    replaced = {
        "kind": f"CASE WHEN scenario >= {PROGRAMS} THEN 'program' WHEN scenario >= {scenario_count} THEN 'validation'"
        " ELSE 'scenario' END",
        "number": f"scenario - CASE WHEN scenario >= {PROGRAMS} THEN {PROGRAMS} WHEN scenario >= {scenario_count}"
        f" THEN {scenario_count} ELSE 0 END",
    }
    columns = {
        "evaluation": ", ".join(f"{replaced.get(c, c)} AS {c}" for c in names("evaluation")),
        "point": "stage, ask, design, 1 AS count",
        "design": "*",
        **{name: ", ".join(names(name)) for name in ("session", "stage", "usage", "attempt", "event")},
    }
    for name in ("ending", "tell", "printed"):  # added later: without them there was nothing to record
        columns[name] = ", ".join(names(name)) if name in tables else ""
    for name, text in columns.items():
        nothing = ", ".join(f"NULL AS {c}" for c in names(name)) if not text else ""
        source = f"{text}, NULL AS digest FROM main.{name}" if text else f"{nothing}, NULL AS digest WHERE 0"
        db.execute(f"CREATE TEMP VIEW {name} AS SELECT {source}")
    db.execute("CREATE TEMP VIEW total AS SELECT NULL AS name, NULL AS count, NULL AS digest WHERE 0")
