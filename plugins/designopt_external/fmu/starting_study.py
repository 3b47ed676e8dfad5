"""The study that ``designopt new fmu model.fmu`` writes."""

from __future__ import annotations

from designopt_external.fmu.description import Description, FmuVariable, UnusableFmu

#: Number of design parameters in the study.
PARAMETERS = 4
#: Number of design parameters in its comment.
LISTED = 12


def starting_study(description: Description, name: str) -> str:
    """The text of a study file that samples the FMU. Raises `UnusableFmu` if it has no parameter or no signal."""
    ranges = {label: limits for label, v in _parameters(description).items() if (limits := _range(v)) is not None}
    if not ranges:
        raise UnusableFmu(f"{description.file}: has no real parameter or start value that a study could change")
    signals = description.signals
    outputs = [v.label for v in signals.values() if v.is_output] or list(signals)
    if not outputs:
        raise UnusableFmu(f"{description.file}: has no variable over time that a study could measure")
    further_labels = [label for label in description.with_role("parameter") if label not in list(ranges)[:PARAMETERS]][
        :LISTED
    ]
    lines = [
        f"# A study of {description.file}: its variables are listed by  designopt show {description.file}",
        f"study: {name}",
        "model:",
        "  use: fmu",
        f"  file: {description.file}",
        *(["  stop: 1 s"] if description.stop is None else []),
        "  outputs:",
        f"    peak: {{variable: {outputs[0]}, take: largest}}",
        *(f"    # {label}_last: {{variable: {label}, take: last}}" for label in outputs[1:LISTED]),
        "space:",
        *(f"  {label}: {text}" for label, text in list(ranges.items())[:PARAMETERS]),
        *([f"  # others: {', '.join(further_labels)}"] if further_labels else []),
        "objectives:",
        "  - {minimize: peak}",
        "solver: {use: latin_hypercube, samples: 32}",
    ]
    return "\n".join(lines) + "\n"


def _parameters(description: Description) -> dict[str, FmuVariable]:
    """The real parameters, then the start values."""
    parameters = {label: v for label, v in description.with_role("parameter").items() if v.is_real}
    return dict(sorted(parameters.items(), key=lambda item: item[1].varies))


def _range(variable: FmuVariable) -> str | None:
    """A range from half to one and a half times the start value, within the limits of the FMU."""
    try:
        start = float(variable.start)
    except ValueError:
        return None
    low, high = sorted((0.5 * start, 1.5 * start)) if start else (-1.0, 1.0)
    low = low if variable.lower is None else max(low, variable.lower)
    high = high if variable.upper is None else min(high, variable.upper)
    unit = f" {variable.unit}" if variable.unit else ""
    return f"[{low:g}{unit}, {high:g}{unit}]" if low < high else None
