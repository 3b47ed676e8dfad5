"""Judges broken study files, ``fuzzing.py FIRST COUNT``; the last line of its output is the verdict as JSON.

Ends with a traceback and the file when anything but `StudyError` comes of one, or when a message is not fit to be read.
"""

import faulthandler
import json
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from conftest import BASE, FILES, FULL
from mutations import mutated

from designopt.problem import Problem
from designopt.study.language.errors import StudyError, render_json, render_text
from designopt.study.load import study_from_text

STUDIES = Path(__file__).parents[3] / "studies"


def bases() -> list[str]:
    """The bundled studies, and two that use every section."""
    return [*(path.read_text(encoding="utf-8") for path in sorted(STUDIES.glob("*.yaml"))), BASE, FULL]


def fit_to_be_read(error: StudyError, text: str) -> None:
    """Every mistake has a sentence, and a place within the file."""
    assert error.issues
    lines = len(text.splitlines()) + 1
    for issue in error.issues:
        assert issue.message, issue
        assert "\n" not in issue.message, issue
        assert "function-" not in issue.path + issue.message, issue
        assert len(issue.message) < 1000, issue
        assert issue.file == "fuzzed.yaml", issue
        assert issue.line is not None, issue
        assert 1 <= issue.line <= lines, issue
        assert issue.column is not None, issue
        assert 1 <= issue.column <= len(issue.source_line) + 1 or not issue.source_line, issue
        assert issue.end_column > issue.column, issue
    assert len(render_text(error.issues)) < 1_000_000
    render_json(error.issues)


def memory() -> float:
    """Largest resident size of this process so far, MB.

    Linux counts in ru_maxrss also what the process was before it became this program: a copy of the one that tests.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return float(line.split()[1]) / 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def judge(text: str) -> bool:
    """Whether the file is refused."""
    try:
        study_from_text(text, "fuzzed.yaml", files=FILES, problem_of=Problem.from_study)
    except StudyError as error:
        fit_to_be_read(error, text)
        return True
    return False


def main(first: int, count: int) -> None:
    """Judge the broken files with the numbers from `first` on."""
    faulthandler.dump_traceback_later(600 + count, exit=True)
    originals = bases()
    for text in originals:
        judge(text)
    judge("study: a\nspace: {x: [1 parsec, 2 furlong]}\n")  # loads pint
    judge(FULL.replace("use: test_sampler, count: 3, jitter: true", "use: sobol, count: 3"))  # loads scipy
    start = before = memory()
    refused, slowest, slowest_file, grown_file, most_grown = 0, 0.0, -1, -1, 0.0
    for number in range(first, first + count):
        text = mutated(originals, number)
        began = time.process_time()
        try:
            refused += judge(text)
        except BaseException:
            print(text, f"\n^^^ file {number}", flush=True)
            raise
        took = time.process_time() - began
        if took > slowest:
            slowest, slowest_file = took, number
        used = memory()
        if used - before > most_grown:
            most_grown, grown_file = used - before, number
        before = used
    verdict = {
        "files": count,
        "refused": refused,
        "slowest": slowest,
        "slowest_file": slowest_file,
        "grown": before - start,
        "peak": before,
        "grown_file": grown_file,
    }
    print(json.dumps(verdict))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
