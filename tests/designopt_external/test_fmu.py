"""The model `fmu`: parameters, inputs over time, reductions; one instance serves all designs; failures."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from designopt_external.fmu.description import describe
from designopt_external.fmu.model import Fmu
from designopt_external.mujoco.specification import specification
from fmus import SOURCES, fmu, needs_fmus

import designopt
from designopt.api import Study
from designopt.cli import main
from designopt.plugin import CannotRun, InputFile
from designopt.study.language.errors import StudyError
from designopt.testing import check_model

pytestmark = needs_fmus

ALLOW = ["spring.fmu"]
STUDY = """\
study: spring
model:
  use: fmu
  file: spring.fmu
  outputs:
    travel: {variable: x2}
    stretch: {variable: STRETCH, take: largest}
space:
  spring_k: [100 N/m, 500 N/m]
objectives: [{minimize: stretch}]
solver: {use: latin_hypercube, samples: 4}
execution: {executor: serial}
"""
DESIGN = {"spring_k": 300.0}


@pytest.fixture(params=[2, 3])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def study(version: int = 2, *changes: tuple[str, str], **parts: Any) -> Study:
    """The study of an FMU in the current folder, with replaced parts of its text."""
    if not Path("spring.fmu").exists():
        fmu(Path("spring.fmu").absolute(), version, **parts)
    text = STUDY.replace("STRETCH", "spring.stretch" if version == 2 else "'stretch[1]'")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    Path("study.yaml").write_text(text)
    return designopt.load("study.yaml")


def exact_stretch(time: np.ndarray, k: float, d: float = 1.0) -> np.ndarray:
    """The stretch under a force of 1 N on 2 kg with 1 kg behind the spring: an oscillator about F m2/(m1+m2)/k."""
    mass = 2.0 / 3.0  # reduced mass
    omega, decay = math.sqrt(k / mass), d / (2.0 * mass)
    damped = math.sqrt(omega**2 - decay**2)
    shape = np.cos(damped * time) + decay / damped * np.sin(damped * time)
    return (1.0 / 3.0) / k * (1.0 - np.exp(-decay * time) * shape)


@pytest.mark.parametrize("kind", ["co_simulation", "model_exchange"])
def test_both_kinds_of_both_versions_agree_with_the_formula(folder: Path, version: int, kind: str) -> None:
    evaluation = study(version, ("  outputs:", f"  kind: {kind}\n  outputs:")).evaluate(
        DESIGN, arrays=["time", "spring_stretch" if version == 2 else "stretch_1"], allow=ALLOW
    )
    assert evaluation.status == "ok", evaluation.message
    time = evaluation.arrays["time"]
    stretch = evaluation.arrays["spring_stretch" if version == 2 else "stretch_1"]
    assert time[-1] == pytest.approx(2.0)
    np.testing.assert_allclose(stretch, exact_stretch(time, 300.0), atol=1e-7)  # CVODE at 1e-9: 3e-8; RK4: 2e-9
    assert evaluation.outputs["stretch"] == np.abs(stretch).max()
    # momentum: the centre of mass moves as under a constant force
    assert evaluation.outputs["travel"] == pytest.approx(2.0**2 / 6.0 - 2.0 / 3.0 * stretch[-1], abs=1e-7)


def test_the_instance_that_is_reset_passes_the_conformance_test(folder: Path, version: int) -> None:
    settings = study(version).definition.model.settings
    designs = [{"spring_k": 300.0}, {"spring_k": 120.0, "m1": 1.0}, {"x1": 0.01}, {}]
    check_model(Fmu, settings, designs, scenarios=[{}, {"force": 2.0}], allow=ALLOW)


def test_integer_and_boolean_parameters_are_set_and_fractions_are_refused(folder: Path) -> None:
    loaded = study(3, ("space:\n", "space:\n  gear: {values: [1, 2, 3]}\n  reversed: {values: [0, 1]}\n"))
    plain = loaded.evaluate({"spring_k": 300.0, "gear": 1, "reversed": 0}, allow=ALLOW)
    geared = loaded.evaluate({"spring_k": 300.0, "gear": 3, "reversed": 1}, allow=ALLOW)
    assert geared.outputs["travel"] == pytest.approx(-3.0 * plain.outputs["travel"], rel=1e-12)
    model = study(3, ("spring_k: [100 N/m, 500 N/m]", "gear: [1, 3]"))
    refused = model.evaluate({"gear": 1.5}, allow=ALLOW)
    assert refused.status == "invalid"
    assert refused.message == "gear is 1.5, and 'gear' of the FMU is an integer"


def test_inputs_come_from_a_table_with_units_or_are_conditions(folder: Path, version: int) -> None:
    Path("push.csv").write_text("time_ms,force [kN],other\n0,0.002,1\n2000,0.002,1\n")
    from_table = study(version, ("  outputs:", "  signals: push.csv\n  outputs:")).evaluate(DESIGN, allow=ALLOW)
    text = "scenarios: [{name: push, force: 2 N}, {name: table, signals: push.csv}]\nobjectives:"
    scenarios = study(version, ("objectives:", text))
    single = study(version).evaluate(DESIGN, allow=ALLOW)
    assert from_table.outputs["travel"] == pytest.approx(2.0 * single.outputs["travel"], rel=1e-12)
    for name in ("push", "table"):
        outputs = scenarios.evaluate(DESIGN, scenario=name, allow=ALLOW).outputs
        assert outputs["travel"] == pytest.approx(from_table.outputs["travel"], rel=1e-12)


def test_a_crossing_that_does_not_occur_is_infinite(folder: Path) -> None:
    crossings = (
        "    travel: {variable: x2}\n",
        "    travel: {variable: x2}\n    near: {variable: x2, take: crossing, level: 0.1}\n"
        "    far: {variable: x2, take: crossing, level: 5}\n",
    )
    outputs = study(2, crossings).evaluate(DESIGN, allow=ALLOW).outputs
    stretch = float(exact_stretch(np.array(outputs["near"]), 300.0))
    assert outputs["near"] ** 2 / 6.0 - 2.0 / 3.0 * stretch == pytest.approx(0.1, abs=1e-5)
    assert outputs["far"] == math.inf


def test_a_run_needs_permission_and_then_has_results(folder: Path) -> None:
    loaded = study()
    with pytest.raises(CannotRun, match=r"the compiled code in 'spring.fmu', which is not allowed.*--allow spring.fmu"):
        loaded.run("refused.study")
    result = loaded.run("allowed.study", allow=ALLOW)
    assert (result.status == "ok").all()
    assert len(result.status) == 4


# ----------------------------------------------------------------------------------------------------------- failures


def test_an_error_of_the_fmu_is_a_diverged_design_with_its_own_sentence(folder: Path) -> None:
    loaded = study(2, ("space:\n", "space:\n  spring_strength: [0.1 N, 9 N]\n"))
    broken = loaded.evaluate({"spring_k": 300.0, "spring_strength": 0.2}, allow=ALLOW)
    assert broken.status == "diverged"
    assert broken.message.startswith("spring.fmu: fmi2DoStep failed at 0.0")
    assert "the spring breaks at 0.2" in broken.message
    model = loaded.evaluate({"spring_k": 300.0, "spring_strength": 8.0}, allow=ALLOW)
    assert model.status == "ok"


def test_a_design_after_a_failed_one_has_the_same_result(folder: Path) -> None:
    settings = study().definition.model.settings
    diverging = [{"spring_strength": 0.2}]
    check_model(Fmu, settings, [{"spring_k": 300.0}], diverging=diverging, allow=ALLOW)


def test_a_fatal_error_is_a_crash_and_a_crash_inside_ends_one_evaluation(folder: Path) -> None:
    fatal = ("  advance(spring->v, size);", "  if (spring->v[K] > 300) return FATAL;\n  advance(spring->v, size);")
    crashed = study(code=fatal).evaluate({"spring_k": 400.0}, allow=ALLOW)
    assert (crashed.status, crashed.reason) == ("crashed", "fmi2DoStep")
    Path("spring.fmu").unlink()
    fault = ("  advance(spring->v, size);", "  if (spring->v[K] > 400) abort();\n  advance(spring->v, size);")
    loaded = study(2, ("{executor: serial}", "{executor: dask, workers: 1}"), code=fault)
    result = loaded.run("crash.study", allow=ALLOW)
    assert sorted(result.status.ravel().tolist()) == ["crashed", "ok", "ok", "ok"]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"platform": "win64"}, "has no code for linux64, this machine, but for win64; export it for linux64"),
        (
            {
                "code": (
                    "  memcpy(spring->v, START, sizeof START);\n  spring->callbacks",
                    "  if (!fopen(resources, \"r\")) {\n    callbacks->logger(0, name, ERROR, name, \"no map.txt\");\n"
                    "    return 0;\n  }\n  spring->callbacks",
                )
            },
            r"spring.fmu: cannot be instantiated: Failed to instantiate model \(no map.txt\)",
        ),
        ({"code": ("EXPORT Status fmi2Reset", "EXPORT Status other")}, "cannot be instantiated: .*fmi2Reset"),
    ],
    ids=["platform", "resource", "function"],
)  # fmt: skip
def test_an_fmu_that_this_machine_cannot_run_ends_as_a_sentence(
    folder: Path, parts: dict[str, Any], message: str
) -> None:
    with pytest.raises(CannotRun, match=message):
        study(**parts).evaluate(DESIGN, allow=ALLOW)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('fmiVersion="2.0"', 'fmiVersion="1.0"', "is an FMU of FMI 1.0; 2.0 and 3.0 are supported"),
        ("<ScalarVariable", "<ScalarVariables", "its model description is invalid"),
    ],
)
def test_an_unusable_fmu_is_reported_where_the_study_names_it(folder: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(StudyError) as raised:
        study(description=(old, new))
    issue = raised.value.issues[0]
    assert message in issue.message
    assert (issue.line, issue.column) == (4, 9)


def test_a_missing_library_is_named_with_the_command_that_installs_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fmu(folder / "spring.fmu")
    (folder / "model.xml").write_text("<mujoco/>")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    content = (folder / "spring.fmu").read_bytes()
    with pytest.raises(ValueError, match=r"pip install 'designopt\[fmu\]'"):
        describe(InputFile("other.fmu", content))
    with pytest.raises(ValueError, match=r"pip install 'designopt\[mujoco\]'"):
        specification(InputFile("model.xml", b"<mujoco/>"), [])


#: A part of the study, its replacement, and the message.
MISTAKES = [
    ("file: spring.fmu", "file: sprng.fmu", "file 'sprng.fmu' does not exist; did you mean 'spring.fmu'?"),
    ("file: spring.fmu", "file: study.yaml", "is not an FMU: an FMU is a ZIP archive"),
    ("{variable: x2}", "{variable: x3}", "the FMU has no variable 'x3' over time; it has x1, v1, x2"),
    ("{variable: x2}", "{variable: m1}", "the FMU has no variable 'm1' over time"),
    ("{variable: x2}", "{take: last}", "'variable' is missing"),
    ("{variable: x2}", "{variable: x2, take: final}", "'final' is not one of first, last"),
    ("{variable: x2}", "{variable: x2, level: 2}", "is for crossings; add 'take: crossing', or remove it"),
    ("travel: ", "x2: ", "is the name of an array over time; write another one, as in x2_last"),
    ("spring_k: [", "spring_kk: [", "has no design input 'spring_kk'; did you mean 'spring_k'?"),
    ("spring_k: [100 N/m,", "spring_k: [100 N,", "incompatible units"),
    ("spring_k: [100 N/m,", "spring_k: [-100 N/m,", "must be at least 0 N/m, not -100"),
    ("  outputs:", "  kind: cosimulation\n  outputs:", "'cosimulation' is not one of"),
    ("  outputs:", "  stop: -1 s\n  outputs:", "is -1 s, not after the start at 0 s"),
    ("  outputs:", "  step: 0 s\n  outputs:", "must be above 0 s, not 0"),
    ("  outputs:", "  step: 1e-9 s\n  outputs:", "gives 2e+09 steps; at most"),
    ("  outputs:", "  signals: other.csv\n  outputs:", "has no column of an input; it has push, inputs are force"),
    ("  outputs:", "  signals: short.csv\n  outputs:", "has signals from 0 s to 1 s; the simulation is from"),
    ("  outputs:", "  signals: words.csv\n  outputs:", "words.csv"),
    ("  outputs:", "  columns: {forse: push}\n  outputs:", "has no input 'forse' over time; did you mean 'force'?"),
    ("objectives:", "scenarios: [{name: a, forse: 2 N}]\nobjectives:", "did you mean 'force'?"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "mistake", "message"), MISTAKES, ids=[m[1].strip()[:40] for m in MISTAKES])
def test_a_mistake_is_reported_at_its_place_with_the_way_out(
    folder: Path, part: str, mistake: str, message: str
) -> None:
    Path("other.csv").write_text("time,push\n0,1\n2,1\n")
    Path("short.csv").write_text("time,force\n0,1\n1,1\n")
    Path("words.csv").write_text("time,force\n0,1\n2,much\n")
    with pytest.raises(StudyError) as raised:
        study(2, (part, mistake))
    issues = [issue for issue in raised.value.issues if message in issue.message]
    assert issues, [issue.message for issue in raised.value.issues]
    assert issues[0].line is not None


# ------------------------------------------------------------------------------------------------------- command line


def test_show_lists_the_variables_and_new_writes_a_study_that_runs(folder: Path) -> None:
    fmu(folder / "spring.fmu", 3)
    listing = CliRunner().invoke(main, ["show", "spring.fmu"])
    assert listing.exit_code == 0, listing.output
    assert "platforms: " in listing.output
    row = next(line for line in listing.output.splitlines() if line.startswith("  spring_k "))
    assert row.split() == ["spring_k", "400", "N/m", "[0,", "]", "spring.k"]
    assert "(widgets)" in listing.output
    created = CliRunner().invoke(main, ["new", "fmu", "spring.fmu"])
    assert created.output.startswith("wrote  spring.yaml\n")
    assert created.output.rstrip().endswith("designopt run spring.yaml --allow spring.fmu")
    result = designopt.load("spring.yaml").run("spring.study", allow=ALLOW, executor="serial")
    assert len(result.outcomes.X) == 32
    repeated = CliRunner().invoke(main, ["new", "fmu", "spring.fmu"])
    assert repeated.exit_code == 2
    assert "spring.yaml already exists" in repeated.output
    wrong = CliRunner().invoke(main, ["new", "damper", "spring.fmu"])
    assert "a study of an FMU: designopt new fmu model.fmu" in wrong.output


def test_the_bundled_study_is_built_from_its_sources_and_runs(folder: Path) -> None:
    for name in ("build.py", "spring_fmu.yaml", "spring.c", "spring_model.h", "modelDescription.xml"):
        (folder / name).write_bytes((SOURCES / name).read_bytes())
    namespace: dict[str, Any] = {"__file__": str(folder / "build.py"), "__name__": "build"}
    exec(compile((folder / "build.py").read_text(), "build.py", "exec"), namespace)
    namespace["build"](folder / "spring.fmu")
    loaded = designopt.load("spring_fmu.yaml")
    soft = loaded.evaluate({"spring_k": 50.0, "spring_d": 5.0}, allow=ALLOW)
    stiff = loaded.evaluate({"spring_k": 1000.0, "spring_d": 5.0}, allow=ALLOW)
    assert soft.outputs["peak_stretch"] > 10.0 * stiff.outputs["peak_stretch"]
    assert soft.outputs["peak_acceleration"] != stiff.outputs["peak_acceleration"]
