"""Plugins and a valid study file for the tests of study files; nothing here computes anything."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Required, TypedDict

import numpy as np
import pytest

from designopt.plugin import Array, InputFile, InvalidSetting, Quantity, model, objective, report_part, solver
from designopt.study.language.errors import Issue, StudyError
from designopt.study.load import study_from_text
from designopt.study.study import StudyDefinition

sys.path.insert(0, str(Path(__file__).parent / "mistakes"))  # mutations.py can be imported by name


class Design(TypedDict, total=False):
    stiffness: Required[Annotated[float, Quantity("N/m", "spring", gt=0.0)]]
    damping: Annotated[float, Quantity("N s/m", "damper", ge=0.0)]
    offset: Annotated[float, Quantity("m", "offset", ge=-0.01, le=0.01)]
    teeth: Annotated[int, Quantity("", "teeth of the wheel", ge=1)]
    kind: Literal["steel", "rubber"]


class Conditions(TypedDict, total=False):
    load: Annotated[float, Quantity("N", "weight on the wheel", ge=0.0)]


class Outputs(TypedDict):
    rho: Annotated[float, Quantity("", "correlation", ge=-1.0, le=1.0)]
    peak_error: Annotated[float, Quantity("deg", "peak error")]
    toe_clearance: Annotated[float, Quantity("m", "clearance", ge=0.0)]
    twin: Annotated[float, Quantity("N", "named like an objective")]


class Loop(TypedDict, total=False):
    gain: Required[Annotated[float, Quantity("", "gain", gt=0.0)]]
    delay: Annotated[float, Quantity("s", "delay", ge=0.0)]


@model("test_wheel", version=1, arrays={"time": Array(("time",), "s"), "force": Array(("time",), "N")})
class Wheel:
    """A wheel that is never simulated."""

    mass: Annotated[float, Quantity("kg", "mass of the wheel", gt=0.0)]
    road: Literal["paved", "dirt"] = "paved"
    curve: InputFile | None = None
    loop: Loop | None = None
    points: Annotated[list[float], Quantity("mm", "points")] = dataclasses.field(default_factory=list)
    smooth: bool = False

    def check(self) -> None:
        if self.mass == 13.0:
            raise InvalidSetting("mass", "13 kg is unlucky")
        if self.mass == 14.0:
            raise RuntimeError("the check itself fails")

    def evaluate(self, design: Design, scenario: Conditions, arrays: Any) -> tuple[Outputs, dict[str, Any]]:
        raise AssertionError("declared to be checked, never to be run")


class NeedyConditions(TypedDict):
    speed: Annotated[float, Quantity("m/s", "speed")]


@model("test_needy", version=1)
def needy(design: Design, scenario: NeedyConditions) -> Outputs:
    """A model that cannot do without a condition."""
    raise AssertionError("declared to be checked, never to be run")


@model("test_open", version=1, unchecked=True)
def open_model(design, scenario, *, gain: float = 1.0):  # type: ignore[no-untyped-def]
    """A model that declares nothing."""
    raise AssertionError("declared to be checked, never to be run")


@objective("test_spread", version=1)
def spread(rho: float, time: Any, *, k: float = 1.0) -> Annotated[float, Quantity("m", "spread")]:
    """From an output and an array."""
    raise AssertionError("declared to be checked, never to be run")


@objective("test_homeless", version=1)
def homeless(nowhere: float) -> Annotated[float, Quantity("m", "needs what no model gives")]:
    """Needs what no model gives."""
    raise AssertionError("declared to be checked, never to be run")


@objective("twin", version=1)
def twin(rho: float) -> Annotated[float, Quantity("N", "named like an output")]:
    """Named like an output of the wheel."""
    raise AssertionError("declared to be checked, never to be run")


class FieldDesign(TypedDict, total=False):
    criterion: Required[Literal["cubed", "entropy", "min_max"]]
    stress: Annotated[float, Quantity("N/cm^2", "stress", gt=0.0)]
    terms: Annotated[int, Quantity("", "terms", ge=1)]
    level: Annotated[float, Quantity("", "level")]


class FieldConditions(TypedDict, total=False):
    speed: Required[Annotated[float, Quantity("m/s", "speed", ge=0.0, le=20.0)]]
    friction: Annotated[float, Quantity("", "friction", gt=0.0, le=1.5, sampled=(0.2, 0.8))]
    mass: Annotated[float, Quantity("kg", "mass", gt=0.0)]
    wheels: Annotated[int, Quantity("", "wheels", ge=1, sampled=(4, 8))]
    wind: Annotated[float, Quantity("m/s", "wind")]
    heat: Annotated[float, Quantity("degC", "temperature of the air", ge=-60.0, le=60.0)]
    terrain: Literal["sand", "snow", "paved"]


@model("test_field", version=1)
def field(design: FieldDesign, scenario: FieldConditions) -> Outputs:
    """A machine in the field, with an optional part of its design."""
    raise AssertionError("declared to be checked, never to be run")


@solver("test_grid", version=1)
class Grid:
    """A sampler."""

    levels: dict[str, int] | int = 3
    uses_start: ClassVar[bool] = False

    def check(self, problem: Any) -> None:
        names = problem.names if hasattr(problem, "names") else problem.space.names
        unknown = [n for n in self.levels if n not in names] if isinstance(self.levels, dict) else []
        if unknown:
            raise InvalidSetting("levels", f"'{unknown[0]}' is not in space")
        if self.levels == 99:
            raise InvalidSetting("use", "too many designs")

    def solve(self, problem: Any, evaluate: Any, rng: Any, start: Any) -> None:
        raise AssertionError("declared to be checked, never to be run")


@solver("test_search", version=1)
class Search:
    """A search."""

    population: Annotated[int, Quantity("", "size of the population", ge=2)] = 20
    needs_budget: ClassVar[bool] = True

    def minimum_budget(self, problem: Any) -> int:
        return self.population

    def solve(self, problem: Any, evaluate: Any, rng: Any, start: Any) -> None:
        raise AssertionError("declared to be checked, never to be run")


@solver("test_sampler", version=1)
class Sampler:
    """Points on the diagonal of the unit cube, at the middles of equal parts; moved by random numbers with `jitter`."""

    samples: Annotated[int, Quantity("", "number of points", ge=1, le=20_000)]
    jitter: bool = False
    broken: Literal["no", "raises", "shape", "range", "setting"] = "no"
    uses_start: ClassVar[bool] = False

    def unit_sample(self, dimension: int, rng: np.random.Generator) -> Any:
        if self.broken == "raises":
            raise RuntimeError("out of points")
        if self.broken == "setting":
            raise InvalidSetting("samples", "an odd number is needed")
        if self.broken == "range":
            return np.full((self.samples, dimension), np.nan)
        middles = (np.arange(self.samples) + 0.5) / self.samples
        shift = rng.random((self.samples, dimension)) - 0.5 if self.jitter else np.zeros((self.samples, dimension))
        return (middles[:, None] + shift / self.samples)[: -1 if self.broken == "shape" else None]

    def solve(self, problem: Any, evaluate: Any, rng: Any, start: Any) -> None:
        raise AssertionError("declared to be checked, never to be run")


@report_part("test_part", version=1)
def part(result: Any, *, band: Annotated[float, Quantity("deg", "band", ge=0.0)] = 5.0) -> None:
    """A part of the report."""


BASE = """\
study: wheel_damper
seed: 7
model:
  use: test_wheel
  mass: 3 kg
  curve: curve.csv
