"""The walker that studies use unless they name a model."""

from importlib.resources import files

from designopt.plugin import InputFile

PLANAR_WALKER = "planar_walker.osim"


def planar_walker() -> InputFile:
    """The model ``planar_walker.osim``: 62 kg, ten coordinates, 18 muscles, four contact spheres."""
    return InputFile(PLANAR_WALKER, (files(__name__) / PLANAR_WALKER).read_bytes())
