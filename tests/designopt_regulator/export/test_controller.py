"""The exported text of a controller computes the commands of the simulator, bit for bit."""

import ctypes
import functools
import re
import shutil
import subprocess
from dataclasses import fields

import numpy as np
import pytest
from click.testing import CliRunner
from designopt_regulator.controllers.structure import RunningControllers
from designopt_regulator.linear_loop.simulation import Steps, simulate
from designopt_regulator.plants.linear import Plant

import designopt
from designopt.cli import main
from designopt.exports import ExportError
from designopt.plugin import Use, find

LINEAR = """
study: heater
model:
  use: linear_loop
  plant: {type: sopdt, gain: 2, time_constant: 8 s, time_constant_2: 1 s, delay: 0.7 s}
  sample_time: 0.1 s
  horizon: 40 s
LIMITS
space: {kp: {low: 1.3, high: 2.7}, ti: 6.1 s, td: 0.4 s, tf: 0.13 s, b: 0.7TT}
objectives: [{name: iae, minimize: iae_setpoint}]
stages: [{name: all, solver: {use: full_factorial, levels: {kp: 2}}}]
execution: {arrays: [time, output, command]}
"""
LIMITS = {
    "asymmetric and rate limits": ("  limits: [-0.1, 1.1]\n  rate_limits: [0.9 1/s, 1.7 1/s]", ", tt: 2.3 s"),
    "symmetric limit": ("  limit: 0.9", ""),
    "no limit": ("", ""),
}


def run(folder, text):
    (folder / "study.yaml").write_text(text)
    return designopt.load(folder / "study.yaml").run(folder / "store", executor="serial")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """What a study finds: it runs once for all languages."""
    return functools.cache(lambda text: run(tmp_path_factory.mktemp("ran"), text))


@pytest.fixture(scope="module", params=LIMITS)
def linear(request, tmp_path_factory):
    limits, tt = LIMITS[request.param]
    return run(tmp_path_factory.mktemp("linear"), LINEAR.replace("LIMITS", limits).replace("TT", tt))


VEHICLE = """
study: heading
model: {use: tracked_carrier_10t, horizon: 20 s, step: -170 deg, disturbance: {moment: 6 kN m, at: 15 s}SCHEDULE}
scenarios: [{name: turf, terrain: turf, speed: 2}]
space: {kp: {low: 1, high: 1.5}, ti: 8 s, td: 0.6 s, tf: 0.1 s, b: 0.9, tt: 3 s}
objectives: [{name: iae, minimize: iae}]
stages: [{name: all, solver: {use: full_factorial, levels: {kp: 2}}}]
execution: {arrays: [course, course_reference, course_command, speed]}
"""


def exported(result, folder, language, design="best iae"):
    form = Use(find("export", "controller"), {"language": language, "design": design})
    (file,) = designopt.export(result, folder, [form])
    return file


def by_python(file, inputs, rest):
    names = {}
    exec(compile(file.read_text(), file.name, "exec"), names)
    controller = names["Controller"]()
    controller.reset(*rest)
    return np.array([controller.sample(*values) for values in inputs])


def by_c(file, inputs, rest):
    if (compiler := shutil.which("cc") or shutil.which("gcc")) is None:
        pytest.skip("there is no C compiler")
    library = file.with_suffix(".so")
    options = ["-std=c99", "-O2", "-Wall", "-Werror", "-ffp-contract=off", "-fPIC", "-shared"]
    subprocess.run([compiler, *options, "-o", library, file, "-lm"], check=True)
    code, state = ctypes.CDLL(str(library)), (ctypes.c_double * 64)()
    code.controller_sample.restype = ctypes.c_double
    code.controller_reset(state, *map(ctypes.c_double, rest))
    return np.array([code.controller_sample(state, *map(ctypes.c_double, values)) for values in inputs])


