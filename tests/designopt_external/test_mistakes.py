"""Mistakes in studies of external programs: each message says what is wrong, where, and what to write instead."""

from pathlib import Path

import pytest

import designopt
from designopt.study.language.errors import StudyError

SAG = "{text: out.dat, after: displacements, column: 3, take: largest, unit: m}"
MASS = "{json: out.json, path: results.mass, unit: kg}"
RUN = "run: [cantilever, beam.inp]"
INPUTS = "inputs: {width: m, height: m}"
ENDS = "diverged: {text: '\\*ERROR: .*'}"
EXECUTION = "{executor: serial}"

#: A part of the study, its replacement, and the message; the position is that of the replacement.
MISTAKES = [
    (RUN, "run: [./cantilever, beam.inp]", "write its name alone, cantilever, and give its path on the command line"),
    (RUN, "run: [cantilever beam.inp]", "and the arguments as a list: [cantilever, beam.inp]"),
    (RUN, "run: cantilever beam.inp", "expected a list, not the text 'cantilever beam.inp'"),
    (RUN, "run: []", "is empty; write the name of the program, as in [ccx, bracket]"),
    (RUN, "run: [cantilever, beam.inp, 3]", "expected a word, not the number 3; put quotes around it"),
    (RUN, "run: [cantilever, '{{ widht }}']", "argument 1:1: 'widht' is not an input; did you mean 'width'?"),
    (RUN, "arguments: [cantilever, beam.inp]", "'run' is missing (name of the program, and its arguments"),
    (INPUTS, "inputs: {width: m, height: metre_}", "unknown unit 'metre_'"),
    (INPUTS, "inputs: {width: m}", "beam.inp.j2:2: 'height' is not an input; inputs are width, force"),
    (INPUTS, "inputs: {width: m, height: m, depth: m}", "no template, argument or parameters file uses it"),
    (INPUTS, "inputs: {width: kg, height: m}", "incompatible units"),
    (INPUTS, "inputs: {width: m, height: m, force: N}", "is an input of the design too; remove one of them"),
    ("conditions: {force: N}", "conditions: {force: kg}", "incompatible units"),
    ("templates: [beam.inp.j2]", "templates: [beam.j2]", "file 'beam.j2' does not exist; did you mean 'beam.inp.j2'?"),
    ("templates: [beam.inp.j2]", "templates: beam.inp.j2", "expected a list, not the word 'beam.inp.j2'"),
    ("templates: [beam.inp.j2]", "templates: [beam.inp.j2, beam.inp.j2]",
     "would be written as 'beam.inp', like 'beam.inp.j2'"),
    ("templates: [beam.inp.j2]", "templates: [../beam.inp.j2]", "lies outside the study's folder"),
    ("templates: [beam.inp.j2]", "templates: [bad_syntax.j2]", "bad_syntax.j2:2: unexpected end of template"),
    ("templates: [beam.inp.j2]", "templates: [bad_filter.j2]",
     "bad_filter.j2:1: there is no filter 'fixd'; did you mean 'fixed'?"),
    ("templates: [beam.inp.j2]", "aprepro: [power.inp]", "power.inp:1: a power is written **, not ^"),
    ("templates: [beam.inp.j2]", "template: [beam.inp.j2]", "unknown key 'template'; did you mean 'templates'?"),
    (SAG, "{text: out.dat, after: displacements, unit: m}", "'column' is missing (number of the field, from 1)"),
    (SAG, "{text: out.dat, after: displacements, column: vz}",
     "a text has columns by number, not 'vz'; names are for csv"),
    (SAG, "{text: out.dat, after: 'disp(', column: 3}", "'disp(' is not a regular expression: missing ), unterminated"),
    (SAG, "{text: out.dat, pattern: 'sag'}", "has 0 groups; put (...) around the number alone"),
    (SAG, "{text: out.dat, column: 0}", "counts from 1, not 0"),
    (SAG, "{text: out.dat, column: 3, row: 0}", "counts from 1, or from the end: -1 is the last"),
    (SAG, "{text: out.dat, column: 3, row: 1, take: max}", "'row' selects one number already"),
    (SAG, "{text: out.dat, column: 3, take: maximum}", "'maximum' is not one of first, last, max, min"),
    (SAG, "{csv: out.csv, json: out.json}", "a result stands in one file; remove 'csv' or 'json'"),
    (SAG, "{csv: out.csv}", "'column' is missing: it says where the number stands in 'out.csv'"),
    (SAG, "{csv: out.csv, column: sag, path: a.b}", "is for json; a result in csv has column, row, take"),
    (SAG, "{csv: /tmp/out.csv, column: sag}", "'/tmp/out.csv' is not a file in the folder of the evaluation"),
    (SAG, "{unit: m}", "its file is missing: give csv, json, text or dakota with a file name"),
    (SAG, "{csv: out.csv, column: sag, unit: mmm}", "unknown unit 'mmm'"),
    (SAG, "{cvs: out.csv, column: sag}", "unknown key 'cvs'; did you mean 'csv'?"),
    (MASS, "{json: out.json}", "'path' is missing: it says where the number stands in 'out.json'"),
    (MASS, "{dakota: results.out}", "'response' is missing"),
    (ENDS, "diverged: {file: log.txt}", "needs 'exit' (exit codes) or 'text'"),
    (ENDS, "diverged: {text: '*ERROR'}", "'*ERROR' is not a regular expression: nothing to repeat"),
    (ENDS, "diverged: {exit: three}", "expected a list, not the word 'three'"),
    (ENDS, "divergence: {exit: [3]}", "unknown key 'divergence'; did you mean 'diverged'?"),
    ("  ends:", "  environment: [LD_PRELOAD=x.so]\n  ends:", "a study cannot set LD_PRELOAD"),
    ("  ends:", "  environment: ['MY VAR']\n  ends:", "'MY VAR' is not a variable; write NAME or NAME=value"),
    ("  ends:", "  stdin: beam.in\n  ends:", "no input file is named 'beam.in'; did you mean 'beam.inp'?"),
    ("  ends:", "  arrays: {line: {csv: out.csv, column: sag}}\n  ends:", "'axis' is missing (name of the axis"),
    ("  ends:", "  arrays: {line: {csv: out.csv, column: sag, axis: x, take: max}}\n  ends:",
     "an array contains all numbers"),
    (EXECUTION, "{at_most: {ccx: 1}}", "the model runs no program 'ccx': it runs cantilever"),
    (EXECUTION, "{retry: {when: no licence, times: 5}}", "'wait' is missing (time before each, in s)"),
    ("width: [10 mm", "widht: [10 mm", "has no design input 'widht'; did you mean 'width'?"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "mistake", "message"), MISTAKES, ids=[mistake[1][:40] for mistake in MISTAKES])