space:
  stiffness: {low: 1.0e4, high: 30 kN/m, unit: N/m, scale: log}
  damping: [0, 100]
  offset: {type: int, low: -3, high: 3, unit: mm}
  kind: {values: [steel, rubber]}
relations:
  - damping <= 0.1 [s] * stiffness
scenarios:
  - {name: light, load: 1 kN}
  - {name: heavy, load: 2000}
figures:
  spread: {use: test_spread, k: 2}
objectives:
  - {name: mismatch, minimize: 1 - rho, over: worst}
  - name: flexion
    minimize: abs(peak_error)
    unit: deg
constraints:
  - {name: clearance, of: toe_clearance, min: 5 mm}
  - {name: spread, of: spread, max: 1 m, over: {use: quantile, level: 0.9}}
stages:
  - name: sweep
    solver: {use: test_grid, levels: {stiffness: 5, damping: 3}}
  - name: search
    start_from: {stage: sweep, nondominated: all}
    solver: {use: test_search, population: 20}
    budget: {evaluations: 500, wall: 2 h}
execution:
  executor: dask
  workers: 2
  timeout: 10 s
  arrays: [time]
report: {plots: [test_part]}
"""

FULL = """\
study: field_trial
seed: 3
model: {use: test_field}
space:
  criterion: {type: choice, values: [cubed, entropy, min_max]}
  stress: {low: 20, high: 100, unit: N/cm^2, when: {criterion: entropy}}
  terms: {type: int, low: 1, high: 4, when: {criterion: [entropy, min_max]}}
  level: {low: 0.1, high: 1, scale: log, when: {terms: [3, 4]}}
relations:
  - level <= 0.01 [cm^2/N] * stress