def by_st(file, inputs, rest):
    """Structured Text in this program's form, read as Python: assignments, MIN, MAX, TRUNC, SEL."""
    text = file.read_text()
    text = re.sub(r"\(\*.*?\*\)", "", text, flags=re.S)
    names = {"MIN": min, "MAX": max, "TRUNC": int, "DINT_TO_LREAL": float, "SEL": lambda g, a, b: b if g else a}
    for key, value in re.findall(r"(\w+) : LREAL := ([^;]+);", text):
        names[key] = float(value)
    reset, body = re.search(r"IF reset THEN\n(.*?)END_IF;\n(.*)END_FUNCTION_BLOCK", text, flags=re.S).groups()
    declarations = re.search(r"VAR_INPUT\n(.*?)END_VAR", text, flags=re.S)[1]
    arguments = [key for key in re.findall(r"(\w+) : LREAL", declarations) if key != "u_rest"]
    python = "\n".join(line.strip().rstrip(";").replace(":=", "=") for line in body.splitlines())
    commands = []
    for k, values in enumerate(inputs):
        names |= dict(zip(arguments, values, strict=True))
        if k == 0:
            names |= {"y": rest[0], "u_rest": rest[1]}
            exec("\n".join(line.strip().rstrip(";").replace(":=", "=") for line in reset.splitlines()), names)
            names |= dict(zip(arguments, values, strict=True))
        exec(python, names)
        commands.append(names["u"])
    return np.array(commands)


RUNNERS = {"python": by_python, "c": by_c, "st": by_st}


@pytest.mark.parametrize("language", RUNNERS)
def test_the_text_gives_the_bits_of_the_sampled_loop(linear, language, tmp_path):
    file = exported(linear, tmp_path, language)
    arrays = linear.arrays(linear.chosen()["best iae"], 0)
    outputs, commands = arrays["output"][:-1], arrays["command"][:-1]
    text_commands = RUNNERS[language](file, [(1.0, y) for y in outputs.tolist()], (0.0, 0.0))
    assert text_commands.tobytes() == commands.tobytes()
    assert np.ptp(commands) > 0.5


#: Text of the plant and the space of controllers with more parts than a PID.
PARTS = {
    "sections": (
        "{type: sopdt, gain: 2, time_constant: 8 s, time_constant_2: 1 s, delay: 0.7 s}",
        "lead_frequency: 0.9 rad/s, lead_ratio: 1.7, notch_frequency: 6 rad/s, notch_width: 0.4, notch_depth: 0.2",
    ),
    "predictor": (
        "{type: sopdt, gain: 2, time_constant: 8 s, time_constant_2: 1 s, delay: 0.73 s}",
        "structure: smith, notch_frequency: 6 rad/s, notch_width: 0.4, notch_depth: 0",
    ),
    "feedthrough": (
        "{type: transfer_function, numerator: [0.1, 0.4, 1], denominator: [1, 2, 0.5], delay: 0.33 s}",
        "structure: smith",
    ),
}  # fmt: skip


@pytest.mark.parametrize("limits", ["asymmetric and rate limits", "no limit"])
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("language", RUNNERS)
def test_the_text_of_more_parts_gives_the_bits_of_the_sampled_loop(parts, limits, language, ran, tmp_path):
    plant, more = PARTS[parts]
    text = LINEAR.replace("{type: sopdt, gain: 2, time_constant: 8 s, time_constant_2: 1 s, delay: 0.7 s}", plant)
    text = text.replace("tf: 0.13 s", f"tf: 0.13 s, {more}")
    result = ran(text.replace("LIMITS", LIMITS[limits][0]).replace("TT", LIMITS[limits][1]))
    arrays = result.arrays(result.chosen()["best iae"], 0)
    outputs, commands = arrays["output"][:-1], arrays["command"][:-1]
    text_commands = RUNNERS[language](
        exported(result, tmp_path, language), [(1.0, y) for y in outputs.tolist()], (0.0, 0.0)
    )
    assert text_commands.tobytes() == commands.tobytes()
    assert np.ptp(commands) > 0.3


