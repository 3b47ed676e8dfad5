"""YAML 1.2, core schema, with positions and limits."""

import sys
import time

import pytest

from designopt.study.language.errors import StudyError
from designopt.study.language.yaml import MAX_BYTES, inner_offset, locate, parse, parse_bytes


@pytest.fixture(params=["libyaml", "python"])
def parser(request, monkeypatch) -> str:
    """Runs a test with PyYAML's C parser and with its Python parser."""
    if request.param == "python":
        monkeypatch.setitem(sys.modules, "yaml.cyaml", None)
    else:
        pytest.importorskip("yaml.cyaml")
    return str(request.param)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2e4", 2e4),
        ("2.0e4", 2e4),
        ("+1.", 1.0),
        (".5", 0.5),
        ("-.5E-3", -0.5e-3),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("-12", -12),
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("y", "y"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("2001-01-01", "2001-01-01"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("'2e4'", "2e4"),
        ('"true"', "true"),
        ("12 kN/m", "12 kN/m"),
        ("=", "="),
        (".inf", float("inf")),
        ("e4", "e4"),
        (".", "."),
        ("-", [None]),
        ("0x", "0x"),
        ("|\n  a\n  b", "a\nb"),
        (">\n  a\n  b", "a b"),
    ],
)
def test_scalars_follow_the_core_schema(parser, text, value) -> None:
    prefix = "a:\n  " if text == "-" else "a: "
    scalar = parse(prefix + text, "t").data()["a"]
    assert scalar == value
    assert type(scalar) is type(value)


def test_positions_of_keys_and_values(parser) -> None:
    root = parse("a:\n  bb: [1, xyz]\n  'c': {d: e f}\n", "t")
    key, node = locate(root, ("a", "bb"))
    assert key[1:] == (1, 2, 1, 4)
    assert node.span[1:] == (1, 6, 1, 14)
    assert locate(root, ("a", "bb", 1))[1].span[1:] == (1, 10, 1, 13)
    assert locate(root, ("a", "c"))[0][1:] == (2, 2, 2, 5)
    assert locate(root, ("a", "c", "d"))[1].span[1:] == (2, 11, 2, 14)
    assert locate(root, ("a", "x")) == (None, None)


def test_columns_count_characters_not_bytes(parser) -> None:
    root = parse("é: {ü: 1}\n", "t")
    assert locate(root, ("é", "ü"))[1].span.column == 7


@pytest.mark.parametrize(
    ("text", "offset", "position"),
    [
        ("a: one two", 4, (0, 7)),
        ("a: 'one two'", 4, (0, 8)),
        ("a: 'it''s two'", 5, (0, 10)),
        ('a: "one two"', 4, (0, 8)),
        ("a: one\n   two", 4, (1, 3)),
        ('a: "on\\x65 two"', 4, None),
        ("a: |\n  one two", 4, None),
    ],
)
def test_places_inside_a_scalar(parser, text, offset, position) -> None:
    node = locate(parse(text, "t"), ("a",))[1]
    assert inner_offset(node, offset) == position


def test_anchors_repeat_values(parser) -> None:
    assert parse("a: &x {b: 1}\nc: [*x, *x]\nd: *x", "t").data()["c"] == [{"b": 1}, {"b": 1}]


def test_aliases_count_with_all_they_repeat(parser) -> None:
    text = "a: &a [" + "1, " * 999 + "1]\nb: [" + ", ".join(["*a"] * 198) + "]\n"
    assert len(parse(text, "t").data()["b"]) == 198
    with pytest.raises(StudyError, match="more than 200000 values"):
        parse(text + "c: [*a, *a, *a]\n", "t")


def test_depth_is_limited_with_aliases_counted(parser) -> None:
    parse("[" * 64 + "]" * 64, "t")
    with pytest.raises(StudyError, match="deeper than 64"):
        parse("[" * 65 + "]" * 65, "t")
    with pytest.raises(StudyError, match="deeper than 64"):
        parse("a: &a " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*a" + "]" * 40, "t")


@pytest.mark.parametrize(
    ("content", "position", "message"),
    [
        (b"a: \xff", (1, 4), "byte 0xff is not"),
        ("a: 1\nb: é".encode("latin-1"), (2, 4), "UTF-8"),
        ("a: 1".encode("utf-16"), (1, 1), "UTF-8"),
        (b"a: 1\nb: \x00", (2, 4), "U+0000"),
        (b"", (1, 1), "empty"),
        (b"# only a comment\n", (1, 1), "empty"),
        (b"x" * (MAX_BYTES + 1), (1, 1), "at most 4 MiB"),
        (b"a: " + b"9" * 5000, (1, 4), "too many digits"),
    ],
)
def test_text_of_a_forbidden_kind(parser, content, position, message) -> None:
    with pytest.raises(StudyError) as caught:
        parse_bytes(content, "t")
    (issue,) = caught.value.issues
    assert (issue.line, issue.column) == position
    assert message in issue.message


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("a: {b: 1\nc: 2\n", (1, 4), "this '{' is not closed"),
        ("a: [1, 2\nc: 2\n", (1, 4), "this '[' is not closed"),
        ('a: "text\nc: 2\n', (1, 4), "this quote is not closed"),
        ("a:\n  b: 1\n   c: 2\n", (3, 5), "indented further than line 2, which has a value already"),
        ("a:\n    b: 1\n  c: 2\n", (3, 3), "indented differently from the lines above"),
        ("a:\n  - 1\n  b: 2\n", (3, 3), "line 2 begins a list, so each entry needs a '-' in the same column"),
        ("a: {b: 1}}\n", (1, 10), "unexpected text after the value"),
        ("a:\n\tb: 1\n", (2, 1), "a tab is not allowed here; indent with spaces, not tabs"),
    ],
)
def test_a_mistake_of_syntax_is_explained_in_terms_of_the_file(parser, text, position, message) -> None:
    with pytest.raises(StudyError) as caught:
        parse(text, "t")
    issue = caught.value.issues[0]
    assert message in issue.message
    assert (issue.line, issue.column) == position


def test_a_byte_order_mark_is_allowed_and_does_not_shift_columns(parser) -> None:
    root = parse_bytes(b"\xef\xbb\xbfa: 1\n", "t")
    assert root.data() == {"a": 1}
    assert locate(root, ("a",))[1].span.column == 3


def test_windows_line_ends_count_once(parser) -> None:
    with pytest.raises(StudyError) as caught:
        parse("a: 1\r\nb: 2\r\na: 3\r\n", "t")
    assert (caught.value.issues[0].line, caught.value.issues[0].source_line) == (3, "a: 3")


def test_a_thousand_lines_parse_in_a_few_milliseconds() -> None:
    pytest.importorskip("yaml.cyaml")
    text = "space:\n" + "".join(f"  p{i}:\n    low: 1.0e4\n    high: 3e4\n    unit: N/m\n" for i in range(250))
    times = []
    for _ in range(7):
        started = time.process_time()
        parse(text, "t")
        times.append(time.process_time() - started)
    assert min(times) < 0.25, "20 ms on a quiet machine"
