"""Report part `mechanism_scene`: the mechanism of a design in motion, in the plane or in space."""

from __future__ import annotations

from designopt.plugin import report_part
from designopt.report.parts.motion.scene import Scene
from designopt.report.section import Section
from designopt.store.result import Result


@report_part("mechanism_scene", version=1)
def mechanism_scene(result: Result) -> Section | None:
    """The moving drawing of a mechanism, from the arrays `time` and `scene`."""
    return Scene(title="The mechanism in motion")(result)