CASCADE = """
study: drive
model:
  use: linear_loop
  plant: {type: ipdt, gain: 1, delay: 0.03 s}
  inner_plant: {type: sopdt, gain: 2, time_constant: 0.3 s, time_constant_2: 0.05 s}
  sample_time: 0.02 s
  horizon: 6 s
  limit: 0.8
  setpoint_limits: [-0.6, 0.9]
space: {kp: {low: 1.3, high: 2.7}, b: 0.9, kp_inner: 0.9, ti_inner: 0.4 s, td_inner: 0.01 s, tf_inner: 0.05 s,
        tt_inner: 0.2 s, notch_frequency: 40 rad/s, notch_width: 0.4, notch_depth: 0.2}
objectives: [{name: iae, minimize: iae_setpoint}]
stages: [{name: all, solver: {use: full_factorial, levels: {kp: 2}}}]
execution: {arrays: [time, output, command]}
"""


@pytest.mark.parametrize("language", ["python", "c", "st"])
def test_both_programs_of_a_cascade_together_give_the_bits_of_the_simulator(language, ran, tmp_path):
    result = ran(CASCADE)
    form = Use(find("export", "controller"), {"language": language, "design": "best iae"})
    files = designopt.export(result, tmp_path, [form])
    assert [file.stem for file in files] == ["controller_outer", "controller_inner"]
    model = result.problem.model.build()
    design = result.problem.space.design(result.outcomes.X[result.chosen()["best iae"]].tolist())
    plants = model.plants_in({})
    working = RunningControllers(model.controllers_of(design), 1)
    many, inner = (
        Plant(*(np.stack([getattr(p, f.name)]) for f in fields(Plant))) for p in (plants.plant, plants.inner)
    )
    trace = simulate(many, working, Steps(0.02, 5, 6.0, 3.0), inner=inner, trace=True).trace
    y, inner_y, setpoint, u = (trace[k][0][:-1] for k in ("output", "inner_output", "inner_setpoint", "command"))
    assert u.tobytes() == result.arrays(result.chosen()["best iae"], 0)["command"][:-1].tobytes()
    outer = RUNNERS[language](files[0], [(1.0, v) for v in y.tolist()], (0.0, 0.0))
    assert outer.tobytes() == setpoint.tobytes()
    within = RUNNERS[language](files[1], list(zip(outer.tolist(), inner_y.tolist(), strict=True)), (0.0, 0.0))
    assert within.tobytes() == u.tobytes()
    assert setpoint.max() == 0.9


@pytest.mark.parametrize("language", ["python", "c", "st"])
def test_a_program_that_begins_away_from_0_begins_without_bump(language, ran, tmp_path):
    """Sections and the model of the plant are at rest at the command of that moment."""
    plant, more = PARTS["predictor"]
    text = LINEAR.replace("{type: sopdt, gain: 2, time_constant: 8 s, time_constant_2: 1 s, delay: 0.7 s}", plant)
    text = text.replace("LIMITS", "").replace("TT", "").replace("tf: 0.13 s", f"tf: 0.13 s, {more}")
    file = exported(ran(text), tmp_path, language)
    assert RUNNERS[language](file, [(1.4, 1.4)] * 40, (1.4, 0.7)) == pytest.approx(0.7, rel=1e-12)


@pytest.mark.parametrize("schedule", ["", ", gain_schedule: {reference_speed: 3.5 m/s, min_speed: 1 m/s}"])
@pytest.mark.parametrize("language", RUNNERS)
def test_the_text_gives_the_bits_of_the_heading_loop(language, schedule, ran, tmp_path, monkeypatch):
    """With numpy as the simulator: its machine code may differ in the last digits. A turn beyond 180 degrees wraps."""
    monkeypatch.setattr("designopt_regulator.vehicle.simulation.compile_step", lambda *_: None)
    result = ran(VEHICLE.replace("SCHEDULE", schedule))
    arrays = result.arrays(result.chosen()["best iae"], 0)
    columns = ["course_reference", "course", *(["speed"] if schedule else [])]
    inputs = list(zip(*(arrays[name][:-1].tolist() for name in columns), strict=True))
    text_commands = RUNNERS[language](exported(result, tmp_path, language), inputs, (0.0, 0.0))
    assert text_commands == pytest.approx(arrays["course_command"][:-1], abs=0.0)


