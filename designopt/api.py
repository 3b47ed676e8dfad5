"""Python interface: load or define a study, run it, open its results.

Examples:
    >>> import designopt
    >>> result = designopt.load("studies/knee_damper.yaml").run()      # doctest: +SKIP
    >>> result.to_pandas(result.front())                               # doctest: +SKIP
    >>> average = result.with_changes(["objectives.mismatch.over=mean"])   # doctest: +SKIP
    >>> designopt.export(average, "tables", ["parquet"])               # doctest: +SKIP
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from designopt.counts import plural
from designopt.exports.errors import ExportError
from designopt.plugin import (
    Permission,
    PluginError,
    PluginFailed,
    as_model,
    closest,
    load_file,
    with_modules,
)
from designopt.problem import Problem
from designopt.store.errors import RunError
from designopt.study import study as definitions
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_data, study_from_file

if TYPE_CHECKING:
    from designopt.benchmarking.result import BenchmarkResult
    from designopt.run.ask_tell import PendingEvaluation
    from designopt.run.progress import Progress
    from designopt.store.result import Result
    from designopt.workers.evaluation.evaluate import Evaluation

P = ParamSpec("P")
R = TypeVar("R")


def _briefly(function: Callable[P, R]) -> Callable[P, R]:
    """Drop the traceback lines inside designopt from errors that the caller has made in calling `function`."""

    @functools.wraps(function)
    def with_short_traceback(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except PluginFailed as error:  # its cause shows the plugin's own lines
            raise error.with_traceback(None) from error.__cause__
        except (StudyError, RunError, PluginError, ExportError) as error:
            raise error.with_traceback(None) from None

    return with_short_traceback


def _option_names(caller: str, options: Mapping[str, Any], *functions: Callable[..., Any]) -> None:
    """Raise a `TypeError` that names `caller` for a keyword argument that neither the functions `functions` nor
    `run_study` have."""
    from designopt.run.runner import run_study

    names = {
        parameter.name
        for function in (*functions, run_study)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    for name in options.keys() - (names - {"resume"}):
        near = closest(name, sorted(names - {"resume", "start"}))
        hint = f"did you mean '{near}'?" if near else f"it has: {', '.join(sorted(names - {'resume', 'start'}))}"
        raise TypeError(f"{caller}() has no argument '{name}'; {hint}")


@dataclass(frozen=True)
class Study:
    """A checked study, ready to run. `definition` is the content of its file."""

    definition: definitions.StudyDefinition

    def __repr__(self) -> str:
        return (
            f"<Study {self.name}: {self.definition.model.plugin.name}, {plural(len(self.definition.stages), 'stage')}>"
        )

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.definition.name

    @property
    def problem(self) -> Problem:
        """Space, model, scenarios, objectives and constraints."""
        return Problem.from_study(self.definition)

    @property
    def default_store(self) -> Path:
        """Default store of `run`: ``results/<file or study name>.study``."""
        path = self.definition.path
        return Path("results") / f"{path.stem if path else self.name}.study"

    @_briefly
    def run(
        self, store: str | Path | None = None, *, resume: bool = False, replace: bool = False, **options: Any
    ) -> Result:
        """Run all stages and return the result; every evaluation is recorded durably in the folder `store`.

        `options` are those of `designopt.run.runner.run_study`: ``workers``, ``scheduler``, ``executor``, ``progress``,
        ``budget``, ``allow``, ``recall`` (stores whose evaluations with the same keys are taken over). Raises
        `StoreError` if the store exists (``resume=True`` continues it, ``replace=True`` deletes it), is in use or
        cannot be written; `CannotRun`; `FailurePolicyStop`; `Interrupted`.
        """
        from designopt.run.progress import in_notebook, progress
        from designopt.run.runner import run_study
        from designopt.store.folder import replacing

        _option_names("run", options, Study.run)
        path = Path(store) if store else self.default_store
        if in_notebook():
            options.setdefault("progress", progress())
        if resume and replace:
            raise ValueError("a run either continues its store (resume) or replaces it")
        with replacing(path) if replace else contextlib.nullcontext():
            return run_study(self.definition, path, resume=resume, **options)

    @_briefly
    def differences(self, store: str | Path | None = None) -> list[str]:
        """Clauses that say how this study differs from the one in the folder `store`; none if ``run(resume=True)``
        continues it. Raises `StoreError` if it is not a store."""
        from designopt.report.comparison.study_edit import StudyEdit

        return StudyEdit(self.definition, Path(store) if store else self.default_store).differences

    @_briefly
    def rescore(self, store: str | Path | None = None) -> Result:
        """The evaluations in the folder `store` scored by the objectives and limits of this study, without computation.

        Raises `StoreError` if something else differs, or needs an output that was not recorded.
        """
        from designopt.report.comparison.study_edit import StudyEdit

        return StudyEdit(self.definition, Path(store) if store else self.default_store).rescore()

    @_briefly
    def ask(
        self, count: int = 1, *, store: str | Path | None = None, recall: Sequence[str | Path] = ()
    ) -> list[PendingEvaluation]:
        """Up to `count` pending evaluations to be carried out elsewhere: in a laboratory, by another program.

        >>> while asked := study.ask(4):                                              # doctest: +SKIP
        ...     study.tell(asked, [measure(one.values) for one in asked])

        Further calls return the same evaluations until they have results. The store holds the state, so another process
        can continue. The list is empty when the study is complete. Results with the same keys in the stores `recall`
        are taken over. Raises the exceptions of `run`.
        """
        from designopt.run.ask_tell import ask

        return ask(self.definition, Path(store) if store else self.default_store, count, recall)

    @_briefly
    def tell(
        self,
        evaluations: PendingEvaluation | Sequence[PendingEvaluation],
        results: Mapping[str, float] | Sequence[Mapping[str, float] | None] | None,
        *,
        store: str | Path | None = None,
        why: str = "",
        correct: bool = False,
    ) -> list[str]:
        """Record results of evaluations from `ask`: for each, the model's outputs by name, in their units, or None
        without a result (`why` gives the reason). The results are durable when the call returns. With `correct` they
        replace recorded ones, which the journal keeps as events; returns a sentence on each that changed.

        Raises `ValueError` for an output that is missing or not a number and for an evaluation that already has a
        result; `StoreError`.
        """
        from designopt.run.ask_tell import PendingEvaluation, tell

        several = [evaluations] if isinstance(evaluations, PendingEvaluation) else list(evaluations)
        several_results = [results] if results is None or isinstance(results, Mapping) else list(results)
        path = Path(store) if store else self.default_store
        return list(tell(self.definition, path, several, several_results, why, correct=correct).values())

    @_briefly
    def result(self, store: str | Path | None = None) -> Result:
        """The result in the study's store, also while the run continues. Raises `StoreError` if there is no store."""
        from designopt.store.result import Result

        return Result.open(Path(store) if store else self.default_store, self.definition)

    def plot(self, part: str = "", number: int = 0, *, store: str | Path | None = None, **settings: Any) -> Any:
        """Plot the result in the store, see `Result.plot`."""
        return self.result(store).plot(part, number, **settings)

    def _repr_html_(self) -> str:
        """Table of parameters, objectives and limits, for notebooks."""
        from designopt.report.notebook import study_table

        return study_table(self.definition)

    def evaluate(
        self,
        values: Mapping[str, Any],
        *,
        scenario: str | None = None,
        arrays: Sequence[str] = (),
        allow: Sequence[str] = (),
    ) -> Evaluation:
        """Evaluate one design in this process, without recording it. `values` gives all free parameters in the study's
        units.

        `scenario` defaults to the first, `allow` names the programs that the model may run. Raises `KeyError` for an
        unknown or missing name, `CannotRun` for a program that is not allowed.
        """
        from designopt.workers.evaluation.single_designs import evaluate_one

        permission = Permission.from_options(allow)
        return evaluate_one(self.definition, values, scenario=scenario, arrays=arrays, permission=permission)


