"""Benchmark files: problems, solvers and seeds, checked like study files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Required, TypedDict

from pydantic import WrapValidator

from designopt.benchmarking.cells import Benchmark, BenchmarkCell, ProblemStatement, RecordedScore
from designopt.benchmarking.table import read_records
from designopt.files import regular_file_status
from designopt.plugin import Quantity
from designopt.problem import Problem
from designopt.study.language import units
from designopt.study.language.checking.part import PartSection
from designopt.study.language.checking.refusals import value_text
from designopt.study.language.checking.values import check, known_checker
from designopt.study.language.checking.words import LABEL, Label
from designopt.study.language.errors import Issue, StudyError
from designopt.study.language.files import FolderFiles
from designopt.study.language.findings import Finding, issues, nearest
from designopt.study.language.tables import TableError
from designopt.study.language.units import Amount
from designopt.study.language.yaml import MAX_BYTES, Node, Source, locate, node_of, parse, parse_bytes
from designopt.study.load import PluginFile, as_text, study_from_node
from designopt.study.study import StudyDefinition

#: Keys of a study that state its question; a benchmark sets the others.
_QUESTION = (
    "study", "title", "description", "model", "scenarios", "missing", "robust", "space", "relations", "figures",
    "objectives", "constraints", "execution",
)  # fmt: skip
#: Maximum number of cells.
MOST_CELLS = 100_000


class _ProblemSection(TypedDict, total=False):
    """One problem of a benchmark."""

    study: Required[
        Annotated[str | dict[str, Any], Quantity("", "study file, relative to that of the benchmark, or its sections")]
    ]
    reference: Annotated[
        dict[str, Amount], Quantity("", "reference point of the hypervolume, by objective; default: that of the study")
    ]
    best: Annotated[
        float,
        Quantity(
            "", "known hypervolume with this reference, for one objective its known best value; default: of all runs"
        ),
    ]


def _problem(value: Any, handler: Any) -> Any:
    return handler({"study": value} if isinstance(value, str) else value)


class _BenchmarkSection(TypedDict, total=False):
    """A benchmark file."""

    benchmark: Required[Annotated[Label, Quantity("", "name of the benchmark")]]
    title: Annotated[str, Quantity("", "title of one line")]
    description: Annotated[str, Quantity("", "free text")]
    problems: Required[
        Annotated[dict[str, Annotated[_ProblemSection, WrapValidator(_problem)]], Quantity("", "problems by name")]
    ]
    solvers: Required[Annotated[dict[str, PartSection], Quantity("", "solvers with their settings, by name")]]
    seeds: Required[
        Annotated[
            Annotated[int, Quantity("", "number of seeds", ge=1, le=1000)]
            | list[Annotated[int, Quantity("", "seed", ge=0)]],
            Quantity("", "number of seeds, from 0, or a list of them"),
        ]
    ]
    evaluations: Required[Annotated[int, Quantity("", "proposed designs of a run", ge=1)]]
    budgets: Annotated[
        list[Annotated[int, Quantity("", "number of designs", ge=1)]],
        Quantity("", "numbers of designs after which runs are compared; default: a quarter, half, and all"),
    ]
    records: Annotated[str, Quantity("", "table of scores of runs made elsewhere; they are not computed again")]


@dataclass(frozen=True)
class Reading:
    """How a benchmark is read: plugin files as (name, content), folders of data roots, and studies from Python by the
    name of their problem."""

    plugin_files: tuple[PluginFile, ...] = ()
    data: Mapping[str, Path] | None = None
    studies: Mapping[str, StudyDefinition] | None = None


def read_benchmark(path: Path, reading: Reading = Reading()) -> Benchmark:
    """The benchmark in the YAML file `path`. Raises `StudyError` with all mistakes of the file and of its studies for
    these solvers."""
    return _benchmark(_parse(path), path.parent, reading)


def benchmark_from_data(sections: Mapping[str, Any], base: Path, reading: Reading = Reading()) -> Benchmark:
    """The benchmark with the keys and values of a file, built in Python; file names are relative to `base`."""
    return _benchmark(node_of(sections, Source("")), base, reading)


def _parse(path: Path) -> Node:
    try:
        regular_file_status(path, path.name, MAX_BYTES)
        return parse_bytes(path.read_bytes(), str(path))
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise StudyError([Issue(str(path), None, None, None, "", reason)]) from None


def _benchmark(root: Node, base: Path, reading: Reading) -> Benchmark:
    data = root.data()
    if not isinstance(data, Mapping):
        text = f"a benchmark file is a mapping with 'benchmark', 'problems', 'solvers' ..., not {value_text(data)}"
        raise StudyError(issues([Finding((), text)], root))
    if "model" in data and "benchmark" not in data:
        text = "this is a study: run it with designopt run, or name its file under 'problems' of a benchmark file"
        raise StudyError(issues([Finding((), text, "model")], root))
    values, findings = check(known_checker(_BenchmarkSection), data, FolderFiles(base, reading.data))
    findings += _names(data)
    records: tuple[RecordedScore, ...] = ()
    if findings or values is None:
        raise StudyError(issues(findings, root))
    seeds = values["seeds"] if isinstance(values["seeds"], list) else list(range(values["seeds"]))
    budgets = sorted(set(values.get("budgets") or _budgets(values["evaluations"])))
    if values.get("records") is not None:
        try:
            records = read_records(base / values["records"])
        except (TableError, OSError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            findings.append(Finding(("records",), f"'{values['records']}' cannot be read: {reason}"))
    findings += list(_contradictions(values, seeds))
    if findings:
        raise StudyError(issues(findings, root))
    problems, cells = _Cells(root, base, reading, values["evaluations"]).all(seeds)
    return Benchmark(
        values["benchmark"],
        values.get("title") or values["benchmark"],
        values.get("description") or "",
        problems,
        tuple(values["solvers"]),
        tuple(budgets),
        tuple(cells),
        records,
    )


def _budgets(evaluations: int) -> list[int]:
    return [max(1, evaluations // 4), max(1, evaluations // 2), evaluations]


def _names(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Names are those of folders, and must not be missing."""
    for section in ("problems", "solvers"):
        members = data.get(section)
        if not isinstance(members, Mapping):
            continue
        if not members:
            yield Finding((section,), f"at least one of the {section} is needed", key="")
        for name in members:
            if not LABEL.fullmatch(str(name)):
                yield Finding((section,), f"'{name}' is not a name of letters, digits and . + - _", key=str(name))


