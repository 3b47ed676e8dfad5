"""Single faults put into the code are noticed by the tests of its behaviour.

Run with ``python -m pytest -m mutations -n 2 --dist load tests/mutations``: each fault is put into a copy of the
project, where the tests listed with it must fail.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from mutation_cases import ROOT, listed_faults

FAULTS = listed_faults()
AREAS = sorted({fault.area for fault in FAULTS})
#: What the tests of the list need of the project.
NEEDED = (
    "designopt", "plugins", "tests", "studies", "docs", "results/reference", "results/benchmarks", "pyproject.toml",
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "mkdocs.yml", "LICENSE", "NOTICE", "CITATION.cff",
)  # fmt: skip
#: Maximum duration of the tests of one fault (s): code that never ends with a fault is noticed by its users, too.
LIMIT = 180
#: Exit code of pytest for failed tests. Others mean that the list names tests that do not exist or cannot be collected.
TESTS_FAILED = 1

RunTests = Callable[..., tuple[int | None, str]]


def test_each_listed_fault_can_be_put_into_the_code() -> None:
    for fault in FAULTS:
        fault.code((ROOT / fault.file).read_text("utf-8"))
        assert fault.old != fault.new, fault.name
        assert fault.before in ("", "killed", "survived"), fault.name


def test_listed_faults_have_different_names() -> None:
    assert [name for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1] == []


def test_the_tests_of_each_listed_fault_exist() -> None:
    for fault in FAULTS:
        assert fault.tests, fault.name
        for test in fault.tests:
            file, *names = test.split("::")
            text = (ROOT / file).read_text("utf-8")
            assert not names or re.search(rf"^\s*def {names[-1].partition('[')[0]}\(", text, re.MULTILINE), test


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, the same for all faults."""
    folder = tmp_path_factory.mktemp("mutated") / "project"
    for name in NEEDED:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.study"))
        elif source.exists():
            shutil.copy2(source, target)
    return folder


@pytest.fixture(scope="module")
def run_tests(copy: Path) -> RunTests:
    """A function that runs tests in the copy; returns the exit code of pytest (None beyond `limit`) and its output."""

    def run_in_copy(*arguments: str, limit: float) -> tuple[int | None, str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
        environment["PYTHONPATH"] = os.pathsep.join([str(copy), str(copy / "plugins")])
        environment.setdefault("DESIGNOPT_SHARED", str(ROOT.parent / "shared"))
        command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", "--tb=line"]
        command += [f"--basetemp={copy.parent / 'temporary'}", *arguments]
        child = subprocess.Popen(
            command,
            cwd=copy,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return None, child.communicate()[0]
        return child.returncode, output

    return run_in_copy


@pytest.mark.mutations
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("area", AREAS)
def test_the_listed_tests_pass_without_a_fault(area: str, run_tests: RunTests) -> None:
    tests = sorted({test for fault in FAULTS if fault.area == area for test in fault.tests})
    code, output = run_tests(*tests, limit=3500)
    assert code == 0, output


@pytest.mark.mutations
@pytest.mark.timeout(LIMIT + 60)
@pytest.mark.parametrize(
    "number",
    [pytest.param(i, id=fault.name) for i, fault in enumerate(FAULTS)],
)
def test_a_single_fault_is_noticed(
    number: int, copy: Path, run_tests: RunTests, record_property: Callable[[str, object], None]
) -> None:
    fault = FAULTS[number]
    file = copy / fault.file
    text, times = file.read_text("utf-8"), file.stat()
    file.write_text(fault.code(text), "utf-8")
    # Python compares seconds and sizes of sources with its caches: each fault has its own second.
    os.utime(file, (number + 1, number + 1))
    began = time.monotonic()
    try:
        code, output = run_tests("-x", *fault.tests, limit=LIMIT)
    finally:
        file.write_text(text, "utf-8")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert code in (None, 0, TESTS_FAILED), f"the tests of the fault cannot be run: {output}"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    row = {
        "area": fault.area,
        "fault": fault.name,
        "before": fault.before,
        "result": "survived" if code == 0 else "killed",
        "killed_by": failed[1] if failed else "" if code == 0 else f"limit of {LIMIT} s",
        "seconds": f"{time.monotonic() - began:.1f}",
    }
    for column, value in row.items():
        record_property(column, value)
    assert code != 0, f"no test fails although {fault.name} ({fault.file})\n{output}"
