"""A name says what it holds: bare participles and words without content are allowed only for the reasons below."""

import ast
import builtins
import functools
import importlib.util
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Words from which a reader learns when a value came, not what it is; within longer names they are fine.
# fmt: off
WORDS = {
    "found", "given", "made", "known", "own", "said", "wanted", "taken", "kept", "asked", "seen", "told", "held",
    "done", "got", "written", "called", "meant", "sent", "shown", "drawn", "begun", "put", "set_up", "everything",
    "anything", "something", "whole", "these", "those", "others", "other", "two", "both", "all_", "here", "there",
    "now", "again", "place", "like", "of",
}
# fmt: on
#: The names that stay, by file: users write them, or other files and pages read them.
REASONS = {
    ("designopt/study/sections/choose.py", "of"): "key of the study language",
    ("designopt/study/sections/schema.py", "of"): "key of the study language",
    ("designopt/report/parts/motion/frames.py", "of"): "setting of a part of the report",
    ("designopt/solvers/collocation/solver.py", "held"): "setting of a solver",
    ("designopt/study/study.py", "of"): "the form of the study in stores",
    ("designopt/store/views/table.py", "of"): "key in exported tables",
    ("designopt/desk/folder.py", "place"): "key in what the desk's page reads",
    ("plugins/designopt_wholebody/model/schema.py", "of"): "key of body models",
}


@functools.cache
def sources(folder: str) -> dict[Path, ast.Module]:
    """The modules of a folder."""
    return {p: ast.parse(p.read_text(encoding="utf-8")) for p in sorted((ROOT / folder).rglob("*.py"))}


def bound_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        yield from bound_names_of(node)


def bound_names_of(node: ast.AST) -> Iterator[str]:
    """The names that `node` binds itself."""
    if isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name


def test_every_name_says_what_it_holds_or_stays_for_a_reason() -> None:
    empty = {
        (path.relative_to(ROOT).as_posix(), name)
        for folder in ("designopt", "plugins", "tests")
        for path, tree in sources(folder).items()
        for name in bound_names(tree)
        if name.strip("_") in WORDS
    }
    assert empty == set(REASONS)


#: Bare participles and words without content besides those above, but for those that the field uses alone (a mask
#: `failed`, the sides left and right), and how many names of a folder may be such words: each change may only lower it.
EMPTY = re.compile(
    "[a-z]+ed|others|one|both|rest|some|most|more|less|then|once|which|what|them|places|placed|chosen|broken|written|"
    "drawn|shown|begun"
)
# fmt: off
TERMS = {
    "speed", "seed", "need", "feed", "failed", "converged", "fixed", "scaled", "compiled", "squared", "cached",
    "observed", "shared", "based",
}
# fmt: on
EMPTY_NAMES = {"designopt": 37, "plugins": 34}


@pytest.mark.parametrize("folder", EMPTY_NAMES)
def test_names_without_content_become_fewer(folder: str) -> None:
    counts = Counter(
        name.strip("_")
        for tree in sources(folder).values()
        for node in ast.walk(tree)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for name in bound_names_of(node)
    )
    empty = {name: n for name, n in counts.items() if EMPTY.fullmatch(name) and name not in TERMS}
    assert sum(empty.values()) <= EMPTY_NAMES[folder]


def test_readers_meet_one_word_for_controllers() -> None:
    """Only the package and two settings of the vehicle, whose names are in stored keys, are called otherwise."""
    kept_names = re.compile(r"designopt_regulator|models_regulator|test_bench_regulator|(course|speed)_regulator")
    texts = [
        path
        for folder in ("designopt", "docs", "plugins", "studies", "README.md", "mkdocs.yml")
        for path in [ROOT / folder, *(ROOT / folder).rglob("*")]
        if path.suffix in (".py", ".c", ".md", ".yml", ".yaml", ".jinja", ".js", ".css")
    ]
    assert len(texts) > 300
    assert [p for p in texts if "regulator" in kept_names.sub("", p.read_text(encoding="utf-8")).lower()] == []


IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def quoted_names(docstring: str) -> list[str]:
    """The names in single back-ticks, of dotted ones each part; literal text of other origin stands in double ones, and
    names of other libraries are theirs."""
    names = re.findall(r"(?<!`)`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)`(?!`)", docstring)
    of_project = [name for name in names if "." not in name or not is_foreign(name.partition(".")[0])]
    return [part for name in of_project for part in name.split(".")]


