"""Delivery of a problem to workers, and the conditions for a fit worker."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from designopt.files import InputFile
from designopt.plugin import (
    Array,
    Fidelity,
    Field,
    ModelPlugin,
    ObjectivePlugin,
    Permission,
    Plugin,
    PluginError,
    Use,
    find,
    is_installed,
    load_file,
    permission_of,
    with_modules,
)
from designopt.plugin.kinds import P
from designopt.problem import Problem
from designopt.space import Space
from designopt.store import archive
from designopt.store.provenance import versions
from designopt.study.study import DesignVariable, Scenario, Shift, StudyDefinition
from designopt.workers.evaluation.evaluate import NO_PERMISSION, Evaluator, requested_by
from designopt.workers.evaluation.programs import ProgramWorker

#: Limit of a model's set-up in time-outs of an evaluation, and its minimum (s).
PREPARATIONS, PREPARATION = 10.0, 60.0


@dataclass(frozen=True)
class Delivery:
    """A problem in the form sent to workers: names, settings and file contents, no code objects.

    `declarations` are the outputs and arrays that a model declares from its settings: a worker does not call
    `declares`. `required_outputs` are the required outputs of a model that declares none. `fidelity` is that of the
    problem. `programs` is the whole study (in the form of a store, and its files by digest) if a solver solves
    programs. `permission` states what the model may run outside Python.
    """

    model: tuple[str, int, Mapping[str, Any]]
    figures: tuple[tuple[str, str, int, Mapping[str, Any]], ...]
    parameters: tuple[DesignVariable, ...]
    scenarios: tuple[tuple[str, Mapping[str, Any], tuple[Shift, ...]], ...]
    files: tuple[tuple[str, bytes], ...]
    versions: Mapping[str, str]
    gradients: bool = False
    timeout: float | None = None
    preparation: float | None = None
    allow_version_skew: bool = False
    programs: tuple[str, tuple[InputFile, ...]] | None = None
    declarations: tuple[Mapping[str, Field], Mapping[str, Array]] | None = None
    required_outputs: tuple[str, ...] = ()
    fidelity: Fidelity | None = None
    evaluation_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    permission: Permission = NO_PERMISSION

    @classmethod
    def for_problem(
        cls,
        study: StudyDefinition,
        *,
        allow_version_skew: bool = False,
        programs: StudyDefinition | None = None,
        permission: Permission = NO_PERMISSION,
    ) -> Delivery:
        """The delivery of `study`, and of the study `programs` for the programs of its solvers. Raises `PluginError`
        for a plugin that cannot be sent."""
        uses = [study.model, *study.figures.values()]
        files = dict.fromkeys(study.plugin_files)
        problem = Problem.from_study(study)
        for use in [*uses, *study.judging] if programs else uses:
            files.update(dict.fromkeys(_files_of(use.plugin, study)))
        return cls(
            model=(study.model.plugin.name, study.model.plugin.version, dict(study.model.settings)),
            figures=tuple((n, u.plugin.name, u.plugin.version, dict(u.settings)) for n, u in study.figures.items()),
            parameters=study.space,
            scenarios=tuple((s.name, dict(s.values), s.shift) for s in study.scenarios),
            files=tuple(files),
            versions=versions([use.plugin for use in uses]),
            gradients=problem.gradients,
            timeout=study.execution.timeout,
            preparation=preparation_limit(study.execution.timeout),
            allow_version_skew=allow_version_skew,
            programs=_encoded_study(programs) if programs else None,
            declarations=_declarations(study.model.plugin),
            required_outputs=requested_by(problem),
            fidelity=problem.fidelity,
            evaluation_options=problem.evaluation_options,
            permission=permission,
        )

    def for_other_machines(self) -> Delivery:
        """The same for workers of other machines, without paths of this one."""
        programs = self.programs and (self.programs[0], tuple(file.by_digest() for file in self.programs[1]))
        return dataclasses.replace(
            self,
            model=(*self.model[:2], _by_digest(self.model[2])),
            figures=tuple((*figure[:3], _by_digest(figure[3])) for figure in self.figures),
            scenarios=tuple((name, _by_digest(values), shift) for name, values, shift in self.scenarios),
            programs=programs,
        )

    def input_files(self) -> dict[str, InputFile]:
        """The files that workers may request, by digest."""
        files: dict[str, InputFile] = {}
        parts = [self.model[2], *(figure[3] for figure in self.figures), *(values for _, values, _ in self.scenarios)]
        _collect([*parts, *(self.programs[1] if self.programs else ())], files)
        return files

    def build(self) -> Evaluator:
        """The evaluator on a worker. Raises `PluginError` if the worker is unfit."""
        model, figures = self.plugins()
        scenarios = tuple(Scenario(*scenario) for scenario in self.scenarios)
        solve = None
        if self.programs is not None:
            text, files = self.programs
            file_of = {file.digest: file for file in files}
            solve = ProgramWorker.for_study(archive.decode(json.loads(text), file=lambda name, digest: file_of[digest]))
        problem = Problem(
            model,
            Space(self.parameters),
            scenarios,
            objectives=(),
            figures=figures,
            gradients=self.gradients,
            fidelity=self.fidelity,
            evaluation_options=self.evaluation_options,
        )
        return Evaluator.build(
            problem, programs=solve, required_outputs=self.required_outputs, permission=self.permission
        )

    def plugins(self) -> tuple[Use[ModelPlugin], dict[str, Use[ObjectivePlugin]]]:
        """Model and figures on a worker. Raises `PluginError` if they differ.

        Fast: without the model's set-up.
        """
        for name, content in self.files:
            load_file(name, content)
        model = _use_of_version(find("model", self.model[0]), *self.model[1:])
        if self.declarations is not None:
            outputs, arrays = self.declarations
            model = Use(dataclasses.replace(model.plugin, outputs=outputs, arrays=arrays), model.settings)
        permission_of(model, self.permission)
        figures = {n: _use_of_version(find("objective", use), version, s) for n, use, version, s in self.figures}
        if not self.allow_version_skew:
            worker_versions = versions([model.plugin, *(use.plugin for use in figures.values())])
            differences = [
                f"{k} {worker_versions.get(k, 'none')} instead of {v}"
                for k, v in self.versions.items()
                if worker_versions.get(k) != v
            ]
            if differences:
                raise PluginError(
                    f"the worker has other versions: {', '.join(differences)}; install the same there, "
                    "or allow it with --allow-version-skew"
                )
        return model, figures


def _use_of_version(plugin: P, version: int, settings: Mapping[str, Any]) -> Use[P]:
    if plugin.version != version:
        text = f"the worker has version {plugin.version} of {plugin.kind} '{plugin.name}' instead of {version}"
        raise PluginError(text)
    return Use(plugin, settings)


def _declarations(plugin: ModelPlugin) -> tuple[Mapping[str, Field], Mapping[str, Array]] | None:
    """Outputs and arrays in sendable form, of a model that declares them from its settings."""
    if not plugin.has("declares"):
        return None
    return {n: dataclasses.replace(f, annotation=float) for n, f in plugin.outputs.items()}, dict(plugin.arrays)


def _by_digest(value: Any) -> Any:
    """`value` with files by digest only."""
    if isinstance(value, InputFile):
        return value.by_digest()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _by_digest(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
        return dataclasses.replace(value, **fields)
    if isinstance(value, Mapping):
        return {key: _by_digest(item) for key, item in value.items()}
    return type(value)(map(_by_digest, value)) if type(value) in (list, tuple) else value


def _collect(value: Any, files: dict[str, InputFile]) -> None:
    if isinstance(value, InputFile):
        files[value.digest] = value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        _collect([getattr(value, f.name) for f in dataclasses.fields(value)], files)
    elif isinstance(value, Mapping):
        _collect(list(value.values()), files)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, files)


def _encoded_study(study: StudyDefinition) -> tuple[str, tuple[InputFile, ...]]:
    """The whole study without its plugin files, which are sent separately."""
    bare = dataclasses.replace(study, plugin_files=())
    return json.dumps(archive.encode(bare)), tuple(archive.files(bare))


def preparation_limit(timeout: float | None) -> float | None:
    """Time limit of a model's set-up on a worker; None without a time-out."""
    return None if timeout is None else max(PREPARATION, PREPARATIONS * timeout)


def _files_of(plugin: Plugin, study: StudyDefinition) -> list[tuple[str, bytes]]:
    """The file that declares `plugin`, unless workers find it by its entry point or among the study's plugin files."""
    module = getattr(plugin.target, "__module__", "")
    if study.plugin_files and module.startswith("designopt_plugin_"):
        return []
    if is_installed(plugin):
        return []
    if plugin.source is None or not plugin.source.is_file():
        raise PluginError(
            f"{plugin.kind} '{plugin.name}' was defined interactively and cannot be sent to workers; "
            "put it into a file, or use executor 'serial'"
        )
    return with_modules(str(plugin.source), plugin.source.read_bytes())
