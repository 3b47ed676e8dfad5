"""Reading and checking of study files: from text (or Python values) to a `StudyDefinition`, or all mistakes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass, replace
from pathlib import Path
from typing import Any

from designopt.files import InputFile, regular_file_status
from designopt.plugin import Plugin, PluginError, closest, load_file
from designopt.study.check import check_study
from designopt.study.language.checking.part import Part, as_part
from designopt.study.language.errors import Issue, StudyError, abbreviate
from designopt.study.language.files import NO_FILES, Files, FilesByName, FolderFiles
from designopt.study.language.findings import Finding, issues, nearest_or_all
from designopt.study.language.yaml import MAX_BYTES, MAX_DEPTH, Node, Source, Span, locate, node_of, parse, parse_bytes
from designopt.study.sections.context import Context
from designopt.study.study import StudyDefinition

#: Maximum number of files named in a message.
LISTED = 8
#: Maximum number of letters of a ``--set`` option before a message.
_LABEL = 80

#: A file given with ``--plugin``: its name and content.
PluginFile = tuple[str, bytes]

#: Makes the problem for the solvers' checks (`check`, `minimum_budget`): ``designopt.problem.Problem.from_study``. This
#: layer must not import it.
ProblemOf = Callable[[StudyDefinition], Any]


def study_from_file(
    path: str | Path,
    *,
    overrides: Sequence[str] = (),
    plugin_files: Sequence[PluginFile] = (),
    problem_of: ProblemOf | None = None,
    data: Mapping[str, Path] | None = None,
) -> StudyDefinition:
    """The study in the file at `path`.

    `overrides` are ``key=value`` texts (``space.stiffness.low=1e4``; list elements by position or name) that replace or
    add values. `data` gives the folders of data roots by name. `problem_of` makes the problem for the solvers' checks;
    without it they are skipped. Raises `StudyError` with all mistakes. Nothing is run, but the named plugins are
    imported.
    """
    path = Path(path)
    try:
        regular_file_status(path, path.name, MAX_BYTES)
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        if isinstance(error, FileNotFoundError):
            reason = f"no such file{_nearby_studies(path)}"
        raise StudyError([Issue(str(path), None, None, None, "", reason)]) from None
    except ValueError as error:  # a NUL in the name
        raise StudyError([Issue(repr(str(path)), None, None, None, "", str(error))]) from None
    root = parse_bytes(content, str(path))
    study = _checked_study(root, FolderFiles(path.parent, data), overrides, plugin_files, problem_of, path.parent)
    text = content.decode("utf-8-sig") if not overrides else study.text
    return replace(study, text=text, path=path)


def _nearby_studies(path: Path) -> str:
    """The study file of the folder that was probably intended, else the first ones; "" without any."""
    try:
        study_files = sorted(file.name for file in path.parent.iterdir() if file.suffix in (".yaml", ".yml"))
    except OSError:
        return ""
    near = closest(path.name, study_files)
    if near:
        return f"; did you mean '{path.parent / near}'?"
    ellipsis = ", ..." if len(study_files) > LISTED else ""
    return f" (study files there: {', '.join(study_files[:LISTED])}{ellipsis})" if study_files else ""


def study_from_text(
    text: str,
    name: str,
    base: Path | None = None,
    *,
    files: Mapping[str, bytes | InputFile] | None = None,
    overrides: Sequence[str] = (),
    plugin_files: Sequence[PluginFile] = (),
    problem_of: ProblemOf | None = None,
    data: Mapping[str, Path] | None = None,
) -> StudyDefinition:
    """The study in `text`, with `name` in messages: for text that is not in a file.

    Its files come from `files` (content by name as written) if given, else from the folder `base` and the data roots
    `data`. Raises `StudyError`.
    """
    read: Files = NO_FILES if base is None else FolderFiles(base, data)
    if files is not None:
        read = FilesByName(files)
    study = _checked_study(parse(text, name), read, overrides, plugin_files, problem_of, base)
    return study if overrides else replace(study, text=text)


def study_from_data(
    sections: Mapping[str, Any],
    *,
    base: Path | None = None,
    problem_of: ProblemOf | None = None,
    data: Mapping[str, Path] | None = None,
) -> StudyDefinition:
    """The study with the same keys and values as a file, built in Python.

    A decorated model, solver, objective ... (or an instance of a decorated class) may replace ``{use: name}`` or the
    name in it. Its `text` is an equivalent file. Raises `StudyError` without positions.
    """
    read = NO_FILES if base is None else FolderFiles(base, data)
    return _checked_study(node_of(_python(sections), Source("")), read, (), (), problem_of, base)


def study_from_node(
    root: Node,
    base: Path,
    *,
    plugin_files: Sequence[PluginFile] = (),
    problem_of: ProblemOf | None = None,
    data: Mapping[str, Path] | None = None,
) -> StudyDefinition:
    """The study with the sections of `root`, which may come from several files; its own files are in the folder
    `base`. Its `text` is an equivalent file. Raises `StudyError` with the positions of the mistakes."""
    return _checked_study(root, FolderFiles(base, data), (), plugin_files, problem_of, base)


def plugin_with(plugin: Plugin, overrides: Sequence[str], data: Mapping[str, Path] | None = None) -> Plugin:
    """`plugin` with its declarations for the settings in ``KIND.setting=value`` texts; files are relative to the
    current folder. Raises `StudyError`.
    """
    root = node_of({plugin.kind: {"use": plugin.name}}, Source(""))
    for override in overrides:
        if not override.startswith(f"{plugin.kind}."):
            text = f"a setting of the {plugin.kind} '{plugin.name}' is given as {plugin.kind}.setting=value"
            raise StudyError([Issue(f"--set {override}", None, None, None, "", text)])
        root = _override(root, override)
    settings = {key: value for key, value in root.data()[plugin.kind].items() if key != "use"}
    ctx = Context(FolderFiles(Path.cwd(), data))
    use = ctx.settings(plugin, Part(plugin, settings), (plugin.kind,))
    if use is None or ctx.findings:
        raise StudyError(issues(ctx.findings, root))
    return use.plugin


def _checked_study(
    root: Node,
    files: Files,
    overrides: Sequence[str],
    plugin_files: Sequence[PluginFile],
    problem_of: ProblemOf | None,
    folder: Path | None,
) -> StudyDefinition:
    wrong: list[Issue] = []
    failures = []
    for name, content in plugin_files:
        try:
            load_file(name, content)
        except PluginError as error:
            failures.append(Issue("", None, None, None, "", str(error)))
    file = root
    for override in sorted(overrides, key=lambda text: not text.startswith("stages=")):  # which remove a budget
        try:
            root = _override(root, override)
        except StudyError as error:
            wrong.extend(error.issues)

    def checked(root: Node) -> tuple[StudyDefinition | None, list[Finding]]:
        def on_command_line(path: Sequence[str | int]) -> bool:
            _, node = locate(root, path)
            return node is not None and not node.span.source.lines

        return check_study(root.data(), files, problem_of, folder=folder, on_command_line=on_command_line)

    study, findings = checked(root)
    if findings and overrides:  # not a mistake of the file: it is valid without them
        in_file = set(checked(file)[1])
        override_issues = issues([finding for finding in findings if finding not in in_file], root)
        wrong += [
            i if i.line is None else Issue(_cause(overrides, i), None, None, None, i.path, i.message)
            for i in override_issues
        ]
        findings = [finding for finding in findings if finding in in_file]
    if failures:  # a missing declaration
        findings = [finding for finding in findings if not finding.message.startswith("no plugin named")]
    wrong = [*failures, *issues(findings, root), *wrong]
    if wrong or study is None:
        raise StudyError(wrong)
    return replace(study, text=as_text(root.data()), plugin_files=tuple(plugin_files))


# ------------------------------------------------------------------------------------------------------- overrides


def _cause(overrides: Sequence[str], issue: Issue) -> str:
    """The ``--set`` option that causes an issue in another place: the one whose last key the issue mentions, else the
    keys of all."""
    keys = [override.partition("=")[0].strip() for override in overrides]
    words = set(re.findall(r"\w+", f"{issue.path} {issue.message}"))
    for override, key in zip(overrides, keys, strict=True):
        if len(overrides) == 1 or key.rpartition(".")[2] in words:
            return f"--set {abbreviate(override, _LABEL)}"
    return f"--set {', '.join(dict.fromkeys(keys))}"


def _override(root: Node, override: str) -> Node:
    """`root` with one ``--set key=value`` applied; nodes shared by aliases are replaced, never changed. A list of
    ``stages`` takes the place of the solver and budget of a study without stages."""
    label = f"--set {override}"

    def fail(message: str) -> StudyError:
        return StudyError([Issue(label, None, None, None, "", message)])

    key, equals, value = override.partition("=")
    key = key.strip()
    if not equals or not key or any(not step for step in key.split(".")):
        raise fail("write it as key=value, the key as in space.stiffness.low")
    try:
        value_node = parse(value, label) if value.strip() else node_of(None, Source(label))
    except StudyError as error:
        raise fail(error.issues[0].message) from None
    steps = key.split(".")
    if steps[0] == "stages" and steps[1:] and "solver" in (root.entries or {}) and "stages" not in (root.entries or {}):
        raise fail("the study has one stage without a name: set solver.... or budget...., as in budget.evaluations=200")
    if len(steps) > MAX_DEPTH:
        raise fail(f"nested deeper than {MAX_DEPTH} levels")
    if steps == ["stages"] and root.entries is not None:
        entries = {name: entry for name, entry in root.entries.items() if name not in ("solver", "budget")}
        root = Node(root.span, entries=entries, style=root.style)
    is_null = value_node.entries is None and value_node.items is None and value_node.scalar is None
    if is_null and len(steps) == 1 and root.entries is not None:  # a section, of which none has a meaning without value
        if steps[0] not in root.entries:
            raise fail(f"there is no section '{steps[0]}' to remove{nearest_or_all(steps[0], list(root.entries))}")
        return Node(root.span, entries={k: v for k, v in root.entries.items() if k != steps[0]}, style=root.style)
    return _with_value(root, steps, node_of(value_node.data(), Source(label)), fail)


def _with_value(node: Node, steps: Sequence[str], value: Node, fail: Callable[[str], StudyError]) -> Node:
    if not steps:
        return value
    step, following = steps[0], steps[1:]
    new_key = Span(value.span.source, 0, 0, 0, 0)
    if node.entries is not None or (node.items is None and node.scalar is None):
        entries = dict(node.entries or {})
        span, child = entries.get(step, (new_key, Node(new_key)))
        entries[step] = (span, _with_value(child, following, value, fail))
        return Node(node.span, entries=entries, style=node.style)
    if node.items is not None:
        items = list(node.items)
        index = _index(items, step, fail)
        items[index] = _with_value(items[index], following, value, fail)
        return Node(node.span, items=items, style=node.style)
    raise fail(f"'{step}' cannot be set: its parent is a plain value, not a section")


def _index(items: Sequence[Node], step: str, fail: Callable[[str], StudyError]) -> int:
    """Index of the list element for `step`: a number from 0, or the element's `name` (or `use`)."""
    if re.fullmatch(r"[0-9]{1,6}", step):
        if int(step) < len(items):
            return int(step)
        raise fail(f"there is no element {step}: the list has {len(items)}, counted from 0")
    names = []
    for item in items:
        entries = item.entries or {}
        name_node = next(
            (entries[key] for key in ("name", "use", "minimize", "maximize", "of") if key in entries), None
        )
        names.append(str(name_node[1].scalar) if name_node else str(item.scalar))
    if step in names:
        return names.index(step)
    raise fail(f"there is no element named '{step}'{nearest_or_all(step, names)}")


