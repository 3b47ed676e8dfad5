"""A small external program: a cantilever, computed by a script that is found on PATH."""

import os
import sys
from pathlib import Path

import pytest

#: Reads ``width height length force`` from its input file and writes sag and mass as text, CSV and JSON.
CANTILEVER = f"""#!{sys.executable} -SE
import json, os, signal, sys, time

deck = {{}}
for line in open(sys.argv[1]):
    words = line.replace("D", "E").split()
    if len(words) == 2:
        deck[words[0]] = float(words[1])
width, height, length, force = (deck[name] for name in ("width", "height", "length", "force"))
print("cantilever 1.0")
if height < 0.011:
    print("*ERROR: no convergence at height %g" % height)
    sys.exit(3)
if height > 0.099:
    os.kill(os.getpid(), signal.SIGSEGV)
inertia = width * height**3 / 12.0
sag = force * length**3 / (3.0 * 2.1e11 * inertia)
mass = 7850.0 * width * height * length
with open("out.dat", "w") as out:
    for step in (1, 2):
        out.write(" displacements (vx,vy,vz) for set TIP and time  %d.0\\n\\n" % step)
        out.write("  1  0.0 %.17E 0.0\\n  2  0.0 %.17E 0.0\\n\\n" % (0.5 * step * sag, -0.5 * step * sag))
with open("out.csv", "w") as out:
    out.write("x, sag\\n")
    for i in range(5):
        out.write("%r, %r\\n" % (length * i / 4, sag * i / 4))
json.dump({{"results": {{"mass": mass, "list": [1.0, mass]}}}}, open("out.json", "w"))
print("mass = %r kg" % mass)
print("job finished")
"""

STUDY = """\
study: cantilever
model:
  use: program
  run: [cantilever, beam.inp]
  inputs: {width: m, height: m}
  conditions: {force: N}
  templates: [beam.inp.j2]
  outputs:
    sag: {text: out.dat, after: displacements, column: 3, take: largest, unit: m}
    mass: {json: out.json, path: results.mass, unit: kg}
  ends:
    diverged: {text: '\\*ERROR: .*'}
space:
  width: [10 mm, 100 mm]
  height: [20 mm, 90 mm]
scenarios:
  - {name: nominal, force: 1 kN}
objectives: [{minimize: sag}, {minimize: mass}]
solver: {use: latin_hypercube, samples: 6}
execution: {executor: serial}
"""

TEMPLATE = """\
width {{ width }}
height {{ height | exponent }}
length 1.0
force {{ force | in("N") }}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the study and its template; the program is on PATH."""
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "cantilever"
    program.write_text(CANTILEVER)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "beam.inp.j2").write_text(TEMPLATE)
    monkeypatch.chdir(tmp_path)
    return tmp_path
