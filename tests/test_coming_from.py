"""The page for those who come from another tool: our side runs here, theirs where their tool is installed."""

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from command import designopt as command

PAGE = (Path(__file__).parents[1] / "docs" / "coming_from.md").read_text(encoding="utf-8")
#: The lightest beam: as narrow as allowed, as high as the deflection wants.
LIGHTEST = 7800 * 0.01 * (12000 / (3 * 210e9 * 0.005 * 0.01)) ** (1 / 3)


def block(fence):
    (code,) = re.findall(rf"^```{fence}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    return code


def printed(text, folder):
    """What a block prints as a script in a process of its own."""
    (folder / "page.py").write_text(text)
    completed = subprocess.run([sys.executable, "page.py"], cwd=folder, capture_output=True, text=True, timeout=600)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.splitlines()


def needs(name):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")


def test_our_function_gives_a_front_and_the_lightest_beam(tmp_path):
    *_, front, lightest = printed(block("python ours"), tmp_path)
    assert int(front.removesuffix(" designs on the front")) >= 20
    assert float(lightest) == pytest.approx(LIGHTEST, rel=1e-6)
    assert "has 5.654 kg (width 10 mm, height 72.5 mm)" in PAGE
    assert pytest.approx(5.654, abs=5e-4) == LIGHTEST


def test_our_cart_has_the_analytic_optimum():
    assert "which is 12 N2 s" in PAGE
    space = {}
    exec(block("python ours cart"), space)
    assert space["effort"] == pytest.approx(12.0, rel=1e-7)


def test_the_study_of_the_cantilever_runs(tmp_path):
    (tmp_path / "cantilever.py").write_text(block("python cantilever"))
    (tmp_path / "cantilever.yaml").write_text(block("yaml"))
    line = re.search(r"# designopt (run cantilever.yaml --plugin cantilever.py)", PAGE)[1]
    completed = command(tmp_path, *line.split(), "--executor", "serial")
    assert completed.returncode == 0, completed.stderr
    assert "best mass" in completed.stdout


def test_the_study_of_the_walk_names_what_the_model_has():
    from designopt.plugin import find

    study = yaml.safe_load(block("yaml opensim"))
    model = find("model", "muscle_sharing")
    assert set(study["model"]) - {"use"} <= set(model.settings)
    assert set(study["scenarios"][0]) - {"name"} <= set(model.conditions)
    assert set(study["solver"]["designs"][0]) - {"name"} <= set(model.inputs)
    assert set(study["execution"]["arrays"]) <= set(model.arrays)


def test_optuna_and_pymoo_find_a_front_of_the_same_problem():
    needs("optuna")
    optuna = importlib.import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    import warnings

    for tool in ("optuna", "pymoo"):
        space = {"__name__": "page"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they call experimental
            exec(block(f"python {tool}"), space)
        front = [t.values for t in space["front"]] if tool == "optuna" else space["front"]
        assert len(front) >= 10
        for mass, deflection in front:
            assert 7800 * 0.01 * 0.01 < mass < 7800 * 0.1 * 0.1
            assert deflection > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "name", "value"), [("openmdao", "mass", LIGHTEST), ("gemseo", "mass", LIGHTEST), ("dymos", "effort", 12.0)]
)
def test_other_tools_solve_the_same_problem(tool, name, value, tmp_path):
    """Out of process, by the interpreter that DESIGNOPT_PEER_FRAMEWORKS names."""
    python = os.environ.get("DESIGNOPT_PEER_FRAMEWORKS")
    if not python:
        pytest.skip("DESIGNOPT_PEER_FRAMEWORKS names no interpreter with OpenMDAO, dymos and GEMSEO")
    (tmp_path / "page.py").write_text(block(f"python {tool}"))
    script = f"import runpy; print('found', float(runpy.run_path('page.py')['{name}']))"
    completed = subprocess.run([python, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert completed.returncode == 0, completed.stderr
    assert float(completed.stdout.split("found")[-1]) == pytest.approx(value, rel=1e-6)
