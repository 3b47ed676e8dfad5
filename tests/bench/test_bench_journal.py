"""Cost of records: resume and report of many evaluations, the coordinator's share of a design, the first result.

Processor time beside that of SQLite, which reads or writes the same rows with one checksum each, in turns. Run with:
pytest -m bench -s.
"""

import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from designopt.run.runner import run_study
from designopt.store.journal.schema import digest, statements, with_digests
from designopt.study.study import Stage

sys.path.insert(0, str(Path(__file__).parent))
from throughput import cases

pytestmark = pytest.mark.bench

COUNT, MILLION, CHUNK = 200_000, 1_000_000, 4096


def study(count, **execution):
    stage = Stage("s", cases.use("solver", "random", samples=count))
    execution = execution or {"executor": "serial"}
    return cases.make_study(stages=(stage,), minimize=("height", "slope"), execution=execution)


def processor_time(function):
    begin = time.process_time()
    returned = function()
    return time.process_time() - begin, returned


def read_with_checksums(store):
    """All designs and evaluations of a journal, as rows whose checksums are verified one by one."""
    with closing(sqlite3.connect(store / "journal.db")) as db:
        tables = [db.execute(f"SELECT * FROM {table}").fetchall() for table in ("design", "evaluation")]
    assert all(digest(row[:-1]) == row[-1] for rows in tables for row in rows)
    return tables


def command(folder, *arguments):
    """Processor time (s) and peak memory (MB) of a command, with its child processes."""
    script = (
        "import json, resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, capture_output=True);"
        "r = resource.getrusage(resource.RUSAGE_CHILDREN); print(json.dumps([r.ru_utime + r.ru_stime, r.ru_maxrss]))"
    )
    argv = [sys.executable, "-c", script, sys.executable, "-m", "designopt", *arguments]
    answer = subprocess.run([*argv, "--plugin", str(cases.PLUGINS)], cwd=folder, check=True, capture_output=True)
    seconds, kilobytes = json.loads(answer.stdout)
    return seconds, kilobytes / 1024.0


def test_a_resume_costs_little_more_than_reading_the_rows_once(tmp_path, record_property):
    run_study(study(COUNT), tmp_path / "s")
    pairs = []
    for _ in range(5):
        reading, _ = processor_time(lambda: read_with_checksums(tmp_path / "s"))
        resume, result = processor_time(lambda: run_study(study(COUNT), tmp_path / "s", resume=True))
        evaluations, _ = processor_time(lambda result=result: result.counts["evaluations"])
        pairs.append((resume + evaluations, reading))
    resume, reading = (statistics.median(some) for some in zip(*pairs, strict=True))
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    by_command = min(command(tmp_path, "resume", "s")[0] for _ in range(2))
    print(
        f"\nresume of {COUNT}: {resume:.2f} s of processor time, {ratio:.2f} times the reading of all rows with one"
        f" checksum each ({reading:.2f} s); the command, with its report, {by_command:.2f} s"
    )
    record_property("resume of 200 000 / reading of all rows with one checksum each", ratio)
    record_property("resume of 200 000 with its result, s of processor time", resume)
    record_property("designopt resume of 200 000, s of processor time", by_command)
    assert ratio < 3.0


def write_rows(rows_of_tables, folder):
    """Insert rows of designs and evaluations, with their checksums, in transactions of a chunk."""
    with closing(sqlite3.connect(folder / "rows.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        texts = statements(["a", "b"])
        for table in ("design", "evaluation"):
            db.execute(texts[table])
        for begin in range(0, len(rows_of_tables[0]), CHUNK):
            db.execute("BEGIN")
            for table, rows in zip(("design", "evaluation"), rows_of_tables, strict=True):
                chunk = with_digests([row[:-1] for row in rows[begin : begin + CHUNK]])
                places = ",".join("?" * len(chunk[0]))
                db.executemany(f"INSERT INTO {table} VALUES ({places}) ON CONFLICT DO NOTHING", chunk)
            db.execute("COMMIT")
    (folder / "rows.db").unlink()


def test_the_coordinator_of_random_designs_costs_little_more_than_their_rows(tmp_path, record_property):
    """Through two workers; the start is left out by the difference of two sizes."""
    few, costs = 2000, []
    for i in range(3):
        spent = []
        for count in (few, COUNT):
            path = tmp_path / f"{i}-{count}"
            spent.append(
                processor_time(lambda c=count, p=path: run_study(study(c, executor="dask", workers=2), p).counts)[0]
            )
        rows = read_with_checksums(tmp_path / f"{i}-{COUNT}")
        writing, _ = processor_time(lambda rows=rows: write_rows(rows, tmp_path))
        costs.append(((spent[1] - spent[0]) / (COUNT - few), writing / COUNT))
        for count in (few, COUNT):
            shutil.rmtree(tmp_path / f"{i}-{count}")
    cost, least = (statistics.median(some) for some in zip(*costs, strict=True))
    ratio = statistics.median(ours / theirs for ours, theirs in costs)
    print(f"\nrandom designs: {1e6 * cost:.1f} us of the coordinator each, their rows in SQLite {1e6 * least:.1f} us")
    record_property("coordinator / writing of the rows by SQLite, random designs", ratio)
    record_property("coordinator, us a random design", 1e6 * cost)
    assert ratio < 3.0


def test_the_report_of_a_million_evaluations_stays_below_a_gigabyte(tmp_path, record_property):
    run_study(study(MILLION), tmp_path / "s")
    seconds, megabytes = command(tmp_path, "report", "s")
    print(f"\nreport of {MILLION}: {seconds:.1f} s of processor time, {megabytes:.0f} MB")
    record_property("report of a million, s of processor time", seconds)
    record_property("report of a million, MB", megabytes)
    assert seconds < 15.0
    assert megabytes < 1000.0


def first_result(tmp_path, name, executor, workers):
    """Wall time (s) from the call of a run to its first result, in a process of its own."""
    script = [sys.executable, str(Path(__file__).with_name("throughput.py")), f"first-{executor}", str(tmp_path / name)]
    answer = subprocess.run([*script, str(workers)], check=True, capture_output=True, text=True)
    return json.loads(answer.stdout.splitlines()[-1])["seconds"]


def test_the_first_result_does_not_wait_for_sixteen_workers(tmp_path, record_property):
    pairs = [
        (first_result(tmp_path, f"dask{i}", "dask", 16), first_result(tmp_path, f"serial{i}", "serial", 1))
        for i in range(5)
    ]
    workers, serial = (statistics.median(some) for some in zip(*pairs, strict=True))
    print(f"\nfirst result with 16 workers after {workers:.2f} s, serial {serial:.2f} s ({os.cpu_count()} cores)")
    record_property("first result with 16 workers, s of wall time", workers)
    record_property("first result of serial, s of wall time", serial)
    assert workers < 1.2
