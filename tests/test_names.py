"""A name says what it holds: bare participles and words without content are allowed only for the reasons below."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

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
    ("designopt/files.py", "other"): "the argument of `__eq__`",
    ("designopt/study/language/expressions/expression.py", "other"): "the argument of `__eq__`",
    ("tests/designopt_recordings/files/test_many_columns.py", "other"): "the argument of `__eq__`",
}


def bound_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
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
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name in bound_names(ast.parse(path.read_text(encoding="utf-8")))
        if name.strip("_") in WORDS
    }
    assert empty == set(REASONS)


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
