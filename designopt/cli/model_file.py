"""A model file of other software, such as an FMU: ``designopt show model.fmu``, ``designopt new fmu model.fmu``."""

from __future__ import annotations

import re
from pathlib import Path

from designopt import plugin
from designopt.cli.exit import WRONG_INPUT, fail
from designopt.files import InputFile


def reader(path: str) -> plugin.ModelPlugin | None:
    """The model that reads the file at `path`: the one named after its suffix; None without one."""
    name = Path(path).suffix.removeprefix(".").lower()
    if not name or name not in plugin.names("model"):
        return None
    try:
        model = plugin.find("model", name)
    except plugin.PluginError as error:
        fail(f"error: {error}", WRONG_INPUT)
    return model if model.has_model_file else None


def table(model: plugin.ModelPlugin, path: str) -> str:
    """The contents of a model file; ends the command if it is unusable."""
    try:
        return str(model.target.file_table(InputFile.at(Path(path), path)))  # type: ignore[attr-defined]
    except (ValueError, OSError) as error:
        fail(f"error: {error}", WRONG_INPUT)


def write_study(model: plugin.ModelPlugin, path: str, output: Path | None, name: str | None) -> tuple[Path, str]:
    """Write a study of the model file beside it, and return its path and the command that runs it.

    Raises `ValueError` for an unusable file, `FileExistsError`, `OSError`.
    """
    file = Path(path)
    target = output or file.with_suffix(".yaml")
    if target.parent.resolve() != file.parent.resolve():
        raise ValueError(f"a study and its files are in one folder: write it to {file.parent}, or copy {file.name}")
    name = name or re.sub(r"\W+", "_", target.stem).strip("_").lower() or "study"
    text = model.target.file_study(InputFile.at(file, file.name), name)  # type: ignore[attr-defined]
    with target.open("x", encoding="utf-8") as stream:
        stream.write(text)
    return target, f"designopt run {target} --allow {file.name}"
