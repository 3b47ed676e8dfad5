"""How long stores of many evaluations take to read: processor time of commands. Run with: pytest -m bench -s."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from designopt.run.runner import run_study
from designopt.study.study import Stage

sys.path.insert(0, str(Path(__file__).parent))
from throughput import cases

pytestmark = pytest.mark.bench

FEW, MANY = 100_000, 300_000


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Stores of so many trivial evaluations, two objectives each."""
    folder = tmp_path_factory.mktemp("stores")
    for count in (FEW, MANY):
        stage = Stage("s", cases.use("solver", "random", samples=count))
        study = cases.make_study(stages=(stage,), minimize=("height", "slope"), execution={"executor": "serial"})
        run_study(study, folder / f"{count}.study")
    return folder


def seconds(folder, command, count, *options):
    """Processor time of a command on the store of `count` evaluations, and of whatever it starts."""
    arguments = [command, f"{count}.study", "--plugin", str(cases.PLUGINS), *options]
    before = sum(os.times()[2:4])
    subprocess.run([sys.executable, "-m", "designopt", *arguments], cwd=folder, check=True, capture_output=True)
    return sum(os.times()[2:4]) - before


def test_the_report_of_three_hundred_thousand_evaluations_takes_less_than_five_seconds(stores, record_property):
    report_seconds = min(seconds(stores, "report", MANY) for _ in range(3))
    print(f"\nreport of {MANY} evaluations: {report_seconds:.2f} s of processor time")
    record_property("report of 300 000 evaluations, s of processor time", report_seconds)
    assert report_seconds < 5.0


@pytest.mark.parametrize(
    "command",
    [("show",), ("report",), ("report", "--export", "csv"), ("report", "--export", "parquet"), ("resume",)],
    ids=" ".join,
)
def test_commands_on_stores_grow_no_faster_than_the_stores(stores, command, record_property):
    name, *options = command
    few, many = (min(seconds(stores, name, count, *options) for _ in range(2)) for count in (FEW, MANY))
    label = " ".join(command)
    print(f"\n{label}: {few:.2f} s of {FEW} evaluations, {many:.2f} s of {MANY}")
    record_property(f"{label}: time of 300 000 evaluations / that of 100 000", many / few)
    record_property(f"{label}: s of processor time, 100 000 evaluations", few)
    assert many < 1.15 * MANY / FEW * few


def test_fifty_stores_are_listed_by_the_desk_in_a_second(tmp_path, record_property):
    """Processor time of the first reading; unchanged files are not read again."""
    from designopt.desk.folder import Folder

    stage = Stage("s", cases.use("solver", "random", samples=10_000))
    study = cases.make_study(stages=(stage,), minimize=("height", "slope"), execution={"executor": "serial"})
    run_study(study, tmp_path / "0.study")
    for i in range(1, 50):
        subprocess.run(["cp", "-r", str(tmp_path / "0.study"), str(tmp_path / f"{i}.study")], check=True)
    folder, looks = Folder(tmp_path), []
    for _ in range(2):
        before = time.process_time()
        stores, _ = folder.look()
        looks.append(time.process_time() - before)
        assert [store.evaluations for store in stores] == [10_000] * 50
    print(f"\n50 stores of 10 000 evaluations: listed in {looks[0]:.2f} s, again in {looks[1]:.3f} s")
    record_property("50 stores of 10 000 evaluations listed, s of processor time", looks[0])
    assert looks[0] < 1.0
    assert looks[1] < 0.2 * looks[0]