scenarios:
  - {name: nominal, speed: 5 m/s, friction: 0.6}
  - use: test_sampler
    count: 4
    seed: 8
    jitter: false
    vary:
      friction: [0.3, 0.7]
      mass: {low: 1 t, high: 16 t, scale: log}
      wheels: {low: 4, high: 7}
      terrain: {values: [sand, snow]}
      wind: {mean: 2 m/s, deviation: 0.5, low: 0, high: 5 m/s}
    with: {speed: 18 km/h}
    name: drawn
objectives:
  - {name: mismatch, minimize: 1 - rho, over: {use: quantile, level: 0.9}}
  - {name: peak, minimize: abs(peak_error), unit: deg, over: nominal}
  - {name: gap, maximize: toe_clearance, over: mean}
stages:
  - name: sweep
    solver: {use: test_grid}
  - name: front
    start_from: {stage: sweep, nondominated: 5}
    solver: {use: test_search, population: 20}
    budget:
      evaluations: 500
      hypervolume: {reference: {mismatch: 2, peak: 1 rad, gap: 1 mm}, gain_below: 1e-4, over_generations: 20}
execution:
  executor: dask
  cluster:
    use: slurm
    jobs: 20
    cores: 16
    memory: 32 GB
    walltime: 4 h
    minimum: 2
    queue: short
    account: mech-01
    interface: ib0
  timeout: 20 s
  retries: {lost_worker: 3, error: 1}
  on_failure: {diverged: stop, error: infeasible, timeout: infeasible, stop_if_share_above: 0.5, after: 100}
report:
  plots: [test_part]
  choose:
    - knee
    - topsis
    - topsis: {norm: minmax, weights: {mismatch: 2, gap: 0}}
    - utopia: {norm: chebyshev}
    - nearest_to: {peak: 0.1 rad, gap: 2 cm}
  validate:
    scenarios: {use: test_sampler, count: 3, jitter: true, with: {speed: 5}}
    quantiles: [0.1, 0.9]
  reference: {mismatch: 2, peak: 60, gap: 0}
  export: [csv, parquet, netcdf]
"""

FILES = {"curve.csv": b"1,2\n", "other.csv": b"3,4\n"}


class Names:
    """Stands for a problem where solvers look at it."""

    def __init__(self, study: StudyDefinition) -> None:
        self.names = [p.name for p in study.space]


@pytest.fixture(scope="session")
def base_text() -> str:
    """A valid study file that uses every section."""
    return BASE


@pytest.fixture(scope="session")
def full_text() -> str:
    """A valid study file with all that a large study may say."""
    return FULL


@pytest.fixture(scope="session")
def changed() -> Callable[[str, str, str], tuple[str, int, int, int]]:
    """The base with one piece replaced, and line, column and end column of what « and » enclose in it."""

    def replace(base: str, find: str, replacement: str) -> tuple[str, int, int, int]:
        assert base.count(find) == 1, f"{find!r} is in the base {base.count(find)} times"
        marked = base.replace(find, replacement)
        before, _, rest = marked.partition("«")
        inside, _, after = rest.partition("»")
        line = before.count("\n") + 1
        column = len(before) - before.rfind("\n")
        return before + inside + after, line, column, column + len(inside)

    return replace


@pytest.fixture(scope="session")
def refused_once(mistakes, changed) -> Callable[..., None]:
    """Asserts that a base with one piece replaced has exactly one mistake, at its place and with its words."""

    def check(base: str, find: str, replacement: str, path: str, fragment: str) -> None:
        text, line, column, end = changed(base, find, replacement)
        issues = mistakes(text)
        assert len(issues) == 1, issues
        issue = issues[0]
        assert issue.path == path
        assert fragment in issue.message
        if "«" in replacement:
            assert (issue.line, issue.column) == (line, column), issue
            if issue.path:  # mistakes of syntax and missing top-level keys have a place but no extent
                assert issue.end_column == end, issue

    return check


@pytest.fixture(scope="session")
def load() -> Callable[..., StudyDefinition]:
    """Loads a text as ``damper.yaml`` next to ``curve.csv`` and ``other.csv``."""

    def from_text(text: str, **options: Any) -> StudyDefinition:
        return study_from_text(text, "damper.yaml", files=FILES, problem_of=Names, **options)

    return from_text


@pytest.fixture(scope="session")
def mistakes(load) -> Callable[..., list[Issue]]:
    """The mistakes of a text, which is not a study."""

    def issues_of(text: str, **options: Any) -> list[Issue]:
        with pytest.raises(StudyError) as caught:
            load(text, **options)
        return list(caught.value.issues)

    return issues_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the valid study and its files."""
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "damper.yaml").write_text(BASE, encoding="utf-8")
    return tmp_path
