"""The model of a sharing with checks of the names that its settings state."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from designopt_mechanics.robot_files.xml import ModelError

from designopt.plugin import InputFile, InvalidSetting
from designopt.study.language.findings import nearest_or_all
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.osim.read import read_model


def read_muscle_model(file: InputFile) -> OsimModel:
    """The model in a file. Raises `InvalidSetting` for an unusable one and for a model without muscles."""
    try:
        skeleton = read_model(file.content)
    except ModelError as error:
        raise InvalidSetting("model", f"{file.name}: {error}") from None
    if not skeleton.muscles:
        raise InvalidSetting("model", f"{file.name}: has no muscle")
    return skeleton


def check_muscles(setting: str, names: Iterable[str], muscles: Collection[str]) -> None:
    """Raises `InvalidSetting` if a `setting` names a muscle that is not among `muscles`."""
    for name in names:
        if name not in muscles:
            raise InvalidSetting(setting, f"'{name}' is not a muscle{nearest_or_all(name, sorted(muscles))}")
