"""Names of the two sides of a walker, with the one that has a prosthesis, and their looks in all figures."""

from __future__ import annotations

from collections.abc import Mapping

from designopt.store.result import Result

#: Names of the sides by their letters, right first; "" is what has no side.
SIDES: Mapping[str, str] = {"r": "right", "l": "left", "": ""}
#: Lines of the right side, the left side and what has no side.
STYLES: Mapping[str, Mapping[str, object]] = {
    "r": {"color": "@accent", "width": 2},
    "l": {"color": "@mark", "width": 2, "dash": "dash"},
    "": {"color": "@ink", "width": 2},
}


def prosthetic_side(result: Result) -> str:
    """The letter of the side with the prosthesis; "" of a walker without one."""
    model = result.problem.model
    return str(model.settings.get("side", "")) if model.plugin.name == "amputee_walk" else ""


def side_names(result: Result) -> dict[str, str]:
    """Names of the sides by their letters, as ``prosthesis (right)`` and ``sound leg (left)`` of an amputee."""
    prosthetic = prosthetic_side(result)
    if not prosthetic:
        return dict(SIDES)
    kinds = {side: "prosthesis" if side == prosthetic else "sound leg" for side in "rl"}
    return {side: f"{kinds[side]} ({SIDES[side]})" if side else "" for side in SIDES}


def which_leg(result: Result) -> str:
    """A sentence on the side with the prosthesis; "" of a walker without one."""
    side = prosthetic_side(result)
    if not side:
        return ""
    sound = "l" if side == "r" else "r"
    return (
        f"The {SIDES[side]} leg is the prosthesis: names that end in _{side} are of it, those in _{sound} of the"
        " sound leg."
    )