@_briefly
def load(
    path: str | Path,
    *,
    overrides: Sequence[str] = (),
    plugin_files: Sequence[str | Path] = (),
    data: Mapping[str, str | Path] | None = None,
) -> Study:
    """Load the study file `path` (YAML). `overrides` are texts ``"dotted.key=value"``; `data` gives the folder of each
    data root in the study's file names (``gait:walk.c3d``).

    Raises `designopt.study.language.errors.StudyError` with all mistakes of the file and their positions.
    """
    files = _contents(plugin_files)
    _refuse_text("overrides", overrides)
    study = study_from_file(
        Path(path), overrides=tuple(overrides), plugin_files=files, problem_of=Problem.from_study, data=_folders(data)
    )
    return Study(study)


@_briefly
def define(*, base: str | Path | None = None, data: Mapping[str, str | Path] | None = None, **sections: Any) -> Study:
    """Define a study from Python values: the sections of a study file as keyword arguments, with the same checks.

    File names are relative to `base` (default: the current folder), those of data roots to the folders `data`. A
    decorated model or solver may replace ``use: name``; a plain function that returns numbers may replace the model
    (`designopt.plugin.as_model`). Raises `designopt.study.language.errors.StudyError`.
    """
    folder = Path(base) if base else Path.cwd()
    model = sections.get("model")
    if isinstance(model, FunctionType):
        as_model(model)
    elif isinstance(model, Mapping) and isinstance(model.get("use"), FunctionType):
        as_model(model["use"])
    return Study(study_from_data(sections, base=folder, problem_of=Problem.from_study, data=_folders(data)))


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
    """Minimise what a plain function returns: a study in one call, equally durable and resumable.

    >>> def beam(design):
    ...     return {"mass": design["width"] ** 2, "sag": design["width"] ** -4}
    >>> result = designopt.minimize(beam, {"width": [0.01, 0.1]}, evaluations=100)    # doctest: +SKIP
    >>> result.to_pandas(result.front())                                             # doctest: +SKIP

    `designopt.plugin.as_model` describes how `function` is called. `space`, `constraints`, `scenarios`, `report` and
    `execution` are sections of a study file; `constraints` may also map names of outputs to ``{"min": ..., "max":
    ...}``. `objectives` are outputs, or entries of the section (``{"maximize": "stiffness"}``). Without objectives the
    function is evaluated once, in the middle of the space, and all its outputs are minimised. The default solver is
    `nsga2` for several objectives, `cma_es` for one objective of real parameters, and `genetic` otherwise.

    The default store is ``results/NAME-DIGEST.study``. A call with the same arguments resumes it, also with more
    evaluations if `solver` sets its population (by default the population depends on the number of evaluations).
    `options` are those of `Study.run`. A terminal shows the progress. Raises `StudyError` and the exceptions of
    `Study.run`.
    """
    from designopt.function_study import digest, minimization
    from designopt.run.progress import progress

    _option_names("minimize", options, minimize)
    sections = {
        "objectives": objectives, "constraints": constraints, "solver": solver, "seed": seed,
        "scenarios": scenarios, "report": report, "execution": execution,
    }  # fmt: skip
    if sys.stderr is not None and sys.stderr.isatty():  # in a terminal
        options.setdefault("progress", progress())
    definition = minimization(function, space, sections, evaluations)
    store_path = Path(store) if store else Path("results") / f"{definition.name}-{digest(definition)}.study"
    return Study(definition).run(store_path, resume=(store_path / "journal.db").exists(), **options)


