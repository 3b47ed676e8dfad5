"""A model file of other software, such as an FMU: ``designopt show model.fmu``, ``designopt new fmu model.fmu``; and
folders of files: ``designopt new laboratory FOLDER``."""

from __future__ import annotations

import re
from pathlib import Path

from designopt import plugin
from designopt.cli.exit import WRONG_INPUT, fail
from designopt.files import InputFile

#: The model, by template, whose studies are written from a folder.
FOLDER_MODELS = {"laboratory": "laboratory_trial"}


def reader(path: str) -> plugin.ModelPlugin | None:
    """The model that reads the file at `path`: the one named after its suffix; None without one."""
    name = Path(path).suffix.removeprefix(".").lower()
    if not name or name not in plugin.names("model"):
        return None
    try:
        model = plugin.find("model", name)
    except plugin.PluginError as error:
        fail(f"error: {error}", WRONG_INPUT)
    return model if model.has("file_table") and model.has("file_study") else None


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


def write_folder_study(
    template: str, folder: str, output: Path | None, name: str | None
) -> tuple[Path, list[str], str]:
    """Write a study of the files in a folder, into it without an `output`; return its path, sentences on what it
    assumes, and the command that runs it. File and study have the name of the folder.

    Raises `ValueError` for a folder without what a study needs, `FileExistsError`, `OSError`.
    """
    try:
        model = plugin.find("model", FOLDER_MODELS[template])
    except plugin.PluginError as error:
        fail(f"error: {error}", WRONG_INPUT)
    name = name or re.sub(r"\W+", "_", Path(folder).resolve().name).strip("_").lower() or template
    target = output or Path(folder) / f"{name}.yaml"
    if target.exists():
        raise FileExistsError(17, "exists already", str(target))
    text, sentences = model.target.folder_study(Path(folder), target, name)  # type: ignore[attr-defined]
    with target.open("x", encoding="utf-8") as stream:
        stream.write(text)
    return target, sentences[:-1], sentences[-1]