def test_the_command_line_writes_a_design(linear, tmp_path):
    point = f"{linear.path}/best iae"
    invocation = CliRunner().invoke(main, ["export", point, "--controller", "st", "--folder", str(tmp_path / "new")])
    assert invocation.exit_code == 0, invocation.output
    assert "FUNCTION_BLOCK Controller" in (tmp_path / "new" / "controller.st").read_text()
    program_text = (tmp_path / "new" / "controller.st").read_text()
    number = linear.chosen()["best iae"]
    assert f"Design {number} (best iae) of the study heater in the store {linear.path.name}," in program_text
    assert re.search(r"^   kp [\d.e-]+.*, ti [\d.e-]+ s", program_text, re.MULTILINE)


def test_a_program_of_another_design_is_not_replaced_unasked(linear, tmp_path):
    def call(design, *more):
        arguments = ["export", f"{linear.path}/{design}", "--controller", "c", "--folder", str(tmp_path), *more]
        return CliRunner().invoke(main, arguments)

    file = tmp_path / "controller.c"
    assert call(0).exit_code == 0
    first = file.read_bytes()
    assert call(0).exit_code == 0  # the same text again
    refused = call(1)
    assert refused.exit_code == 2, refused.output
    assert "exists with other contents" in refused.output
    assert file.read_bytes() == first
    assert call(1, "--replace").exit_code == 0
    assert file.read_bytes() != first


def test_a_design_that_breaks_limits_is_written_with_a_warning(tmp_path):
    text = LINEAR.replace("LIMITS", "").replace("TT", "") + "constraints: [{name: quick, of: settling, max: 1 ms}]\n"
    strict = run(tmp_path, text)
    invocation = CliRunner().invoke(
        main, ["export", f"{strict.path}/0", "--controller", "c", "--folder", str(tmp_path)]
    )
    assert invocation.exit_code == 0, invocation.output
    assert "warning: design 0 violates limits of the study" in invocation.output
    assert "WARNING: this design violates limits" in (tmp_path / "controller.c").read_text()


def test_the_command_line_reports_unknown_designs(linear, tmp_path):
    for name in (f"{linear.path}/99", str(linear.path), "nowhere/1"):
        invocation = CliRunner().invoke(main, ["export", name, "--controller", "c", "--folder", str(tmp_path)])
        assert invocation.exit_code == 2
        assert "design" in invocation.output
        assert "Traceback" not in invocation.output


def test_both_controllers_of_a_vehicle_get_a_file_each(tmp_path):
    text = VEHICLE.replace("SCHEDULE", ", loop: both").replace("tt: 3 s", "tt: 3 s, kp_v: 0.6, ti_v: 6 s")
    result = run(tmp_path, text.replace("-170 deg", "20 deg"))
    files = designopt.export(result, tmp_path, [Use(find("export", "controller"), {"language": "c", "design": "0"})])
    assert [file.name for file in files] == ["controller_course.c", "controller_speed.c"]


def test_a_continuous_controller_has_no_difference_equation(tmp_path):
    text = LINEAR.replace("  sample_time: 0.1 s\n  horizon: 40 s\nLIMITS", "").replace("TT", "")
    with pytest.raises(ExportError, match="give the model a sample_time"):
        exported(run(tmp_path, text), tmp_path, "c")


def test_a_design_with_an_inner_loop_is_refused_in_words(tmp_path):
    text = VEHICLE.replace("SCHEDULE", "").replace("tt: 3 s}", "tt: 3 s, rate_gain: 0.3 s, max_rate: 2 rad/s}")
    with pytest.raises(ExportError, match="inner loop of the yaw rate"):
        exported(run(tmp_path, text), tmp_path, "python")
