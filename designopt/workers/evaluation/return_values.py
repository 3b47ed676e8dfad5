"""Check of the return values of models and objectives against their declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from designopt.plugin import ObjectivePlugin, closest
from designopt.plugin.calling import code_of, value_text


class WrongAnswer(Exception):
    """A model has returned something other than declared; the text begins with the position of its code."""


def parts(answer: Any, model: str) -> tuple[Any, Mapping[str, Any]]:
    """The outputs and the arrays of a result that has both. Raises `WrongAnswer`."""
    if not isinstance(answer, (tuple, list)) or len(answer) != 2 or not isinstance(answer[1], Mapping):
        raise WrongAnswer(f"{model} declares arrays, so it has to return (outputs, arrays); {_description(answer)}")
    return answer[0], answer[1]


def numbers(
    answer: Any, is_required: Mapping[str, bool], required_names: Sequence[str], model: str
) -> dict[str, float]:
    """The outputs of a model's result: those `is_required`, by name with whether they are required, or without
    declarations all of them, which must include those `required_names`.

    Raises `WrongAnswer` if one is missing or is not a number.
    """
    if not isinstance(answer, Mapping):
        raise WrongAnswer(f"{model} has to return its outputs by name, as a mapping; {_description(answer)}")
    missing = [name for name, is_needed in is_required.items() if is_needed and answer.get(name) is None]
    if missing:
        raise WrongAnswer(
            f"{model} did not return {_names_text(missing)}; it returned {_returned_text(answer)} and declares "
            f"{_names_text(is_required)}"
        )
    returned_outputs = (
        {name: answer[name] for name in is_required if answer.get(name) is not None} if is_required else answer
    )
    outputs = {str(name): _number(name, value, model) for name, value in returned_outputs.items()}
    if lacking := [name for name in required_names if not is_required and name not in outputs]:
        near = closest(lacking[0], outputs)
        hint = f"did you mean '{near}'?" if near else f"it returned {', '.join(outputs) or 'nothing'}"
        raise WrongAnswer(f"{model} returned no '{lacking[0]}', which the study needs; {hint}")
    return outputs


def figure(answer: Any, objective: ObjectivePlugin) -> float:
    """The number that an objective returned. Raises `WrongAnswer` for anything else."""
    try:
        return float(answer)
    except (TypeError, ValueError, OverflowError):
        raise WrongAnswer(f"{code_of(objective)} returned no number, but {value_text(answer)}") from None


def _number(name: object, value: Any, model: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise WrongAnswer(f"{model} returned no number as '{name}', but {value_text(value)}") from None


def _names_text(names: Mapping[Any, Any] | Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "nothing"


def _returned_text(answer: Mapping[Any, Any]) -> str:
    """The names of returned values, with the remark for those that are None."""
    return ", ".join(f"'{name}'" + (" as None" if v is None else "") for name, v in answer.items()) or "nothing"


def _description(answer: Any) -> str:
    return f"it returned {value_text(answer)}"
