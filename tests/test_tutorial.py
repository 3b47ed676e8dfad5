"""The tutorial works as it is written: its files and commands, one after the other, in an empty folder.

Commands of designopt alone run in this process, those that need a shell or another program in a bash.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import command
import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text(encoding="utf-8")


def blocks(page: str) -> list[tuple[str, str, str]]:
    """Every block: its language, the file that it is (if any), and its text."""
    return re.findall(r'^```(\w+)(?: title="(.*?)")?\n(.*?)^```$', page, flags=re.DOTALL | re.MULTILINE)


BLOCKS = blocks(PAGE)

NUMBER = r"[-+]?[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?"


def pattern(line: str) -> str:
    """What a printed line has to match: its words, and numbers where it has numbers.

    Processors differ in the last digit of an exponential function, and a search goes another way from there.
    """
    words = [r"\s*".join(map(re.escape, part.split())) for part in re.split(NUMBER, line)]
    return r"\s*" + rf"\s*{NUMBER}\s*".join(words) + r"\s*"


def check_printed(expected: str, printed: str) -> None:
    lines = iter(printed.splitlines())
    for line in expected.splitlines():
        if line.strip() in ("", "..."):
            continue
        for output_line in lines:
            if re.fullmatch(pattern(line), output_line):
                break
        else:
            pytest.fail(f"the tutorial says that this is printed (in this order): {line}\nprinted was:\n{printed}")


def environment(site: Path) -> dict[str, str]:
    """One in which programs and packages of `site` are found, and those of this Python."""
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    modules = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PATH": programs, "PYTHONPATH": modules}


def typed(text: str, folder: Path, site: Path) -> str:
    """What the commands of a block print."""
    lines = [shlex.split(line) for line in text.splitlines()]
    if all(line[0] == "designopt" and not {"|", "||", "&&", ">"} & set(line) for line in lines):
        printed = ""
        for line in lines:
            completed = command.designopt(folder, *line[1:])
            assert completed.returncode == 0, f"{line}\n{completed.stdout}\n{completed.stderr}"
            printed += completed.stdout
        return printed
    isolation = " --no-build-isolation" if command.can_build_wheels() else ""
    commands = text.replace("pip install", f"pip install --target {shlex.quote(str(site))} --no-deps{isolation}")
    bash = ["bash", "-e", "-c", commands]
    process = subprocess.run(bash, cwd=folder, capture_output=True, text=True, timeout=300, env=environment(site))
    assert process.returncode == 0, f"{text}\n{process.stdout}\n{process.stderr}"
    assert "Traceback" not in process.stderr
    return process.stdout if "||" not in text else process.stderr + process.stdout


def play(page: str, folder: Path, site: Path) -> None:
    """Write the files, run the commands, compare what they print."""
    printed = ""
    for language, file, text in blocks(page):
        if file:
            (folder / file).write_text(text, encoding="utf-8")
        elif language == "sh":
            printed = typed(text, folder, site)
        else:
            check_printed(text, printed)


PACKAGE = PAGE.index("## A package that others install")


def test_every_command_up_to_the_package_works_and_prints_what_is_shown(tmp_path: Path) -> None:
    play(PAGE[:PACKAGE], tmp_path, tmp_path / "site")
    stores = {path.parent.name for path in tmp_path.glob("results/*/journal.db")}
    assert stores == {"by_hand.study", "landing.study"}
    assert (tmp_path / "results" / "landing.study" / "report-set.html").exists()


@pytest.mark.slow  # installs a package, as a test of `designopt new` does in the default run
def test_every_command_of_the_package_works_and_prints_what_is_shown(tmp_path: Path) -> None:
    play(PAGE[PACKAGE:], tmp_path, tmp_path / "site")
    assert (tmp_path / "results" / "lander.study" / "report.html").exists()


def test_the_first_program_has_thirty_lines_at_most() -> None:
    program = next(text for _, file, text in BLOCKS if file == "landing.py")
    assert len([line for line in program.splitlines() if line.strip()]) <= 30


def test_every_block_is_a_file_a_command_or_what_a_command_prints() -> None:
    kinds = [language if not file else "file" for language, file, _ in BLOCKS]
    assert set(kinds) == {"file", "sh", "text"}
    assert len(kinds) == PAGE.count("```") / 2
    for kind, before in zip(kinds[1:], kinds, strict=False):
        assert kind != "text" or before == "sh"


def test_a_line_that_is_not_printed_is_noticed() -> None:
    check_printed("best  1.5 kN\n...\nend", "x\nbest 2.25e3 kN\ny\nend")
    for wrong in ("worst  1.5 kN", "best 1.5 N", "end\nbest 1 kN"):
        with pytest.raises(pytest.fail.Exception, match="the tutorial says"):
            check_printed(wrong, "x\nbest 2.25e3 kN\ny\nend")
