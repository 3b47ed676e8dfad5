"""Rescoring of recorded evaluations by other objectives and limits, without simulations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NoReturn

from designopt.plugin import Use
from designopt.plugin.kinds import P
from designopt.problem import Problem
from designopt.store import archive
from designopt.store.errors import StoreError
from designopt.study.load import study_from_text
from designopt.study.sections import schema
from designopt.study.study import Objective, StudyConstraint, StudyDefinition

#: Sections of a study file that may change without a simulation.
SECTIONS = ("title", "description", "missing", "objectives", "constraints", "figures", "report")
#: The corresponding fields of a study.
FIELDS = (*SECTIONS[:-1], "plots", "choose", "reference", "export")
#: Replacement of the stages, which are complete. Those that name another store could be checked only with that store.
_ANY_STAGE = "stages=[{name: stage, solver: {use: sobol, samples: 1}}]"


def changed_study(
    study: StudyDefinition, path: Path, overrides: Sequence[str], on_record: Callable[[], Collection[str]]
) -> StudyDefinition:
    """`study`, as it was run in the store `path`, with ``key=value`` texts applied to its file, checked again.

    `on_record` gives the names of the figures in the journal. Raises `StudyError` for texts that give an invalid study,
    `StoreError` for a change that needs a simulation.
    """
    if not study.text:
        raise StoreError(f"{path}: has no study.yaml, so it cannot be changed afterwards", path)
    for override in overrides:
        section = override.partition("=")[0].strip().partition(".")[0]
        if section not in SECTIONS and section in schema.SECTIONS:
            _refuse(path, section)
    files = {file.name: file for file in archive.files(study)}
    stages = [_ANY_STAGE] if any(s.start_from and s.start_from.store for s in study.stages) else []
    name = str(path / "study.yaml")
    stored_study = study_from_text(study.text, name, files=files, overrides=stages)
    study_as_run = dataclasses.replace(
        stored_study,
        stages=study.stages,  # solvers decide whether derivatives are recorded, and the mesh of evaluations
        evaluation_options=study.evaluation_options,
        model=_as_run(stored_study.model, study.model),
        figures={name: _as_run(use, study.figures.get(name)) for name, use in stored_study.figures.items()},
    )
    if Problem.from_study(study_as_run).digest != Problem.from_study(study).digest:
        raise StoreError(
            f"{path}: study.yaml differs from the problem that was run (it was changed, or other plugin "
            "versions are installed), so it cannot be re-scored here",
            path,
        )
    new_study = study_from_text(study.text, name, files=files, overrides=[*stages, *overrides])
    if new_study.tolerances != stored_study.tolerances:
        _refuse(path, "report.tolerances")
    text = study.text if stages else new_study.text
    return dataclasses.replace(with_scores_of(new_study, study, path, on_record), text=text)


def with_scores_of(
    new_study: StudyDefinition, study: StudyDefinition, path: Path, on_record: Callable[[], Collection[str]]
) -> StudyDefinition:
    """`study`, as it was run in the store `path`, with the objectives, limits, figures and report of `new_study`.

    Raises `StoreError` for a change that needs a simulation.
    """
    validate = study.validate
    if validate is not None and new_study.validate is not None:
        if new_study.validate.scenarios != validate.scenarios:
            _refuse(path, "report.validate.scenarios")
        validate = dataclasses.replace(validate, quantiles=new_study.validate.quantiles)
    elif new_study.validate is not None:
        _refuse(path, "report.validate")
    _refuse_unrecorded(study, new_study, path, on_record)
    fields: dict[str, Any] = {field: getattr(new_study, field) for field in FIELDS}
    return dataclasses.replace(study, **fields, validate=validate)


def same_evaluations(study: StudyDefinition, new_study: StudyDefinition) -> bool:
    """Whether both studies request the same evaluations of the same designs, up to what is made of their results."""
    theirs = Problem.from_study(new_study)
    ours = dataclasses.replace(
        Problem.from_study(study),
        objectives=theirs.objectives,
        constraints=theirs.constraints,
        missing=theirs.missing,
        figures=theirs.figures,
    )
    return ours.digest == theirs.digest


def _as_run(use: Use[P], before: Use[P] | None) -> Use[P]:
    """`use` with the settings of its plugin when the study ran: a later setting is at its default."""
    if before is None or (before.plugin.name, before.plugin.version) != (use.plugin.name, use.plugin.version):
        return use
    settings_then = before.plugin.settings
    return Use(before.plugin, {name: value for name, value in use.settings.items() if name in settings_then})


def _refuse(path: Path, key: str) -> NoReturn:
    raise StoreError(
        f"{path}: '{key}' determines what is computed and cannot be changed afterwards; objectives, "
        "constraints, recorded figures, report, title and description can. For other changes start a "
        f"new study; with start_from: {{store: {path}}} it reuses recorded evaluations",
        path,
    )


def _refuse_unrecorded(
    study: StudyDefinition, new_study: StudyDefinition, path: Path, on_record: Callable[[], Collection[str]]
) -> None:
    """Reject expressions of figures that are not recorded."""
    for name, use in new_study.figures.items():
        before = study.figures.get(name)
        as_run = before is not None and archive.encode_part(before) == archive.encode_part(_as_run(use, before))
        if not as_run:
            names = ", ".join(study.figures) or "none"
            raise StoreError(
                f"{path}: figure '{name}' was not recorded"
                + (" with these settings" if before is not None else "")
                + f" (on record: {names}; outputs of the model are too); it needs a new run",
                path,
            )
    recorded_names = on_record()
    items: list[Objective | StudyConstraint] = [*new_study.objectives, *new_study.constraints]
    for item in items:
        for name in sorted(item.expression.names):
            if name not in recorded_names:
                raise StoreError(
                    f"{path}: '{item.name}' needs '{name}', which was not recorded; on record: "
                    + ", ".join(recorded_names),
                    path,
                )
