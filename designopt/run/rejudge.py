"""What is on record judged by other objectives and limits: no simulation, only what was recorded."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from designopt.problem import Problem
from designopt.run import archive
from designopt.run.errors import StoreError
from designopt.study.load import load_text
from designopt.study.study import Constraint, Objective, Study

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from designopt.run.result import Result

#: What may change without a simulation, as fields of a study.
FREE = ("title", "description", "objectives", "constraints", "figures", "plots", "choose", "reference", "export")
#: Other fields, as the file calls them.
_SAID = {"name": "study"}


def changed_study(result: Result, overrides: Sequence[str]) -> Study:
    """The study of `result` with ``key=value`` texts applied to its file, checked again.

    Raises `StudyError` for texts that make no study, `StoreError` for a change that would need a simulation.
    """
    study, path = result.study, result.path
    if not study.text:
        raise StoreError(f"{path}: has no study.yaml, so nothing of it can be changed afterwards", path)
    files = {file.name: file.content for file in archive.files(study)}
    stored = load_text(study.text, f"{path}/study.yaml", files=files)
    if Problem.of(stored).digest != result.recorded_problem.digest:
        raise StoreError(
            f"{path}: study.yaml does not pose the problem that was run (it was changed, or plugins of other versions"
            " are installed), so it cannot be judged anew here",
            path,
        )
    changed = load_text(study.text, f"{path}/study.yaml", files=files, overrides=overrides)
    _refuse_simulation(stored, changed, path)
    _refuse_unrecorded(result, changed)
    validate = study.validate
    if validate is not None and changed.validate is not None:
        validate = dataclasses.replace(validate, quantiles=changed.validate.quantiles)
    free: dict[str, Any] = {name: getattr(changed, name) for name in FREE}
    return dataclasses.replace(study, **free, validate=validate, text=changed.text)


def _refuse_simulation(stored: Study, changed: Study, path: Path) -> None:
    before, after = archive.encode(stored), archive.encode(changed)
    different = [
        _SAID.get(name, name)
        for name in before
        if name not in (*FREE, "validate", "relation_texts") and before[name] != after[name]
    ]
    if stored.validate and changed.validate and stored.validate.scenarios != changed.validate.scenarios:
        different.append("report.validate.scenarios")
    elif (stored.validate is None) != (changed.validate is None):
        different.append("report.validate")
    if different:
        raise StoreError(
            f"{path}: '{different[0]}' decides what is computed and cannot be changed afterwards; objectives,"
            " constraints, figures on record, report, title and description can. For anything else begin a new study;"
            f" with start_from: {{store: {path}}} it uses what is known",
            path,
        )


def _refuse_unrecorded(result: Result, changed: Study) -> None:
    """Expressions may use what the journal holds."""
    recorded = result.recorded_problem
    for name, use in changed.figures.items():
        before = recorded.figures.get(name)
        same = before is not None and archive.encoded(before) == archive.encoded(use)
        if not same:
            known = ", ".join(recorded.figures) or "none"
            raise StoreError(
                f"{result.path}: figure '{name}' was not recorded"
                + (" with these settings" if before is not None else "")
                + f" (on record: {known}; outputs of the model are too); it needs a new run",
                result.path,
            )
    given = result.outcomes.figures
    items: list[Objective | Constraint] = [*changed.objectives, *changed.constraints]
    for item in items:
        for name in sorted(item.expression.names):
            if name not in given:
                raise StoreError(
                    f"{result.path}: '{item.name}' needs '{name}', which was not recorded; on record: "
                    + ", ".join(given),
                    result.path,
                )