@functools.cache
def is_foreign(package: str) -> bool:
    return not package.startswith("designopt") and importlib.util.find_spec(package) is not None


def words_of(node: ast.AST) -> set[str]:
    """All names in `node`, and the words of its texts other than docstrings."""
    docstrings = {
        id(n.body[0].value)
        for n in ast.walk(node)
        if isinstance(n, (ast.Module, *DEFINITIONS)) and n.body and isinstance(n.body[0], ast.Expr)
    }
    words: set[str] = set()
    for n in ast.walk(node):
        if isinstance(n, ast.arg | ast.keyword):
            words |= {n.arg or ""}
        elif isinstance(n, ast.Name):
            words |= {n.id}
        elif isinstance(n, ast.Attribute):
            words |= {n.attr}
        elif isinstance(n, DEFINITIONS):
            words |= {n.name}
        elif isinstance(n, ast.alias):
            words |= set(IDENTIFIER.findall(n.asname or n.name))
        elif isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in docstrings:
            words |= set(IDENTIFIER.findall(n.value))
    return words


def of_module(tree: ast.Module) -> set[str]:
    """The words of a module outside of its functions and classes, and the names of those."""
    words = {node.name for node in tree.body if isinstance(node, DEFINITIONS)}
    return words.union(*(words_of(node) for node in tree.body if not isinstance(node, DEFINITIONS)))


@functools.cache
def public_words() -> set[str]:
    """What any docstring may name: functions, classes, fields, constants, modules and plugins of the project, built-in
    names, and the keys of study files and pages."""
    words = set(dir(builtins))
    for path, tree in (sources("designopt") | sources("plugins")).items():
        words |= {path.stem, *path.parts}
        for node in [tree, *(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef))]:
            for statement in node.body:
                targets = statement.targets if isinstance(statement, ast.Assign) else []
                targets = [*targets, statement.target] if isinstance(statement, ast.AnnAssign) else targets
                words |= {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        for node in ast.walk(tree):
            if isinstance(node, DEFINITIONS):
                calls = [d for d in node.decorator_list if isinstance(d, ast.Call)]
                words |= {node.name, *(str(a.value) for d in calls for a in d.args if isinstance(a, ast.Constant))}
    for path in (ROOT / "docs").rglob("*.md"):
        page = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        words |= set(re.findall(r"(?<!`)`([A-Za-z_]\w*)[`:=(]", page))
    for path in (ROOT / "studies").rglob("*.yaml"):
        words |= set(re.findall(r"(?:^|[\s{])([A-Za-z_]\w*):", path.read_text(encoding="utf-8")))
    return words


def unknown_names(node: ast.AST, around: set[str]) -> Iterator[tuple[str, str]]:
    """Names in docstrings of the definitions in `node` that are neither `around` nor in the definition itself."""
    for child in ast.iter_child_nodes(node):
        inner = around
        if isinstance(child, DEFINITIONS):
            names = [n for n in quoted_names(ast.get_docstring(child) or "") if n not in public_words()]
            words = words_of(child) if names or isinstance(child, ast.ClassDef) else set()
            yield from ((child.name, name) for name in names if name not in words and name not in around)
            inner = around | words if isinstance(child, ast.ClassDef) else around
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from unknown_names(child, inner)


def test_a_docstring_names_only_what_exists() -> None:
    """In its definition, its class, its module, or anywhere as a public name."""
    unknown = []
    for path, tree in (sources("designopt") | sources("plugins")).items():
        names = [n for n in quoted_names(ast.get_docstring(tree) or "") if n not in public_words()]
        words = words_of(tree) if names else set()
        unknown += [(path, "module", name) for name in names if name not in words]
        unknown += [(path, *where) for where in unknown_names(tree, of_module(tree))]
    assert unknown == []


def test_a_former_name_in_a_docstring_is_noticed() -> None:
    text = '''class Curve:
    """A curve through `points`, drawn up to `limit_of_before`, as `Curve.drawn_before` and `math.pi`."""

    points: tuple[float, ...]

    def at(self, time: float) -> float:
        """The value at `time` of the `points`, by `interpolated_before`."""
        return self.points[0] + time
'''
    tree = ast.parse(text)
    unknown = list(unknown_names(tree, of_module(tree)))
    assert unknown == [("Curve", "limit_of_before"), ("Curve", "drawn_before"), ("at", "interpolated_before")]
