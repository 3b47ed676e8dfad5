"""Judges broken model files, ``broken_files.py FIRST COUNT``, as ``designopt validate`` does; prints a verdict as JSON.

Every file is the model file, geometry or companion of a study. Ends with a traceback and the file
when the command ends otherwise than with 0, or with 2 and the place of a mistake.
"""

import json
import random
import re
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path

from click.testing import CliRunner
from designopt_mechanics.anatomy.companion import BUNDLED

from designopt.cli import main as command

sys.path.insert(0, str(Path(__file__).parents[2] / "study" / "mistakes"))

from mutations import mutated

STUDY = """\
study: broken
model: {{use: {use}, {settings}}}
space: {{{parameter}: [0.05, 0.06]}}
objectives: [{{name: effort, minimize: {output}}}]
stages: [{{name: some, solver: {{use: sobol, samples: 4}}}}]
"""
ATTACHED = """\
springs:
  band: {points: [{on: ground, at: [0, 0.2, 0]}, {on: tibia, at: [0.1, -0.2, 0]}], stiffness: 5 N/mm, rest: 0.1}
contacts:
  heel: {on: tibia, at: [0, -0.4, 0], plane: {on: ground, at: [0, -0.9, 0], normal: [0, 1, 0]}, stiffness: 5e4}
loops:
  link: {coordinates: {knee: [-0.1, 2.2]}, unknowns: {rocker: 0}, equations: ["rocker + 0.3*sin(rocker) - knee"]}
"""
PLACE = re.compile(r"(broken\.(yaml|wrl|study)|study\.yaml):\d+:\d+: ")


def sources() -> list[tuple[str, str, str]]:
    """What is broken: kind of file, name of the bundled anatomy that it belongs to, and text."""
    model = files("designopt_mechanics.model_file").joinpath("models")
    knee, spine = (model.joinpath(f"{n}.yaml").read_text(encoding="utf-8") for n in ("knee_patella", "lumbo_pelvic"))
    cases = [("model", "", text) for text in (knee + ATTACHED, spine)] * 4
    linkage = Path(__file__).parents[1] / "mechanism" / "every_entry.yaml"
    cases += [("mechanism", "", linkage.read_text(encoding="utf-8"))] * 8
    patterns = files("designopt_mechanics.anatomy").joinpath("patterns")
    for name in BUNDLED:
        cases.append(("geometry", name, patterns.joinpath(f"{name}.wrl").read_text(encoding="utf-8")))
        cases.append(("companion", name, patterns.joinpath(f"{name}.yaml").read_text(encoding="utf-8")))
    return cases


def study(folder: Path, kind: str, name: str, text: str) -> Path:
    """A study in `folder` whose model takes the broken text as its file."""
    path = folder / "study.yaml"
    if kind == "mechanism":
        (folder / "broken.yaml").write_bytes(text.encode("utf-8", errors="replace"))
        settings = "file: broken.yaml, task: simulation"
        path.write_text(STUDY.format(use="mechanism", settings=settings, parameter="crank", output="stroke_max"))
        return path
    if kind == "model":
        (folder / "broken.yaml").write_bytes(text.encode("utf-8", errors="replace"))
        wire = "" if "quadriceps" in text else "wire: erector, coordinate: flexion"
        path.write_text(
            STUDY.format(use="wire_arms", settings=f"file: broken.yaml, {wire}", parameter="shift_x", output="effort")
        )
        return path
    patterns = files("designopt_mechanics.anatomy").joinpath("patterns")
    parts = {"geometry": f"{name}.wrl", "companion": f"{name}.yaml"}
    for file in parts.values():
        (folder / file).write_bytes(patterns.joinpath(file).read_bytes())
    broken = "broken.wrl" if kind == "geometry" else "broken.yaml"
    (folder / broken).write_bytes(text.encode("utf-8", errors="replace"))
    parts[kind] = broken
    settings = ", ".join(f"{setting}: {file}" for setting, file in parts.items())
    path.write_text(STUDY.format(use="wire_patterns", settings=settings, parameter="activation", output="effort"))
    return path


def judge(folder: Path, kind: str, name: str, text: str) -> bool:
    """Whether the file is refused."""
    result = CliRunner().invoke(command, ["validate", str(study(folder, kind, name, text))])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 2), result.output
    assert "Traceback" not in result.output, result.output
    assert result.exit_code == 0 or PLACE.search(result.output), result.output
    return result.exit_code == 2


def memory() -> float:
    """Largest resident size of this process so far, MB (0 where the system does not tell)."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((float(line.split()[1]) / 1024.0 for line in lines if line.startswith("VmHWM:")), 0.0)


def run(first: int, count: int) -> None:
    """Judge the broken files with the numbers from `first` on."""
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder, cases = Path(name_of_folder), sources()
        for kind, name, text in cases:
            assert not judge(folder, kind, name, text), (kind, name)
        start, refused, slowest, slowest_file = memory(), 0, 0.0, -1
        for number in range(first, first + count):
            kind, name, text = cases[random.Random(number).randrange(len(cases))]
            broken = mutated([text], number)
            began = time.process_time()
            try:
                refused += judge(folder, kind, name, broken)
            except BaseException:
                print(broken, f"\n^^^ file {number}, {kind} {name}", flush=True)
                raise
            took = time.process_time() - began
            if took > slowest:
                slowest, slowest_file = took, number
        verdict = {"files": count, "refused": refused, "slowest": slowest, "slowest_file": slowest_file}
        print(json.dumps(verdict | {"grown": memory() - start}))


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]))