def _contradictions(values: Mapping[str, Any], seeds: Sequence[int]) -> Iterator[Finding]:
    for i, budget in enumerate(values.get("budgets") or ()):
        if budget > values["evaluations"]:
            yield Finding(("budgets", i), f"a run has {values['evaluations']} evaluations, {budget} is beyond its end")
    if len(set(seeds)) < len(seeds):
        yield Finding(("seeds",), "a seed is listed twice", key="")
    if not seeds:
        yield Finding(("seeds",), "at least one seed is needed", key="")
    cells = len(values["problems"]) * len(values["solvers"]) * len(seeds)
    if cells > MOST_CELLS:
        yield Finding((), f"{cells} runs are more than {MOST_CELLS}")


@dataclass(frozen=True)
class _Cells:
    """Makes the study of each cell from the question of its problem and the solver of the benchmark."""

    root: Node
    base: Path
    reading: Reading
    evaluations: int

    def all(self, seeds: Sequence[int]) -> tuple[tuple[ProblemStatement, ...], list[BenchmarkCell]]:
        """The problems and the cells of all problems, solvers and `seeds`. Raises `StudyError`."""
        wrong: dict[tuple[Any, ...], Issue] = {}
        problems, cells = [], []
        for name in self._members("problems"):
            try:
                question, folder = self._question(name)
            except StudyError as error:
                wrong |= {(issue.file, issue.line, issue.column, issue.message): issue for issue in error.issues}
                continue
            studies = {}
            for solver in self._members("solvers"):
                try:
                    studies[solver] = self._study(question, solver, folder)
                except StudyError as error:
                    for issue in error.issues:
                        wrong.setdefault(
                            (issue.file, issue.line, issue.column, issue.message), _in_benchmark(issue, name, solver)
                        )
            if not studies:
                continue
            first = next(iter(studies.values()))
            best = self._member("problems", name, "best")
            try:
                reference = self._reference_value(name, first)
            except StudyError as error:
                wrong |= {(issue.file, issue.line, issue.column, issue.message): issue for issue in error.issues}
                continue
            problems.append(ProblemStatement(name, first, None if best is None else float(best.scalar), reference))
            for solver, study in studies.items():
                cells += [BenchmarkCell(name, solver, seed, _with_seed(study, seed), folder) for seed in seeds]
        if wrong:
            raise StudyError(sorted(wrong.values(), key=lambda i: (i.file, i.line or 0, i.column or 0)))
        return tuple(problems), cells

    def _members(self, section: str) -> list[str]:
        _, node = locate(self.root, (section,))
        assert node is not None
        return list(node.entries or {})

    def _member(self, *path: str) -> Node | None:
        return locate(self.root, path)[1]

    def _question(self, name: str) -> tuple[dict[str, Any], Path]:
        """The keys of a study that state the problem `name`, with their positions, and the folder of its files."""
        node = self._member("problems", name)
        assert node is not None
        file = node if node.entries is None else node.entries["study"][1]
        source = (self.reading.studies or {}).get(name)
        if file.entries is not None:
            study, folder = file, self.base
        elif source is not None:
            study, folder = parse(source.text, ""), source.path.parent if source.path else self.base
        else:
            path = self.base / str(file.scalar)
            folder = path.parent
            if not path.is_file():
                at = ("problems", name) if file is node else ("problems", name, "study")
                near = nearest(path.name, [p.name for p in folder.glob("*.yaml")]) if folder.is_dir() else ""
                raise StudyError(issues([Finding(at, f"the study '{file.scalar}' does not exist{near}")], self.root))
            study = _parse(path)
            if "model" not in (study.entries or {}):
                at = ("problems", name) if file is node else ("problems", name, "study")
                raise StudyError(issues([Finding(at, f"'{file.scalar}' is no study: it has no model")], self.root))
        entries = {key: entry for key, entry in (study.entries or {}).items() if key in _QUESTION}
        entries.setdefault("study", _entry(name))
        if "execution" in entries:  # arrays of designs are for pages of studies
            span, execution = entries["execution"]
            without_arrays = {key: entry for key, entry in (execution.entries or {}).items() if key != "arrays"}
            entries["execution"] = (span, replace(execution, entries=without_arrays))
        report = _entry({"tolerances": {"neighbours": 0, "front": 0}, "choose": []})
        reference = self._member("problems", name, "reference")
        if reference is None:
            reference = locate(study, ("report", "reference"))[1]
        _, objectives = locate(study, ("objectives",))
        has_single_objective = (
            objectives is not None and len(objectives.items or ()) == 1
        )  # a study has no reference value then
        if reference is not None and not has_single_objective:
            assert report[1].entries is not None
            report[1].entries["reference"] = (reference.span, reference)
        return entries | {"report": report}, folder

    def _reference_value(self, name: str, study: StudyDefinition) -> float | None:
        """The reference value of a problem with one objective, in its unit."""
        node = self._member("problems", name, "reference")
        if node is None or len(study.objectives) != 1:
            return None
        (objective,), path = study.objectives, ("problems", name, "reference")
        if list(node.entries or {}) != [objective.name]:
            raise StudyError(issues([Finding(path, f"give one value, of the objective '{objective.name}'")], self.root))
        try:
            amount = units.parse_amount(str(node.data()[objective.name]))
            return amount.value_in(objective.unit)
        except units.UnitError as error:
            raise StudyError(issues([Finding((*path, objective.name), str(error))], self.root)) from None

    def _study(self, question: Mapping[str, Any], name: str, folder: Path) -> StudyDefinition:
        node = self._member("solvers", name)
        assert node is not None
        budget = self._member("evaluations")
        assert budget is not None
        entries = {
            **question,
            "solver": (node.span, node),
            "budget": (budget.span, Node(budget.span, entries={"evaluations": (budget.span, budget)}, style="{")),
        }
        return study_from_node(
            Node(self.root.span, entries=entries, style="{"),
            folder,
            plugin_files=self.reading.plugin_files,
            problem_of=Problem.from_study,
            data=self.reading.data,
        )


def _entry(value: Any) -> tuple[Any, Node]:
    node = node_of(value, Source(""))
    return node.span, node


def _with_seed(study: StudyDefinition, seed: int) -> StudyDefinition:
    data = parse(study.text, "").data()
    return replace(study, seed=seed, text=as_text({**data, "seed": seed}))


def _in_benchmark(issue: Issue, problem: str, solver: str) -> Issue:
    """An issue of a cell's study in terms of the benchmark: the path of its solver there, and the problem."""
    path = issue.path
    with contextlib.suppress(ValueError):
        head, _, key = path.partition(".")
        if head == "solver":
            path = ".".join(filter(None, ["solvers", solver, key]))
            return replace(issue, path=path, message=f"{issue.message} (problem '{problem}')")
    return issue