# ---------------------------------------------------------------------------------------------------- Python values


def _python(value: Any, depth: int = 0) -> Any:
    """Python data with NumPy's scalars and arrays converted."""
    if depth > MAX_DEPTH or as_part(value) is not None:
        return value
    if isinstance(value, Mapping):
        return {key: _python(v, depth + 1) for key, v in value.items()}
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_python(v, depth + 1) for v in value]
    return value


def as_text(data: Any) -> str:
    """`data` as a study file (JSON, which is YAML too); a plugin object becomes its section, a file its name."""
    return json.dumps(_plain_value(data), indent=2, ensure_ascii=False) + "\n"


def _plain_value(value: Any) -> Any:
    part = as_part(value)
    if part is not None:
        assert not isinstance(part.use, str)
        return {"use": part.use.name, **{k: _plain_value(v) for k, v in part.settings.items() if v is not None}}
    if isinstance(value, Mapping):
        outer_part = as_part(value.get("use"))
        if outer_part is not None:
            return {**_plain_value(value["use"]), **{str(k): _plain_value(v) for k, v in value.items() if k != "use"}}
        return {str(k): _plain_value(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain_value(v) for v in value]
    if isinstance(value, InputFile):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return _plain_value(asdict(value))
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else f"{'-' if value < 0 else ''}.inf"
    return value
