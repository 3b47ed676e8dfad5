"""The study of a plain function: sections that follow from the function and its space."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from designopt.plugin import PluginError, as_model, refuse_while_loading
from designopt.plugin.plain_function import VALUE
from designopt.problem import Problem
from designopt.store import archive
from designopt.study.load import study_from_data
from designopt.study.study import StudyDefinition
from designopt.workers.evaluation.single_designs import middle

#: Objectives and solver of the first check, before the outputs are known.
_ONE: Mapping[str, Any] = {
    "objectives": [{"minimize": VALUE}],
    "solver": {"use": "random", "samples": 1},
}


def minimization(
    function: Callable[..., Any], space: Mapping[str, Any], stated_sections: Mapping[str, Any], evaluations: int
) -> StudyDefinition:
    """The study that minimises what `function` returns; `stated_sections` are the arguments of `designopt.minimize`
    that are sections, None where omitted. Raises `PluginError` and `StudyError`."""
    if not isinstance(space, Mapping):
        raise PluginError(
            f"space is {type(space).__name__}; give each parameter its range: {{'stiffness': [1e3, 5e3]}}"
        )
    plugin = as_model(function)
    refuse_while_loading()
    sections: dict[str, Any] = {"study": plugin.name, "model": {"use": function}, "space": dict(space)}
    sections |= {key: value for key, value in stated_sections.items() if value is not None}
    objectives, constraints, solver = (sections.pop(key, None) for key in ("objectives", "constraints", "solver"))
    if objectives is None and not plugin.outputs:
        objectives = middle(_study_definition({**sections, **_ONE}))
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
    real = all(p.kind in ("real", "fixed") for p in _study_definition({**_ONE, **sections}).space)
    solver_name = solver or ("nsga2" if several else "cma_es" if real and len(space) > 1 else "genetic")
    sections["solver"] = {"use": solver_name} if isinstance(solver_name, str) else dict(solver_name)
    return _study_definition({**sections, "budget": {"evaluations": evaluations}})


def _study_definition(sections: Mapping[str, Any]) -> StudyDefinition:
    return study_from_data(sections, base=Path.cwd(), problem_of=Problem.from_study)


def digest(study: StudyDefinition) -> str:
    """Short digest of a study without its budget."""
    data = archive.encode(study)
    stages = [{**stage, "budget": None} for stage in data["stages"]]
    text = json.dumps({**data, "stages": stages, "execution": None}, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=3).hexdigest()