def test_a_mistake_is_reported_at_its_place_with_the_way_out(
    folder: Path, part: str, mistake: str, message: str
) -> None:
    (folder / "bad_syntax.j2").write_text("{{ width }}{{ height }}\n{{ force")
    (folder / "bad_filter.j2").write_text("{{ width | fixd(8) }}\n")
    (folder / "power.inp").write_text("{width^2}\n")
    text = (folder / "study.yaml").read_text()
    assert text.count(part) == 1
    (folder / "study.yaml").write_text(text.replace(part, mistake))
    with pytest.raises(StudyError) as raised:
        designopt.load("study.yaml")
    issues = [issue for issue in raised.value.issues if message in issue.message]
    assert issues, [issue.message for issue in raised.value.issues]
    assert issues[0].line is not None
    assert issues[0].column is not None


def test_a_condition_or_parameter_that_no_input_file_contains_is_a_mistake(folder: Path) -> None:
    (folder / "beam.inp.j2").write_text("no inputs at all")
    text = (folder / "study.yaml").read_text()
    text = text.replace("  conditions: {force: N}\n", "").replace("force: 1 kN", "force: 1000")
    (folder / "study.yaml").write_text(
        text.replace(INPUTS, "inputs: {}").replace("10 mm", "10").replace("100 mm", "100")
    )
    (folder / "study.yaml").write_text((folder / "study.yaml").read_text().replace("[20 mm, 90 mm]", "[20, 90]"))
    with pytest.raises(StudyError) as raised:
        designopt.load("study.yaml")
    messages = {issue.path: issue.message for issue in raised.value.issues}
    assert "add it to model.inputs: {width: UNIT}" in messages["space.width"]
    assert "add it to model.conditions: {force: UNIT}" in messages["scenarios.0.force"]
