"""Model files that come with the package, by name."""

from __future__ import annotations

from importlib.resources import files

from designopt.plugin import closest
from designopt_wholebody.model.reading import read_model
from designopt_wholebody.model.schema import BodyModel


def bundled_names() -> tuple[str, ...]:
    """Names of the bundled models."""
    folder = files("designopt_wholebody.model").joinpath("files")
    return tuple(sorted(p.name.removesuffix(".yaml") for p in folder.iterdir() if p.name.endswith(".yaml")))


def content_of(name: str) -> bytes:
    """The file of a bundled model; raises `KeyError` with a sentence for an unknown name."""
    model_names = bundled_names()
    if name not in model_names:
        near = closest(name, model_names)
        hint = f"did you mean '{near}'?" if near else f"known: {', '.join(model_names)}"
        raise KeyError(f"there is no model '{name}'; {hint}")
    return files("designopt_wholebody.model").joinpath("files", f"{name}.yaml").read_bytes()


def load_model(name: str) -> BodyModel:
    """A bundled model; raises `KeyError` for an unknown name."""
    return read_model(content_of(name), f"{name}.yaml", content_of)
