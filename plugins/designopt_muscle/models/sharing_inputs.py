"""Inputs of muscle sharing from a design and a scenario."""

from __future__ import annotations

from typing import Annotated, TypedDict

from designopt_mechanics.sharing.statement.criteria import CriterionName

from designopt.plugin import InputFile
from designopt.plugin import Quantity as Q


class SharingDesign(TypedDict, total=False):
    """Values of a design."""

    strength: Annotated[float, Q("", "factor on the forces of all muscles", gt=0, default=1.0)]
    criterion: Annotated[CriterionName, Q("", "what is minimised", default="power")]
    exponent: Annotated[float, Q("", "of the criterion 'power'", ge=1, le=50, default=2.0)]
    stiffness: Annotated[float, Q("N m/rad", "of a spring at the assisted coordinate", ge=0, default=0.0)]
    rest: Annotated[float, Q("rad", "coordinate at which the spring is relaxed", default=0.0)]
    assistance: Annotated[
        float, Q("", "share of the required moment that a drive provides there", ge=0, le=1, default=0.0)
    ]


class SharingScenario(TypedDict, total=False):
    """The trial; the bundled walking leg where none is named."""

    motion: Annotated[InputFile, Q("", "table of coordinates (MOT, STO or CSV), with net moments or without")]
    moments: Annotated[InputFile, Q("", "table of net moments, COORDINATE_moment, if the motion has none")]


class StaticScenario(SharingScenario, total=False):
    """The trial and the inputs of static sharing alone."""

    emg: Annotated[InputFile, Q("", "measured activity (MOT, STO, CSV or C3D), for the setting 'emg'")]
    external_loads: Annotated[InputFile, Q("", "assignment of recorded forces to bodies (XML of OpenSim)")]
    external_forces: Annotated[InputFile, Q("", "the table of forces, points and torques that 'external_loads' names")]
