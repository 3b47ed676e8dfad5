"""Modules beside a plugin file: those that it imports are read, stored and sent to workers with it.

They are files of their own in every list of plugin files, named ``FILE.py|MODULE``, each before those that import it.
"""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

#: Between the plugin file and the module in the name of a module beside it.
BESIDE = "|"


def plugin_file_of(name: str) -> tuple[str, str]:
    """The plugin file and the module of an entry in a list of plugin files; the module is "" for the file itself."""
    file, _, module = name.partition(BESIDE)
    return file, module


def path_of(name: str) -> str:
    """The path of an entry in a list of plugin files."""
    file, module = plugin_file_of(name)
    return str(Path(file).with_name(f"{module}.py")) if module else file


def folder_hint(path: str, error: BaseException) -> str:
    """Why the file at `path` cannot import a folder beside it, with the way out; "" for any other `error`."""
    module = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if not module or not Path(path).with_name(module).is_dir():
        return ""
    return (
        f"; {module} beside it is a folder, and files alone are taken along: write {module}.py, or install the folder"
    )


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def with_modules(name: str, content: bytes, read: Callable[[Path], bytes | None] = _content) -> list[tuple[str, bytes]]:
    """The plugin file `name` with its `content`, after the modules beside it that it imports, directly or by way of
    others. `read` returns the content of a file, None if it does not exist."""
    folder, modules = Path(name).parent, {Path(name).stem: content}
    entries: list[tuple[str, bytes]] = []

    def add(importing: bytes) -> None:
        for module in _imports(importing):
            if module in modules or (text := read(folder / f"{module}.py")) is None:
                continue
            modules[module] = text
            add(text)
            entries.append((f"{name}{BESIDE}{module}", text))

    add(content)
    return [*entries, (name, content)]


def _imports(content: bytes) -> list[str]:
    """The top-level modules that a file imports anywhere; without those of Python and of designopt."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # reported when it is loaded
        return []
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.append(node.module)
    tops = dict.fromkeys(name.partition(".")[0] for name in names)
    return [top for top in tops if top not in sys.stdlib_module_names and top != "designopt"]


@contextlib.contextmanager
def importable(modules: Mapping[str, ModuleType]) -> Iterator[None]:
    """Context in which the `modules` are imported by their names, in place of others of these names."""
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
