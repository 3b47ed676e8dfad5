"""Plugin files with modules beside them, input files, and commands that name them, from any folder."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import designopt, process

from designopt import open_store
from designopt.plugin import InputFile, load_file, with_modules

HELPERS = {
    "sections.py": "from materials import DENSITY\n\ndef mass(t):\n    return DENSITY * t\n",
    "materials.py": "DENSITY = 0.8\n",
    "unrelated.py": "raise RuntimeError('not imported')\n",
}
MODEL = """
from typing import TypedDict
import math
from designopt import model
import sections

class Out(TypedDict):
    mass: float

@model("plate", version=1)
def plate(design, scenario) -> Out:
    return {"mass": sections.mass(math.fabs(design["t"]))}
"""
STUDY = """\
study: plate
model: {use: plate}
space: {t: [2, 8]}
objectives: [{minimize: mass}]
solver: {use: full_factorial, levels: 5}
execution: {executor: serial}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    for name, text in {**HELPERS, "plate.py": MODEL, "plate.yaml": STUDY}.items():
        (project / name).write_text(text)
    return project


def test_imported_modules_beside_a_plugin_file_come_before_it(folder):
    file = str(folder / "plate.py")
    entries = with_modules(file, MODEL.encode())
    assert [name for name, _ in entries] == [f"{file}|materials", f"{file}|sections", file]
    assert entries[0][1].decode() == HELPERS["materials.py"]
    assert with_modules(file, b"import nowhere, json\ndef (") == [(file, b"import nowhere, json\ndef (")]


def test_two_plugin_files_have_modules_of_the_same_name(folder, tmp_path):
    second_folder = tmp_path / "other"
    shutil.copytree(folder, second_folder)
    (second_folder / "materials.py").write_text("DENSITY = 2.0\n")
    masses = []
    for project in (folder, second_folder, folder):
        for entry in with_modules(str(project / "plate.py"), (project / "plate.py").read_bytes()):
            load_file(*entry)
        from designopt.plugin import find

        masses.append(find("model", "plate").target({"t": 1.0}, {})["mass"])
    assert masses == [0.8, 2.0, 0.8]
    with pytest.raises(ModuleNotFoundError):
        import materials  # noqa: F401


def test_a_module_that_fails_is_named_with_its_line(folder):
    (folder / "materials.py").write_text("\nDENSITY = 1 / 0\n")
    failed = designopt(folder, "run", "plate.yaml", "--plugin", "plate.py")
    assert failed.returncode == 2
    assert "materials.py:2: ZeroDivisionError" in failed.stderr
    (folder / "materials.py").unlink()
    missing = designopt(folder, "run", "plate.yaml", "--plugin", "plate.py")
    assert "sections.py:1: ModuleNotFoundError: No module named 'materials'" in missing.stderr
    (folder / "materials").mkdir()
    in_folder = designopt(folder, "run", "plate.yaml", "--plugin", "plate.py")
    assert "; materials beside it is a folder, and files alone are taken along: write materials.py" in in_folder.stderr


def test_workers_have_the_modules_and_a_change_of_one_is_reported(folder):
    ran = process(folder, "run", "plate.yaml", "--plugin", "plate.py", "--executor", "dask", "--workers", "1")
    assert ran.returncode == 0, ran.stderr
    result = open_store(folder / "results/plate.study")
    assert result.outcomes.figures["mass"][:, 0].tolist() == [0.8 * t for t in result.outcomes.X[:, 0]]
    (folder / "materials.py").write_text("DENSITY = 0.80\n")
    changed = designopt(folder, "resume", "results/plate.study", "--plugin", "plate.py")
    assert changed.returncode == 0, changed.stderr
    assert "materials.py differs from the file at the start of the run" in changed.stderr


def printed_commands(text: str) -> list[list[str]]:
    """The commands with a store in `text`, as they can be given."""
    lines = re.findall(r"designopt (?:show|resume) [^<\n]*?--plugin \S+", text)
    return [shlex.split(line)[1:] for line in lines]


def test_commands_of_a_page_and_of_a_store_work_from_another_folder(folder):
    assert designopt(folder, "run", "plate.yaml", "--plugin", "plate.py").returncode == 0
    outside = folder.parent
    design_page = designopt(outside, "show", "project/results/plate.study/0")
    commands = printed_commands(design_page.stdout)
    assert commands == [["show", "project/results/plate.study/0", "--plugin", "project/plate.py"]]
    for command in [*commands, ["resume", "project/results/plate.study", "--plugin", "project/plate.py"]]:
        completed = designopt(outside, *command)
        assert completed.returncode == 0, completed.stderr
    alone = designopt(outside, "resume", "project/results/plate.study")
    assert alone.returncode == 4
    assert "designopt resume project/results/plate.study --plugin project/plate.py" in alone.stderr
    (folder / "plate.py").rename(folder / "moved.py")
    gone = designopt(folder, "resume", "results/plate.study")
    assert "--plugin plate.py" in gone.stderr or "--plugin project/plate.py" in gone.stderr


def test_a_store_is_rescored_in_another_process_with_the_plugin_files_of_its_run(folder):
    ran = process(folder, "run", "plate.yaml", "--plugin", "plate.py")
    assert ran.returncode == 0, ran.stderr
    code = """
import designopt
from designopt.study.language.errors import StudyError
change = ["objectives=[{name: half, minimize: mass / 2}]"]
try:
    designopt.open_store("results/plate.study").with_changes(change)
except StudyError as error:
    print(error.__notes__)
store = designopt.open_store("results/plate.study", plugin_files=["plate.py"])
print(store.with_changes(change).outcomes.objectives.min() / store.outcomes.objectives.min())
"""
    completed = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    note, ratio = completed.stdout.splitlines()
    call = "open_store('results/plate.study', plugin_files=['plate.py'])"
    assert f"The run used plate.py, which may be needed here too: {call}" in note
    assert float(ratio) == 0.5


def test_an_input_file_is_its_content():
    a, b = InputFile("a.csv", b"1,2\n"), InputFile("b.csv", b"1,2\n")
    assert a.digest == b.digest
    assert len(a.digest) == 32
    assert a.digest != InputFile("a.csv", b"1,3\n").digest
    assert "1,2" not in repr(a)


def test_a_byte_order_mark_is_not_text():
    assert InputFile("a.csv", b"\xef\xbb\xbfx\n").text() == "x\n"
    with pytest.raises(UnicodeDecodeError):
        InputFile("a.bin", b"\xff\xfe").text()
