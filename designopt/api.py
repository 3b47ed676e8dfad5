"""The Python side of the suite: load or build a study, run it, open what it left.

Examples:
    >>> import designopt
    >>> result = designopt.load("studies/knee_damper.yaml").run()      # doctest: +SKIP
    >>> result.to_pandas(result.front())                               # doctest: +SKIP
    >>> average = result.with_changes(["objectives.mismatch.over=mean"])   # doctest: +SKIP
    >>> designopt.export(average, "tables", ["parquet"])               # doctest: +SKIP
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from designopt.counts import plural
from designopt.exports.errors import ExportError
from designopt.plugin import PluginError, as_model, refuse_while_loading
from designopt.plugin.plain import VALUE
from designopt.problem import Problem
from designopt.store.errors import RunError
from designopt.study import study as definitions
from designopt.study.language.errors import StudyError
from designopt.study.load import load_study, study_from_data

if TYPE_CHECKING:
    from designopt.run.ask_tell import Asked
    from designopt.run.progress import Progress
    from designopt.store.result import Result
    from designopt.workers.evaluation.evaluate import Evaluation

P = ParamSpec("P")
R = TypeVar("R")


def _briefly(function: Callable[P, R]) -> Callable[P, R]:
    """`function` without a traceback of the suite where the mistake is the caller's: its lines say nothing to them."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (StudyError, RunError, PluginError, ExportError) as error:
            raise error.with_traceback(None) from None

    return called


@dataclass(frozen=True)
class Study:
    """A checked study, ready to run. `definition` holds everything the file says."""

    definition: definitions.StudyDefinition

    def __repr__(self) -> str:
        return (
            f"<Study {self.name}: {self.definition.model.plugin.name}, {plural(len(self.definition.stages), 'stage')}>"
        )

    @property
    def name(self) -> str:
        """The study's name."""
        return self.definition.name

    @property
    def problem(self) -> Problem:
        """Space, model, scenarios, objectives and constraints."""
        return Problem.of(self.definition)

    @property
    def default_store(self) -> Path:
        """Where `run` keeps its results when no place is given: ``results/<file or study name>.study``."""
        path = self.definition.path
        return Path("results") / f"{path.stem if path else self.name}.study"

    @_briefly
    def run(self, store: str | Path | None = None, *, resume: bool = False, **options: Any) -> Result:
        """Run all stages and return what is known; every evaluation is durable in the folder `store`.

        `options` are those of `designopt.run.runner.run_study`: ``workers``, ``scheduler``, ``executor``, ``progress``,
        ``budget``. Raises `StoreError` when the store exists (give ``resume=True`` to continue it), is in use or cannot
        be written; `FailurePolicyStop`; `Interrupted`.
        """
        from designopt.run.runner import run_study

        return run_study(self.definition, Path(store) if store else self.default_store, resume=resume, **options)

    @_briefly
    def ask(self, count: int = 1, *, store: str | Path | None = None) -> list[Asked]:
        """Up to `count` evaluations that the study waits for, to be made outside: in a laboratory, by another program.

        >>> while asked := study.ask(4):                                              # doctest: +SKIP
        ...     study.tell(asked, [measure(one.values) for one in asked])

        They are the same until they have results, also in another process: the store holds everything, and whoever asks
        again goes on. Empty when the study has come to its end. Raises as `run`.
        """
        from designopt.run.ask_tell import ask

        return ask(self.definition, Path(store) if store else self.default_store, count)

    @_briefly
    def tell(
        self,
        asked: Asked | Sequence[Asked],
        results: Mapping[str, float] | Sequence[Mapping[str, float] | None] | None,
        *,
        store: str | Path | None = None,
        why: str = "",
    ) -> None:
        """Record what came of evaluations that `ask` gave: the model's outputs by name, in its units, one mapping for
        each; None for one without a result, of which `why` says the reason. Durable when it returns.

        Raises `ValueError` for an output that is missing or no number, and for what already has a result; `StoreError`.
        """
        from designopt.run.ask_tell import Asked, tell

        several = [asked] if isinstance(asked, Asked) else list(asked)
        given = [results] if results is None or isinstance(results, Mapping) else list(results)
        tell(self.definition, Path(store) if store else self.default_store, several, given, why)

    @_briefly
    def result(self, store: str | Path | None = None) -> Result:
        """What the run of this study has left in its store, also while it is going. Raises `StoreError` without one."""
        from designopt.store.result import Result

        return Result.open(Path(store) if store else self.default_store, self.definition)

    def plot(self, part: str = "", number: int = 0, *, store: str | Path | None = None, **settings: Any) -> Any:
        """`Result.plot` of what is in the store."""
        return self.result(store).plot(part, number, **settings)

    def _repr_html_(self) -> str:
        """The parameters, objectives and limits as a table, for notebooks."""
        from designopt.report.notebook import study_table

        return study_table(self.problem, self.definition.title or self.name)

    def evaluate(
        self, values: Mapping[str, Any], *, scenario: str | None = None, arrays: Sequence[str] = ()
    ) -> Evaluation:
        """One design, in this process, recorded nowhere: `values` in the study's units, all free parameters.

        The scenario is the first one unless named. Raises `KeyError` for an unknown or missing name.
        """
        from designopt.workers.evaluation.evaluate import evaluate_one

        return evaluate_one(self.definition, values, scenario=scenario, arrays=arrays)