@_briefly
def open_store(
    path: str | Path,
    *,
    plugin_files: Sequence[str | Path] = (),
    data: Mapping[str, str | Path] | None = None,
) -> Result:
    """Open the results of a run in the folder `path`, read-only. Raises `StoreError` if it is not a store.

    Plugin files of the run are needed for `Result.with_changes`, aggregations and parts of the report: a store contains
    no code. `data` gives the folders of data roots; they are needed only to evaluate designs again.
    """
    from designopt.store.result import Result

    for name, content in _contents(plugin_files):
        load_file(name, content)
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
    """Resume the run in `store`, from the copy of the study in it. `options` are those of `Study.run`.

    Plugin files of the run and folders of data roots must be given again: a store contains neither code nor the files
    of data roots.
    """
    from designopt.run.runner import resume_study

    _option_names("resume", options, resume, resume_study)
    contents = _contents(plugin_files)
    return resume_study(Path(store), plugin_files=contents, data=_folders(data), progress=progress, **options)


@_briefly
def compare(stores: Sequence[Result | str | Path], page: str | Path = "comparison.html") -> Path:
    """Write one page that compares several stores (results, or their folders) and return its path.

    Raises `StoreError` for a folder that is not a store, `ValueError` for fewer than two stores or stores without a
    common objective, `OSError` if the page cannot be written.
    """
    from designopt.report.comparison.page import write_comparison
    from designopt.store.result import Result

    _refuse_text("stores", stores)
    results = [store if isinstance(store, Result) else Result.open(Path(store)) for store in stores]
    return write_comparison(results, Path(page))


