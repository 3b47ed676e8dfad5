"""Studies for the tests of runs, a progress display that remembers, and journals as text."""

import contextlib
import os
import signal
import sqlite3
from pathlib import Path

from designopt.plugin import Use, find, load_file
from designopt.store.journal import schema
from designopt.store.journal.reader import JournalReader
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import Budget, DesignVariable, Execution, Objective, Scenario, Stage, StudyDefinition

PLUGINS = Path(__file__).with_name("plugins.py")


def use(kind, name, /, **settings):
    load_file(str(PLUGINS), PLUGINS.read_bytes())
    return Use(find(kind, name), settings)


def make_study(model="bowl", *, minimize=("height",), low=-2.0, high=2.0, names=("a", "b"), stages=None, **fields):
    """A study of `model` with real parameters `names` and one stage that walks."""
    settings = fields.pop("settings", {})
    scenarios = fields.pop("scenarios", ({},))
    execution = fields.pop("execution", {"executor": "serial"})
    return StudyDefinition(
        name="test",
        model=use("model", model, **settings),
        space=tuple(DesignVariable(n, "real", low, high) for n in names),
        objectives=tuple(
            Objective(f"f{i}", Expression.parse(text), "minimize", use("aggregation", "worst"))
            for i, text in enumerate(minimize)
        ),
        stages=stages or (Stage("walk", use("solver", "walk")),),
        scenarios=tuple(Scenario(f"s{i}", values) for i, values in enumerate(scenarios)),
        execution=Execution(**execution),
        **fields,
    )


def listed(values, *, batch=0, name="list", **budget):
    return Stage(name, use("solver", "listed", values=[float(v) for v in values], batch=batch), Budget(**budget))


def dump(result):
    """What two runs of one study must have in common, from the store of `result`."""
    journal = JournalReader.read(result.path, result.problem)
    try:
        return journal.dump()
    finally:
        journal.close()


def table(result, name):
    """The records of a table of the journal."""
    journal = JournalReader.read(result.path, result.problem)
    try:
        return journal.records(name)
    finally:
        journal.close()


def evaluated(result, column):
    """What the journal has in this column of each evaluation."""
    journal = JournalReader.read(result.path, result.problem)
    try:
        return [value for (value,) in journal.evaluations(column)]
    finally:
        journal.close()


def rewrite(path, *statements):
    """Change the journal of the store `path` by SQL as if it had been written so: its digests and counts fit."""
    with contextlib.closing(sqlite3.connect(path / "journal.db")) as db:
        for statement in statements:
            db.execute(statement)
        db.create_function("digest", -1, lambda *record: schema.digest(record))
        for table in schema.COUNTED:
            db.execute(f"UPDATE total SET count = (SELECT COUNT(*) FROM {table}) WHERE name = '{table}'")
        for table in schema.DIGESTED:
            columns = [f'"{column[1]}"' for column in db.execute(f"PRAGMA table_info({table})")][:-1]
            db.execute(f"UPDATE {table} SET digest = digest({', '.join(columns)})")
        db.commit()


def damage(path, *statements):
    """Change the journal of the store `path` by SQL alone: its digests and counts no longer fit."""
    with contextlib.closing(sqlite3.connect(path / "journal.db", isolation_level=None)) as db:
        for statement in statements:
            assert db.execute(statement).rowcount, statement


class Recorder:
    """A progress display that records its calls, and passes them to `at_update` and `at_event`."""

    def __init__(self, at_update=None, at_event=None):
        self.at_update, self.at_event = at_update, at_event
        self.snapshots = []
        self.events = []
        self.beginnings = []
        self.closed = False

    def update(self, snapshot):
        self.snapshots.append(snapshot)
        if self.at_update is not None:
            self.at_update(snapshot)

    def event(self, kind, text):
        (self.beginnings if kind == "run" else self.events).append((kind, text))
        if self.at_event is not None:
            self.at_event(kind, text)

    def close(self):
        self.closed = True


def stopping(event):
    """A display that requests the end of the run at each event of this kind, as Ctrl-C does."""
    return Recorder(at_event=lambda kind, text: kind == event and os.kill(os.getpid(), signal.SIGINT))