@_briefly
def load(
    path: str | Path,
    *,
    overrides: Sequence[str] = (),
    plugin_files: Sequence[str | Path] = (),
    data: Mapping[str, str | Path] | None = None,
) -> Study:
    """The study in the YAML file `path`; `overrides` are ``"dotted.key=value"`` texts, `data` gives the folder of each
    data root that the study names (``gait:walk.c3d``).

    Raises `designopt.study.language.errors.StudyError` with every mistake of the file, each with its place.
    """
    files = _contents(plugin_files)
    study = load_study(
        Path(path), overrides=tuple(overrides), plugin_files=files, problem_of=Problem.of, data=_folders(data)
    )
    return Study(study)


@_briefly
def define(*, base: str | Path | None = None, data: Mapping[str, str | Path] | None = None, **sections: Any) -> Study:
    """A study from Python values: the sections of a study file as keyword arguments, checked in the same way.

    Files are looked for below `base` (the current folder by default), those of data roots in the folders `data`. A
    decorated model or solver may stand where the file has ``use: name``, and a plain function that returns numbers
    where it has the model (`designopt.plugin.as_model`). Raises `designopt.study.language.errors.StudyError`.
    """
    folder = Path(base) if base else Path.cwd()
    given = sections.get("model")
    if isinstance(given, FunctionType):
        as_model(given)
    elif isinstance(given, Mapping) and isinstance(given.get("use"), FunctionType):
        as_model(given["use"])
    return Study(study_from_data(sections, base=folder, problem_of=Problem.of, data=_folders(data)))


@_briefly
def minimize(
    function: Callable[..., Any],
    space: Mapping[str, Any],
    objectives: str | Sequence[str | Mapping[str, Any]] | None = None,
    *,
    constraints: Sequence[Mapping[str, Any]] | Mapping[str, Mapping[str, Any]] = (),
    scenarios: Sequence[Mapping[str, Any]] | None = None,
    evaluations: int = 200,
    solver: str | Mapping[str, Any] | None = None,
    seed: int = 0,
    store: str | Path | None = None,
    report: Mapping[str, Any] | None = None,
    execution: Mapping[str, Any] | None = None,
    **options: Any,
) -> Result:
    """Minimise what a plain function returns: a study in one call, as durable and resumable as any other.

    >>> def beam(design):
    ...     return {"mass": design["width"] ** 2, "sag": design["width"] ** -4}
    >>> result = designopt.minimize(beam, {"width": [0.01, 0.1]}, evaluations=100)    # doctest: +SKIP
    >>> result.to_pandas(result.front())                                             # doctest: +SKIP

    `function` is called as `designopt.plugin.as_model` says. `space`, `constraints`, `scenarios`, `report` and
    `execution` are the sections of a study file; constraints may be a mapping from names of outputs to ``{"min": ...,
    "max": ...}``. `objectives` are outputs, or members of the section (``{"maximize": "stiffness"}``); without any the
    function is evaluated once, in the middle of the space, and all that it returns is minimised. Several objectives are
    searched with `nsga2`; one with `cma_es`, if all parameters are real numbers, or else with `genetic`.

    The store is ``results/NAME-DIGEST.study`` unless given; a call with the same arguments goes on there, and with more
    evaluations where `solver` gives its population, which otherwise fits the evaluations. `options` as for `Study.run`.
    On a terminal the progress is shown. Raises `StudyError` and what `Study.run` raises.
    """
    from designopt.run.progress import progress

    given = {"scenarios": scenarios, "report": report, "execution": execution}
    if sys.stderr is not None and sys.stderr.isatty():  # somebody waits for it
        options.setdefault("progress", progress())
    study, place = _minimizing(function, space, objectives, constraints, given, evaluations, solver, seed, store)
    return study.run(place, resume=(place / "journal.db").exists(), **options)


