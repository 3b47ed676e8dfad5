"""Whether a library of figures knows all that a figure of ours says."""

from typing import Any


def check_with_plotly(plot: dict[str, Any]) -> None:
    """Raise for an attribute that plotly does not know; the colours of themes count as some colour."""
    from plotly.graph_objects import Figure

    Figure(_without_themes(plot))


def _without_themes(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_themes(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_without_themes(member) for member in value]
    return "#123456" if isinstance(value, str) and value.startswith("@") else value
