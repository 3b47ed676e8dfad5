"""Mistakes with their positions in the data, and their conversion to issues with positions in the file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from designopt.plugin import closest
from designopt.study.language.errors import Issue, abbreviate, error_line
from designopt.study.language.yaml import Node, Span, inner_offset, locate

Path = tuple[str | int, ...]

#: Maximum number of findings; a check stops there.
MOST = 200
#: Keys by the words of other tools.
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("from", "lower", "lb", "min", "minimum"), ("low", "min")),
    **dict.fromkeys(("to", "upper", "ub", "max", "maximum"), ("high", "max")),
    **dict.fromkeys(("default", "fixed", "constant"), ("value",)),
    **dict.fromkeys(("options", "choices", "categories"), ("values",)),
    **dict.fromkeys(("variables", "parameters", "inputs", "design"), ("space",)),
    **dict.fromkeys(("algorithm", "optimizer", "optimiser", "method"), ("solver", "use")),
    **dict.fromkeys(("limits", "restrictions"), ("constraints",)),
    **dict.fromkeys(("time", "seconds", "duration"), ("wall",)),
    **dict.fromkeys(("expression", "output", "figure"), ("of", "minimize")),
    **dict.fromkeys(("goal", "target", "goals"), ("objectives", "minimize")),
    **dict.fromkeys(("eq", "equal"), ("equals",)),
}


@dataclass(frozen=True)
class Finding:
    """A mistake at `path`.

    `key` names a wrong key in the mapping at `path` ("" for the key that leads to `path` itself); `part` is the offset
    and length of the wrong piece of a text; `at` names the member of `path` to point at, if the sentence is about the
    whole; `contradiction` is the path of a contradicting entry.
    """

    path: Path
    message: str
    key: str | None = None
    part: tuple[int, int] | None = None
    at: str | None = None
    contradiction: Path | None = None

    def below(self, path: Path) -> Finding:
        """The same finding with `path` prepended."""
        return replace(self, path=(*path, *self.path))


def nearest(word: str, words: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the key that is meant, or ""."""
    near = intended_key(word, list(words))
    return f"; did you mean '{near}'?" if near else ""


def intended_key(key: str, keys: Collection[str]) -> str | None:
    """The key closest to `key`, or the one that other tools call so; None without any."""
    synonyms = (word for word in SYNONYMS.get(key.casefold(), ()) if word in keys)
    return closest(key, keys) or next(synonyms, None)


def nearest_or_all(word: str, candidates: Iterable[str]) -> str:
    """The key that is meant, or all of them if none is near."""
    words = list(candidates)
    return nearest(word, words) or (f" (known: {', '.join(words)})" if words else "")


def issues(findings: Iterable[Finding], root: Node) -> list[Issue]:
    """The findings as issues in file order; those without a position come last, in the order found."""
    found_issues = [_issue(finding, root) for finding in list(dict.fromkeys(findings))[:MOST]]
    return sorted(found_issues, key=lambda i: (i.line is None, i.line or 0, i.column or 0))


def _issue(finding: Finding, root: Node) -> Issue:
    path = ".".join(abbreviate(str(step), 80) for step in finding.path)
    span, column = _span(finding, root)
    lines = span.source.lines
    message = abbreviate(finding.message) + (
        _position_text(finding.contradiction, root) if finding.contradiction is not None else ""
    )
    if not lines:
        return Issue(span.source.name, None, None, None, path, message)
    line = span.line
    text = lines[line] if line < len(lines) else ""
    start = span.column
    end = span.end_column if span.end_line == line else len(text.rstrip())
    if column is not None:
        line, start, end = column
        text = lines[line]
    return Issue(span.source.name, line + 1, start + 1, max(end, start + 1) + 1, path, message, error_line(text))


def _position_text(path: Path, root: Node) -> str:
    """The position of the entry at `path` in parentheses; its path if it is not in a file."""
    span, _ = _span(Finding(path, ""), root)
    if not span.source.lines:
        return f" ({'.'.join(map(str, path))})"
    return f" ({span.source.name}:{span.line + 1}:{span.column + 1})"


def _span(finding: Finding, root: Node) -> tuple[Span, tuple[int, int, int] | None]:
    """The span to point at: the wrong key, the wrong piece of a text, the value, or the section's key for a block."""
    key, node = locate(root, finding.path)
    path: Sequence[str | int] = finding.path
    while node is None:  # a default value: point at the section that could contain it
        path = path[:-1]
        key, node = locate(root, path)
    if finding.key is not None and node.entries is not None and finding.key in node.entries:
        return node.entries[finding.key][0], None
    if not node.span.source.lines:  # from --set or from Python: point at the value
        return node.span, None
    if finding.at is not None and node.entries is not None and finding.at in node.entries:
        return node.entries[finding.at][1].span, None
    if finding.key == "" and key is not None:
        return key, None
    if finding.part is not None:
        at = inner_offset(node, finding.part[0])
        if at is not None:
            return node.span, (*at, at[1] + finding.part[1])
    block = (node.items is not None or node.entries is not None) and not node.style
    if key is not None and (block or node.span.empty):
        return key, None
    if not path and block and node.span.source.lines:
        return node.span._replace(end_line=node.span.line, end_column=node.span.column + 1), None
    if block:
        line = node.span.source.lines[node.span.line] if node.span.source.lines else ""
        return node.span._replace(end_line=node.span.line, end_column=len(line.rstrip())), None
    return node.span, None
