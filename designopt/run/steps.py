"""The steps of a run for its display: its stages, then neighbours within tolerances, then validation."""

from __future__ import annotations

from designopt.store.views.tolerances import enough_for
from designopt.study.study import StudyDefinition

#: The steps after the stages, in their order.
TOLERANCES, VALIDATION = "tolerances", "validation"


def steps(study: StudyDefinition) -> tuple[str, ...]:
    """The names of the steps of a run of `study`, as far as the study says so: neighbours within assumed tolerances
    depend on the number of designs, which only a budget in evaluations states."""
    additional_steps = [TOLERANCES] * _has_neighbours(study) + [VALIDATION] * (study.validate is not None)
    return (*(stage.name for stage in study.stages), *additional_steps)


def _has_neighbours(study: StudyDefinition) -> bool:
    tolerances, objectives = study.tolerances, len(study.objectives)
    if tolerances is None or not objectives:
        return False
    if tolerances.neighbours is not None:
        return tolerances.neighbours > 0
    designs = sum(stage.budget.evaluations or 0 for stage in study.stages)
    count = len(study.choose) + (objectives + 1 if objectives > 1 else 1)
    return not tolerances.assumed or designs >= enough_for(count)