@_briefly
def benchmark(
    source: str | Path | Mapping[str, Any],
    folder: str | Path | None = None,
    *,
    workers: int = 1,
    plugin_files: Sequence[str | Path] = (),
    data: Mapping[str, str | Path] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> BenchmarkResult:
    """Compare solvers on problems over seeds: a benchmark file, or a mapping with its keys, in which a `Study` may
    stand for a problem.

    >>> study = designopt.define(...)                                             # doctest: +SKIP
    >>> designopt.benchmark({"benchmark": "mine", "problems": {"beam": study},    # doctest: +SKIP
    ...                      "solvers": {"gp": {"use": "gp"}, "nsga2": {"use": "nsga2", "population": 20}},
    ...                      "seeds": 5, "evaluations": 100})

    Each run is a store in `folder` (default ``results/NAME.benchmark``); the same call continues what was stopped, and
    writes page and tables. `workers` runs are side by side in processes of their own, which import plugin files and
    installed plugins alone. `options` are ``scheduler``, ``allow`` and ``replace`` of
    `designopt.benchmarking.processes.RunOptions`. Raises `StudyError`, `StoreError` for runs of another question,
    `Interrupted`, `OSError`.
    """
    from designopt.benchmarking.file import Reading, benchmark_from_data, read_benchmark
    from designopt.benchmarking.processes import RunOptions
    from designopt.benchmarking.result import read_result
    from designopt.benchmarking.run import run_benchmark

    contents = _contents(plugin_files)
    if isinstance(source, Mapping):
        problems = source.get("problems")
        entries = dict(problems) if isinstance(problems, Mapping) else {}
        studies = {}
        for name, entry in entries.items():
            study = entry.get("study") if isinstance(entry, Mapping) else entry
            if isinstance(study, Study):
                studies[name] = study.definition
                entries[name] = {**(entry if isinstance(entry, Mapping) else {}), "study": study.name}
        sections = {**source, "problems": entries} if entries else source
        statement = benchmark_from_data(sections, Path.cwd(), Reading(contents, _folders(data), studies))
    else:
        statement = read_benchmark(Path(source), Reading(contents, _folders(data)))
    run_options = RunOptions(workers=workers, data=_folders(data), **options)
    target = Path(folder) if folder is not None else statement.default_store
    result = read_result(statement, target, run_benchmark(statement, target, run_options, progress))
    result.write()
    return result


@_briefly
def export(
    result: Result | str | Path, folder: str | Path | None = None, formats: Sequence[str] = ("parquet", "csv")
) -> list[Path]:
    """Export a result (or the store in a folder) to files and return their paths: all designs as a table (``parquet``,
    ``csv``), the stored arrays with named axes (``netcdf``).

    `folder` is created if missing; the default is the store. `designopt.exports` describes the contents. Raises
    `designopt.exports.ExportError` and `OSError`.
    """
    from designopt import exports
    from designopt.store.result import Result

    _refuse_text("formats", formats)
    store_result = result if isinstance(result, Result) else Result.open(Path(result))
    target = Path(folder) if folder is not None else store_result.path
    target.mkdir(parents=True, exist_ok=True)
    return exports.export(store_result, target, formats)


def _refuse_text(name: str, entries: object) -> None:
    """Raise a `TypeError` for one text or path where a list is expected: its letters would be the entries."""
    if isinstance(entries, (str, Path)):
        raise TypeError(f"{name} is a list: write {name}=[{str(entries)!r}]")


def _folders(data: Mapping[str, str | Path] | None) -> dict[str, Path]:
    return {name: Path(folder) for name, folder in (data or {}).items()}


def _contents(files: Sequence[str | Path]) -> tuple[tuple[str, bytes], ...]:
    _refuse_text("plugin_files", files)
    return tuple(entry for file in files for entry in with_modules(str(file), Path(file).read_bytes()))
