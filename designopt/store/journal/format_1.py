"""Stores of format 1: no digests, a row for each ask, and validation scenarios and programs among the numbers of
scenarios. They are read as if they had format 2; `rebuild` writes them so when their run goes on."""

from __future__ import annotations

import sqlite3

from designopt.problem import Problem
from designopt.store.journal.schema import names

#: Scenario numbers from here on were programs of the solver of stage 0, 1, ... of the study.
PROGRAMS = 1_000_000


def show_as_2(db: sqlite3.Connection, problem: Problem) -> None:
    """Lay views over the tables of `db`, for this connection, that look like those of format 2."""
    own = len(problem.scenarios)
    there = {name for (name,) in db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")}
    replaced = {
        "kind": f"CASE WHEN scenario >= {PROGRAMS} THEN 'program' WHEN scenario >= {own} THEN 'validation'"
        " ELSE 'scenario' END",
        "number": f"scenario - CASE WHEN scenario >= {PROGRAMS} THEN {PROGRAMS} WHEN scenario >= {own} THEN {own}"
        " ELSE 0 END",
    }
    columns = {
        "evaluation": ", ".join(f"{replaced.get(c, c)} AS {c}" for c in names("evaluation")),
        "point": "stage, ask, design, 1 AS count",
        "design": "*",
        **{name: ", ".join(names(name)) for name in ("session", "stage", "usage", "attempt", "event")},
    }
    for name in ("ending", "tell", "printed"):  # came later: a store without them holds nothing that they would tell
        columns[name] = ", ".join(names(name)) if name in there else ""
    for name, text in columns.items():
        nothing = ", ".join(f"NULL AS {c}" for c in names(name)) if not text else ""
        source = f"{text}, NULL AS digest FROM main.{name}" if text else f"{nothing}, NULL AS digest WHERE 0"
        db.execute(f"CREATE TEMP VIEW {name} AS SELECT {source}")
    db.execute("CREATE TEMP VIEW total AS SELECT NULL AS name, NULL AS count, NULL AS digest WHERE 0")
