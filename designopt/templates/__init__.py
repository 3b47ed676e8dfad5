"""Templates of ``designopt new``: study files and plugins that run unchanged.

A template is a file or a folder beside this module; its files end in ``.template``. The given name replaces
``{{name}}`` in a text and ``NAME`` in a file name, the path of the written file ``{{file}}``.
"""

from __future__ import annotations

import keyword
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from designopt.plugin import closest

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SUFFIX = ".template"


@dataclass(frozen=True)
class Template:
    """A template: its meaning, and the commands to run next (``{place}`` is the path of the new files)."""

    name: str
    meaning: str
    next: tuple[str, ...]


@dataclass(frozen=True)
class WrittenStudy:
    """The new files, and the commands to run next."""

    files: tuple[Path, ...]
    next: tuple[str, ...]


TEMPLATES: Mapping[str, Template] = {
    t.name: t
    for t in (
        Template(
            "damper",
            "a study file: stiffness and damping of the bundled prosthetic knee",
            ("designopt validate {place}", "designopt run {place}"),
        ),
        Template(
            "isolation",
            "a folder with a model in one Python file, and a study file that uses it",
            (
                "cd {place}",
                "designopt validate {name}.yaml --plugin {name}.py",
                "designopt run {name}.yaml --plugin {name}.py",
            ),
        ),
        Template(
            "drive",
            "a folder with a model declared by its equations of motion, and its study",
            (
                "cd {place}",
                "designopt validate {name}.yaml --plugin {name}.py",
                "designopt run {name}.yaml --plugin {name}.py",
            ),
        ),
        Template(
            "program",
            "a folder with an external program, the template of its input file, and its study",
            ("cd {place}", "designopt validate {name}.yaml", "designopt run {name}.yaml --allow python3"),
        ),
        Template(
            "controller",
            "a folder with a recorded step response, and the study of a PID controller for its plant",
            ("cd {place}", "designopt validate {name}.yaml", "designopt run {name}.yaml"),
        ),
        Template(
            "experiment",
            "a folder with a study whose evaluations are experiments in a laboratory, asked and told by CSV",
            (
                "cd {place}",
                "designopt validate {name}.yaml --plugin {name}.py",
                "designopt ask {name}.yaml --plugin {name}.py -n 4",
            ),
        ),
        Template(
            "plugin",
            "a package that installs a model and an objective by name, with a study and tests",
            ("cd {place}", "pip install -e .", "python -m pytest", "designopt run {name}.yaml"),
        ),
    )
}


def write(template: str, target: Path | None = None, name: str | None = None) -> WrittenStudy:
    """Write `template` to `target` (default: named after `name`).

    `name` is that of the study, and of the model and package if the template has them. Raises `ValueError` for an
    unknown template or an invalid name, `FileExistsError` if a file exists (nothing is written then), `OSError` if a
    file cannot be written.
    """
    from importlib.resources import files  # here: the command line imports this module for its help

    if template not in TEMPLATES:
        near = closest(template, TEMPLATES)
        hint = f"did you mean '{near}'?" if near else f"there are {', '.join(TEMPLATES)}"
        raise ValueError(f"no template named '{template}'; {hint}")
    name = _valid_name(name if name is not None else _default_name(template, target))
    source = files("designopt.templates")
    single = source / f"{template}.yaml{SUFFIX}"
    if single.is_file():
        destination = target or Path(f"{name}.yaml")
        texts = {destination: single}
    else:
        destination = target or Path(name)
        texts = {destination / path.replace("NAME", name): text for path, text in _template_files(source / template)}
        if destination.exists() and (not destination.is_dir() or any(destination.iterdir())):
            raise FileExistsError(17, "exists already", str(destination))
    for file in texts:
        if file.exists():
            raise FileExistsError(17, "exists already", str(file))
    for file, text in texts.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            content = text.read_text(encoding="utf-8").replace("{{name}}", name)
            stream.write(content.replace("{{file}}", shlex.quote(str(file))))
    steps = tuple(step.format(place=shlex.quote(str(destination)), name=name) for step in TEMPLATES[template].next)
    return WrittenStudy(tuple(texts), steps)


def _default_name(template: str, target: Path | None) -> str:
    if target is None:
        return "my_plugin" if template == "plugin" else template
    return target.stem if target.suffix in (".yaml", ".yml") else target.name


def _valid_name(name: str) -> str:
    """A valid name for a module, a plugin and a study."""
    if not name.isascii() or not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        raise ValueError(
            f"'{name}' cannot be a name here: it takes lower-case letters, digits and underscores, a letter first; "
            "give one with --name"
        )
    if name.startswith("_") or _is_reserved(name):
        raise ValueError(f"'{name}' cannot be a name here: it is taken; give one with --name")
    return name


def _is_reserved(name: str) -> bool:
    """Whether a module or a distribution has the name: installing another one would replace it."""
    import importlib.metadata
    import importlib.util

    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return importlib.util.find_spec(name) is not None
    return True


def _template_files(folder: Traversable, path: str = "") -> Iterator[tuple[str, Traversable]]:
    """Files of a template by relative path, without the suffix."""
    for item in sorted(folder.iterdir(), key=lambda i: i.name):
        if item.is_dir():
            yield from _template_files(item, f"{path}{item.name}/")
        elif item.name.endswith(SUFFIX):
            yield path + item.name.removesuffix(SUFFIX), item