def _minimizing(
    function: Callable[..., Any],
    space: Mapping[str, Any],
    objectives: str | Sequence[str | Mapping[str, Any]] | None,
    constraints: Sequence[Mapping[str, Any]] | Mapping[str, Mapping[str, Any]],
    given: Mapping[str, Any],
    evaluations: int,
    solver: str | Mapping[str, Any] | None,
    seed: int,
    store: str | Path | None,
) -> tuple[Study, Path]:
    """The study of `minimize`, and where its results go."""
    from designopt.workers.evaluation.evaluate import middle

    if not isinstance(space, Mapping):
        raise PluginError(
            f"space is {type(space).__name__}; give each parameter its range: {{'stiffness': [1e3, 5e3]}}"
        )
    plugin = as_model(function)
    refuse_while_loading()
    sections: dict[str, Any] = {"study": plugin.name, "model": {"use": function}, "space": dict(space), "seed": seed}
    sections |= {key: value for key, value in given.items() if value is not None}
    if objectives is None and not plugin.outputs:
        objectives = middle(define(**sections, **_ONE).definition)
    names = (
        [objectives] if isinstance(objectives, str) else list(objectives if objectives is not None else plugin.outputs)
    )
    sections["objectives"] = [{"minimize": item} if isinstance(item, str) else dict(item) for item in names]
    if isinstance(constraints, Mapping):
        for name, limits in constraints.items():
            if not isinstance(limits, Mapping):
                raise PluginError(f"the limits of '{name}' are {limits!r}; write {{'{name}': {{'max': ...}}}}")
        constraints = [{"of": name, **limits} for name, limits in constraints.items()]
    if constraints:
        sections["constraints"] = list(constraints)
    several = len(names) > 1
    real = all(p.kind in ("real", "fixed") for p in define(**{**_ONE, **sections}).definition.space)
    chosen = solver or ("nsga2" if several else "cma_es" if real and len(space) > 1 else "genetic")
    sections["solver"] = {"use": chosen} if isinstance(chosen, str) else dict(chosen)
    study = define(**sections, budget={"evaluations": evaluations})
    place = Path(store) if store else Path("results") / f"{plugin.name}-{_digest(study.definition)}.study"
    return study, place


#: What a study is checked with before its objectives and its solver are known.
_ONE: Mapping[str, Any] = {
    "objectives": [{"minimize": VALUE}],
    "solver": {"use": "random", "samples": 1},
}


def _digest(study: definitions.StudyDefinition) -> str:
    """A few letters that stand for all of a study but how long it searches, and where."""
    from designopt.store import archive

    data = archive.encode(study)
    asked = [{**stage, "budget": None} for stage in data["stages"]]
    text = json.dumps({**data, "stages": asked, "execution": None}, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=3).hexdigest()


@_briefly
def open_store(path: str | Path, *, data: Mapping[str, str | Path] | None = None) -> Result:
    """What a run left in the folder `path`, read-only; runs nothing. Raises `StoreError` when it is not a store.

    Only who evaluates designs again needs the folders `data` of its data roots.
    """
    from designopt.store.result import Result

    return Result.open(Path(path), data=_folders(data))


@_briefly
def resume(
    store: str | Path,
    *,
    plugin_files: Sequence[str | Path] = (),
    data: Mapping[str, str | Path] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Result:
    """Continue the run that left `store`, from the study kept in it. Options as for `Study.run`.

    Files that the run was given as plugins, and the folders of data roots, must be given again: a store brings neither
    code nor the files of data roots.
    """
    from designopt.run.runner import resume_study

    contents = _contents(plugin_files)
    return resume_study(Path(store), plugin_files=contents, data=_folders(data), progress=progress, **options)


@_briefly
def compare(stores: Sequence[Result | str | Path], page: str | Path = "comparison.html") -> Path:
    """Write one page that puts several stores (results, or their folders) side by side, and return its path.

    Raises `StoreError` for a folder that is not a store, `ValueError` for fewer than two and for stores that have no
    objective in common, `OSError` when the page cannot be written.
    """
    from designopt.report.comparison.page import write_comparison
    from designopt.store.result import Result

    results = [store if isinstance(store, Result) else Result.open(Path(store)) for store in stores]
    return write_comparison(results, Path(page))


@_briefly
def export(
    result: Result | str | Path, folder: str | Path | None = None, formats: Sequence[str] = ("parquet", "csv")
) -> list[Path]:
    """Write a result (or that of a store's folder) as files and return them: all designs as a table (``parquet``,
    ``csv``), the kept arrays with named axes (``netcdf``).

    `folder` is made when it is not there; without one the files go into the store. What they hold: `designopt.exports`.
    Raises `designopt.exports.ExportError`, with a sentence, and `OSError`.
    """
    from designopt import exports
    from designopt.store.result import Result

    opened = result if isinstance(result, Result) else Result.open(Path(result))
    place = Path(folder) if folder is not None else opened.path
    place.mkdir(parents=True, exist_ok=True)
    return exports.export(opened, place, formats)


def _folders(data: Mapping[str, str | Path] | None) -> dict[str, Path]:
    return {name: Path(folder) for name, folder in (data or {}).items()}


def _contents(files: Sequence[str | Path]) -> tuple[tuple[str, bytes], ...]:
    return tuple((str(file), Path(file).read_bytes()) for file in files)
