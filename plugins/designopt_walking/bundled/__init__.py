"""The models that studies use unless they name one."""

from importlib.resources import files

from designopt.plugin import InputFile

PLANAR_WALKER, SQUAT_LEG = "planar_walker.osim", "squat_leg.osim"


def planar_walker() -> InputFile:
    """The model ``planar_walker.osim``: 62 kg, ten coordinates, 18 muscles, four contact spheres."""
    return InputFile(PLANAR_WALKER, (files(__name__) / PLANAR_WALKER).read_bytes())


def squat_leg() -> InputFile:
    """The model ``squat_leg.osim``: a leg that stands for two on a foot that stays, three coordinates, nine muscles."""
    return InputFile(SQUAT_LEG, (files(__name__) / SQUAT_LEG).read_bytes())
