"""Dakota's files: the parameters that it gives to a driver, and the results that a driver returns.

Formats: Dakota Reference Manual, "Parameters file format (standard)" and "Results file data format" (Sandia National
Laboratories). Drivers written for Dakota's fork interface work unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from designopt_external.program.numbers import is_number, number


def parameters_file(values: Mapping[str, Any], responses: Sequence[str]) -> str:
    """The text of a parameters file in Dakota's standard format: variables, responses (function values requested: 1),
    derivative variables (the real ones), analysis components (none), number of the evaluation: 1."""
    lines = [_entry(len(values), "variables")]
    lines += [_entry(f"{value:.15e}" if isinstance(value, float) else value, name) for name, value in values.items()]
    lines.append(_entry(len(responses), "functions"))
    lines += [_entry(1, f"ASV_{i}:{name}") for i, name in enumerate(responses, 1)]
    real = [(i, name) for i, (name, value) in enumerate(values.items(), 1) if isinstance(value, float)]
    lines.append(_entry(len(real), "derivative_variables"))
    lines += [_entry(i, f"DVV_{k}:{name}") for k, (i, name) in enumerate(real, 1)]
    lines += [_entry(0, "analysis_components"), _entry(1, "eval_id")]
    return "\n".join(lines) + "\n"


def _entry(value: Any, label: str) -> str:
    return f"{value!s:>24} {label}"


def results(text: str) -> dict[str, float]:
    """The function values of a results file by descriptor, or by their number (``"1"`` ...) if it has none.

    Gradients ``[ ... ]`` and Hessians ``[[ ... ]]`` are skipped. Raises `ValueError` with the line of a mistake; a
    failure that the driver reports (the word ``fail``) is one.
    """
    if text.lstrip().lower().startswith("fail"):
        raise ValueError("line 1: the driver reports a failure ('fail')")
    bare = re.sub(r"\[\[.*?\]\]|\[.*?\]", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL)
    values: dict[str, float] = {}
    count = 0
    for position, line in enumerate(bare.splitlines(), 1):
        words = line.split()
        while words:
            if not is_number(words[0]):
                raise ValueError(f"line {position}: expected a function value, not '{words[0][:40]}'")
            value = number(words.pop(0))
            count += 1
            label = words.pop(0) if words and not is_number(words[0]) else str(count)
            values[label] = value
    return values
