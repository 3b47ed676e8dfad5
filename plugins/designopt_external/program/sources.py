"""Sources of results in the files that a program has written: CSV, JSON, text, and Dakota's results format."""

from __future__ import annotations

import csv
import difflib
import json
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Required, TypedDict

from designopt.counts import plural
from designopt.plugin import InvalidSetting, Quantity, closest
from designopt.study.language import units
from designopt_external.program import dakota
from designopt_external.program.numbers import cut_like, decimal_comma, fields, is_broken, is_number, number

#: Maximum size of a result file (bytes).
LARGEST = 256 * 2**20
#: Number of lines shown where a value is missing, and of lines searched for similar ones.
SHOWN, SEARCHED = 3, 5000
#: Letters in a row that make a line of a file similar to a pattern.
LETTERS = 5
#: The unit in the head of a column: ``force [N]``.
_UNIT_OF_HEAD = re.compile(r".*\[([^\]]+)\]\s*")
#: What continues a number behind a group, and the digits of one before a group.
_CONTINUATION = re.compile(r"[.,]?\d|[EeDd][-+]?\d|#(?:QNAN|SNAN|IND|INF)")
_DIGITS_BEFORE = re.compile(r"[-+]?[\d.,]*\d[.,]?$")
#: What programs write in place of a number, and no part of a word.
_NO_NUMBER = re.compile(r"\*{2,}|(?<![A-Za-z])[-+]?(?:[Nn][Aa][Nn]|[Ii]nf(?:inity)?|INF(?:INITY)?)(?![A-Za-z])")
#: A greedy wildcard before a group, directly or with optional spaces between.
_WILDCARD = re.compile(r"\.[*+](?:\\s[*+?]?| [*+?]?)*\((?!\?[^P])")

Take = Literal["first", "last", "max", "min", "largest", "mean", "sum", "rms"]


def _largest(numbers: Iterable[float]) -> float:
    """The largest number; NaN if one is NaN, which ``max`` passes over unless it comes first."""
    return max(numbers, key=lambda number: (math.isnan(number), number))


#: Reductions of the numbers of a column or list to one.
REDUCTIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "first": lambda x: x[0],
    "last": lambda x: x[-1],
    "max": _largest,
    "min": lambda x: -_largest(-v for v in x),
    "largest": lambda x: _largest(map(abs, x)),
    "mean": lambda x: math.fsum(x) / len(x),
    "sum": math.fsum,
    "rms": lambda x: math.sqrt(math.fsum(v * v for v in x) / len(x)),
}


class SourceSection(TypedDict, total=False):
    """A result: its file by format (csv, json, text or dakota), its position there, its unit."""

    csv: Annotated[str, Quantity("", "table: commas, semicolons, tabs or spaces")]
    json: Annotated[str, Quantity("", "JSON file")]
    text: Annotated[str, Quantity("", "any text; what the program prints is in stdout.txt and stderr.txt")]
    dakota: Annotated[str, Quantity("", "results file of a driver for Dakota")]
    column: Annotated[int | str, Quantity("", "csv, text: column by number from 1, in csv also by name")]
    row: Annotated[int, Quantity("", "csv, text: row of numbers, from 1; from the end if negative")]
    path: Annotated[str, Quantity("", "json: keys and positions (from 0) with points between, as in loads.0.peak")]
    after: Annotated[str, Quantity("", "text: regular expression of a line before the rows of numbers; default: none")]
    match: Annotated[
        int, Quantity("", "text: the match of after or pattern, from 1; from the end if negative; default -1")
    ]
    pattern: Annotated[str, Quantity("", "text: regular expression whose group (...) is the number")]
    response: Annotated[int | str, Quantity("", "dakota: descriptor, or number from 1")]
    take: Annotated[
        Take,
        Quantity(
            "", "reduction of several numbers; largest is that of the magnitudes; default: the last match of a pattern"
        ),
    ]
    unit: Annotated[str, Quantity("", "unit in the file; default none")]
    meaning: Annotated[str, Quantity("", "for tables and the report")]


class ArraySection(SourceSection, total=False):
    """A result with an axis: all numbers of a column or list."""

    axis: Required[Annotated[str, Quantity("", "name of the axis; an array of this name contains its values")]]


#: Keys of each format beside those of all.
_KEYS = {
    "csv": ("column", "row", "take"),
    "json": ("path", "take"),
    "text": ("column", "row", "after", "match", "pattern", "take"),
    "dakota": ("response",),
}
_NEEDED = {"csv": "column", "json": "path", "dakota": "response"}


class MissingResult(Exception):
    """A result is not in the files; the message names the file, the missing entry, and what the file has instead."""


def format_of(section: SourceSection) -> str:
    """The format of a source; "" for none, which a subclass of the model reads."""
    return next((name for name in _KEYS if name in section), "")


def check(section: SourceSection, at: str, *, array: bool = False) -> Iterator[InvalidSetting]:
    """The mistakes in one entry of the setting `at`, ``outputs.mass``."""
    formats = [name for name in _KEYS if name in section]
    if len(formats) > 1:
        yield InvalidSetting(
            f"{at}.{formats[1]}", f"a result stands in one file; remove '{formats[0]}' or '{formats[1]}'"
        )
        return
    unit = section.get("unit", "")
    try:
        units.check(unit)
    except units.UnitError as error:
        yield InvalidSetting(f"{at}.unit", str(error))
    if not formats:
        return
    form = formats[0]
    for key in ("column", "row", "path", "after", "match", "pattern", "response", "take"):
        if key in section and key not in _KEYS[form]:
            owners = [name for name in _KEYS if key in _KEYS[name]]
            yield InvalidSetting(
                f"{at}.{key}",
                f"is for {' and '.join(owners)}; a result in {form} has {', '.join(_KEYS[form])}",
            )
    if array:
        for key in ("take", "row"):
            if key in section:
                yield InvalidSetting(
                    f"{at}.{key}", "an array contains all numbers; write it under outputs for one of them"
                )
    name = str(section[form])  # type: ignore[literal-required]
    if not name or name.startswith("/") or ".." in Path(name).parts:
        yield InvalidSetting(
            f"{at}.{form}", f"'{name}' is not a file in the folder of the evaluation; write its name there"
        )
    required_key = _NEEDED.get(form)
    if required_key and required_key not in section:
        yield InvalidSetting(
            f"{at}.{form}", f"'{required_key}' is missing: it says where the number stands in '{name}'"
        )
    if form == "text":
        yield from _check_text(section, at)
    if "row" in section and "take" in section:
        yield InvalidSetting(f"{at}.take", "'row' selects one number already; remove 'row' or 'take'")
    for key in ("row", "match"):
        if section.get(key) == 0:
            yield InvalidSetting(f"{at}.{key}", "counts from 1, or from the end: -1 is the last")
    column = section.get("column")
    if isinstance(column, int) and column < 1:
        yield InvalidSetting(f"{at}.column", f"counts from 1, not {column}")
    if isinstance(column, str) and (head := _UNIT_OF_HEAD.fullmatch(column)) and _is_other_unit(head[1], unit):
        yield InvalidSetting(
            f"{at}.unit",
            f"'{unit}' is not the unit of the column '{column}'; write unit: {head[1]}, it is converted, or give"
            " the number of the column",
        )


def _is_other_unit(head: str, unit: str) -> bool:
    """Whether a known unit of a head is another one than that of the setting; without one in the setting, it is not."""
    try:
        units.check(head)
        return bool(unit) and units.convert(1.0, head, unit) != 1.0
    except units.UnitError as error:
        return "cannot be converted" in str(error)


def _check_text(section: SourceSection, at: str) -> Iterator[InvalidSetting]:
    if "pattern" in section:
        for key in ("column", "row", "after"):
            if key in section:
                yield InvalidSetting(f"{at}.{key}", "the group of 'pattern' is the number; remove one of them")
        yield from check_pattern(section["pattern"], f"{at}.pattern", groups=1)
        if "match" in section and "take" in section:
            yield InvalidSetting(f"{at}.take", "'match' selects one number already; remove 'match' or 'take'")
        return
    if "column" not in section:
        hint = "'column' is missing (number of the field, from 1); or give 'pattern' with a group (...)"
        yield InvalidSetting(f"{at}.text", hint)
    elif isinstance(section["column"], str):
        yield InvalidSetting(
            f"{at}.column", f"a text has columns by number, not '{section['column']}'; names are for csv"
        )
    if "after" in section:
        yield from check_pattern(section["after"], f"{at}.after")


def check_pattern(pattern: str, at: str, groups: int = 0) -> Iterator[InvalidSetting]:
    """The mistake in a regular expression of the setting `at`, which needs a number of groups."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        yield InvalidSetting(
            at, f"'{pattern}' is not a regular expression: {error.msg} (character {(error.pos or 0) + 1})"
        )
        return
    if groups and compiled.groups != groups:
        reason = f"has {compiled.groups} groups; put (...) around the number alone, and (?:...) around other parts"
        yield InvalidSetting(at, f"'{pattern}' {reason}")


def read(section: SourceSection, folder: Path, texts: dict[str, str]) -> list[float]:
    """The numbers of a source in the files of `folder`; `texts` keeps files that were read. Raises `MissingResult`."""
    form = format_of(section)
    name = str(section[form])  # type: ignore[literal-required]
    if name not in texts:
        texts[name] = text_of(folder, name)
    try:
        return _READERS[form](texts[name], section)
    except ValueError as error:
        raise MissingResult(f"{name}: {error}") from None


def table_position(section: SourceSection, texts: Mapping[str, str]) -> str:
    """The table of `texts` that a source takes among several, in words; "" where its line `after` occurs once."""
    if "after" not in section or "match" in section:
        return ""
    after = section["after"]
    count = sum(re.search(after, line) is not None for line in texts[str(section["text"])].splitlines())
    return f" after the last of {count} lines that match '{after}' (match: 1 takes the first)" if count > 1 else ""


def single_number(section: SourceSection, numbers: Sequence[float]) -> float:
    """The number that an output takes from those of its source. Raises `MissingResult` for several rows or items
    without `take`; of several matches of a pattern the last one counts."""
    if "take" not in section and "pattern" not in section and len(numbers) > 1:
        form = format_of(section)
        count = f"'{section['path']}' has {len(numbers)} items" if form == "json" else f"there are {len(numbers)} rows"
        alternative = "" if form == "json" else ", or 'row' for one of them"
        name = section[form]  # type: ignore[literal-required]
        raise MissingResult(
            f"{name}: {count}, and the output is one number; add 'take' ({', '.join(REDUCTIONS)}){alternative}"
        )
    return REDUCTIONS[section.get("take", "last")](numbers)


def text_of(folder: Path, name: str) -> str:
    """The text of a file that the program has written. Raises `MissingResult`."""
    file = folder / name
    if not file.is_file() or not file.resolve().is_relative_to(folder.resolve()):
        names = sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file())
        nearest = sorted(difflib.get_close_matches(name, names, n=8, cutoff=0.0))
        remainder = f" and {len(names) - len(nearest)} more" if len(names) > len(nearest) else ""
        raise MissingResult(
            f"the program wrote no file '{name}'; the folder contains {', '.join(nearest) or 'nothing'}{remainder}"
        )
    if file.stat().st_size > LARGEST:
        raise MissingResult(f"{name}: has {file.stat().st_size} bytes; at most {LARGEST} are read")
    return file.read_text(encoding="utf-8", errors="replace")


# ------------------------------------------------------------------------------------------------------------ formats


def _csv(text: str, section: SourceSection) -> list[float]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise ValueError("the table is empty")
    delimiter = next((d for d in ",;\t" if d in lines[0]), " ")
    rows = list(
        csv.reader((" ".join(line.split()) if delimiter == " " else line for line in lines), delimiter=delimiter)
    )
    column, width = section["column"], len(rows[0])
    if isinstance(column, str):
        names = [cell.strip() for cell in rows[0]]
        if names.count(column) > 1:
            raise ValueError(f"there are {names.count(column)} columns '{column}'; give the number of one, from 1")
        if column not in names:
            near = closest(column, names)
            hint = f"did you mean '{near}'?" if near else f"it has {', '.join(names[:12])}"
            raise ValueError(f"there is no column '{column}'; {hint}")
        position, rows = names.index(column), rows[1:]
    else:
        position = column - 1
        if rows and (len(rows[0]) <= position or not is_number(rows[0][position])):
            rows = rows[1:]
        width = len(rows[0]) if rows else 0
    numbers = []
    for line, row in enumerate(rows, 1):
        if any(cell.strip() for cell in row[width:]):
            cause = "; a decimal comma separates cells here" if delimiter == "," else ""
            cells = f"{len(row)} cells, more than the {width} of the first line: {delimiter.join(row)[:60]}"
            raise ValueError(f"row {line} has {cells}{cause}")
        if several := next((cell for cell in row[: position + 1] if _has_several_numbers(cell)), ""):
            raise ValueError(f"row {line}: '{several[:40]}' has several numbers; '{delimiter}' separates the cells")
        if len(row) <= position:
            raise ValueError(f"row {line} has no column {column}, but {len(row)} columns: {','.join(row)[:60]}")
        try:
            numbers.append(number(row[position]))
        except ValueError as error:
            raise ValueError(f"row {line}, column {column}: {error}") from None
    return _row(numbers, section, f"column {column}")


def _has_several_numbers(cell: str) -> bool:
    parts = cell.split()
    return len(parts) > 1 and all(map(is_number, parts))


def _row(numbers: list[float], section: SourceSection, source: str) -> list[float]:
    if not numbers:
        raise ValueError(f"{source} has no numbers")
    row = section.get("row")
    if row is None:
        return numbers
    if not 1 <= abs(row) <= len(numbers):
        raise ValueError(f"there is no row {row}: {source} has {plural(len(numbers), 'number')}")
    return [numbers[row - 1 if row > 0 else row]]


#: The value of a key that an object has several times.
_REPEATED = object()


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    counts = Counter(key for key, _ in pairs)
    return {key: value if counts[key] == 1 else _REPEATED for key, value in pairs}


def _json(text: str, section: SourceSection) -> list[float]:
    try:
        value: Any = json.loads(text, object_pairs_hook=_object)
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from None
    position = ""
    for step in section["path"].split("."):
        location = f"at '{position}'" if position else "at its top"
        if isinstance(value, list) and re.fullmatch(r"-?\d+", step):
            if not -len(value) <= int(step) < len(value):
                raise ValueError(f"{location} is a list of {len(value)}, without position {step}")
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            keys = list(value) if isinstance(value, dict) else []
            near = closest(step, keys)
            hint = f"did you mean '{near}'?" if near else f"there are {', '.join(map(str, keys[:12])) or 'none'}"
            raise ValueError(f"{location} is no key '{step}'; {hint}")
        position = f"{position}.{step}" if position else step
        if value is _REPEATED:
            raise ValueError(f"'{position}' occurs several times, with one value each")
    values = value if isinstance(value, list) else [value]
    for item in values:
        if isinstance(item, bool) or not isinstance(item, (int, float)):
            raise ValueError(f"'{position}' is no number, but {json.dumps(item)[:60]}")
    if not values:
        raise ValueError(f"'{position}' is an empty list")
    return [float(item) for item in values]


def _text(text: str, section: SourceSection) -> list[float]:
    if "pattern" in section:
        pattern = section["pattern"]
        return _pattern_numbers(text, section, pattern)
    lines = text.splitlines()
    begin = 0
    if "after" in section:
        after = section["after"]
        matches = [i for i, line in enumerate(lines) if re.search(after, line)]
        if not matches:
            raise ValueError(f"no line matches '{after}'{nearest_lines(text, after)}")
        begin = _chosen_match(matches, section.get("match", -1), after) + 1
    column = int(section["column"])
    numbers = _rows(lines, begin, column)
    if not numbers:
        excerpt = " | ".join(line.strip() for line in lines[begin : begin + SHOWN])
        start = f" after line {begin} ('{lines[begin - 1].strip()[:60]}')" if begin else ""
        raise ValueError(f"no row has a number in column {column}{start}; its lines are: {excerpt[:200] or 'none'}")
    return _row(numbers, section, f"column {column}")


def _pattern_numbers(text: str, section: SourceSection, pattern: str) -> list[float]:
    """The numbers of a pattern, NaN where the program has written none in their place. Raises `ValueError` where such
    a place counts for an output: the last one, a chosen one, any for `take`; and where it decides which number is the
    chosen one."""
    numbers = [(match, True) for match in re.finditer(pattern, text, re.MULTILINE)]
    ends = [match.end() for match, _ in numbers]
    matches = list(numbers)
    for match in _matches_without_number(text, pattern):
        following = bisect_right(ends, match.start())
        if following == len(numbers) or match.end() <= numbers[following][0].start():
            matches.append((match, False))
    if not matches:
        raise ValueError(f"nothing matches '{pattern}'{nearest_lines(text, pattern)}")
    matches.sort(key=lambda entry: entry[0].start(1))
    if "match" in section:
        match, has_number = _chosen_match(matches, section["match"], pattern)
        if has_number:
            _check_choice(match, numbers, matches, section["match"])
        matches = [(match, has_number)]
    empty_places = [match for match, has_number in matches if not has_number]
    if not matches[-1][1] or ("take" in section and empty_places):
        match = empty_places[-1]
        stars = ": the program had too few columns for it" if "*" in match[1] else ""
        raise ValueError(f"line {_line(match)}: '{match[1]}' is no number, where '{pattern}' expects one{stars}")
    return [_matched_number(match, pattern) if has_number else float("nan") for match, has_number in matches]


def _check_choice(
    match: re.Match[str], numbers: list[tuple[re.Match[str], bool]], matches: list[tuple[re.Match[str], bool]], at: int
) -> None:
    """Raises `ValueError` where another `match` is number `at` if places without number do not count: stars and words
    may also be a heading."""
    index = at - 1 if at > 0 else at
    if not -len(numbers) <= index < len(numbers) or numbers[index][0] is match:
        return
    stars = next(empty_match for empty_match, has_number in matches if not has_number)
    raise ValueError(
        f"match {at} is '{match[1]}' if '{stars[1]}' in line {_line(stars)} stands for a number, and"
        f" '{numbers[index][0][1]}' if not: state in the pattern what stands in the lines of the numbers alone"
    )


def _line(match: re.Match[str]) -> int:
    return match.string.count("\n", 0, match.start(1)) + 1


def _matches_without_number(text: str, pattern: str) -> Iterator[re.Match[str]]:
    """The matches of a pattern whose group may be what programs write in place of a number, and nothing else."""
    if (group := _group(pattern)) is None:
        return
    begin, end = group
    try:
        yield from re.finditer(f"{pattern[:begin]}({_NO_NUMBER.pattern}){pattern[end:]}", text, re.MULTILINE)
    except re.error:  # the pattern refers to its group by name
        return


def _group(pattern: str) -> tuple[int, int] | None:
    """Begin and end of the group of a pattern, with its parentheses."""
    depth, begin, level, in_class = 0, None, 0, False
    for token in re.finditer(r"\\.|\[\^?\]?|.", pattern, re.DOTALL):  # a bracket at the begin of a class belongs to it
        at, character = token.start(), token.group()
        if in_class:
            in_class = character != "]"
        elif character.startswith("["):
            in_class = True
        elif character == "(":
            depth += 1
            if begin is None and (pattern[at + 1] != "?" or pattern[at + 1 : at + 4] == "?P<"):
                begin, level = at, depth
        elif character == ")":
            if begin is not None and depth == level:
                return begin, at + 1
            depth -= 1
    return None


def _matched_number(match: re.Match[str], pattern: str) -> float:
    """The number of a group. Raises `ValueError` where it is a part of a number: the pattern ends with the group, and
    the number goes on, or a greedy wildcard before the group has taken its first digits."""
    value = number(match[1])
    text, (begin, end) = match.string, match.span(1)
    after = _CONTINUATION.match(text, end) if end == match.end() else None
    before = None
    if _WILDCARD.search(pattern) and match[1][:1].isdigit():
        before = _DIGITS_BEFORE.search(text, match.start(), begin)
    if before or after:
        numeral = (before[0] if before else "") + match[1] + (after[0] if after else "")
        hint = "state in the pattern what follows the number" if after else "write .*? before the group"
        raise ValueError(f"'{pattern}' takes {match[1]}, a part of '{numeral}': {hint}")
    return value


def _rows(lines: Sequence[str], begin: int, column: int) -> list[float]:
    """The numbers in `column` of the rows after line `begin`, up to the first line without one.

    Numbers that touch are cut where those of the first row without such end. Raises `ValueError` for a table whose
    rows cannot be told from other lines: numbers that do not fit into their columns, or touch in all rows, rows
    that differ before the column, a row without the number between others.
    """
    numbers: list[float] = []
    first, shape, gap = 0, [True], 0
    split_lines = ((line, fields(line)) for line in lines[begin:])
    intact_row = next((line for line, parts in split_lines if len(parts) >= column and all(map(is_number, parts))), "")
    for at, line in enumerate(lines[begin:], begin + 1):
        parts = fields(line)
        if intact_row and any(map(is_broken, parts)):
            parts = cut_like(line, intact_row) or parts
        is_row = len(parts) >= column and is_number(parts[column - 1])
        kinds = [is_number(part) or is_broken(part) for part in parts[:column]]
        if is_row and gap:
            raise ValueError(
                f"line {gap} has no number in column {column}, and rows go on after it{_row_hint(lines, gap)}"
            )
        if is_row and numbers and kinds != shape:
            unlike = f"line {at} is no row like line {first} ('{lines[first - 1].strip()[:60]}')"
            raise ValueError(f"{unlike}, and both have a number in column {column}{_row_hint(lines, at)}")
        if is_row and (comma := decimal_comma(line, column)):
            raise ValueError(
                f"line {at}: '{comma}' has a decimal comma, or two numbers in one field; a 'pattern' can tell which"
            )
        if is_row:
            first, shape = first or at, kinds
            numbers.append(number(parts[column - 1]))
        elif (
            any(map(is_number, parts))
            and any(map(is_broken, parts))
            and all(is_number(p) or is_broken(p) for p in parts)
        ):
            part = next(filter(is_broken, parts))
            touching = "" if "*" in part else ", or one that counts characters, such as '^.{8}(.{12})'"
            raise ValueError(
                f"line {at}: the program had too few columns for '{part[:40]}'{_row_hint(lines, at)}{touching}"
            )
        elif numbers and not (len(kinds) == column > 1 and all(kinds[:-1])):
            break
        elif numbers:
            gap = gap or at
    return numbers


def _row_hint(lines: Sequence[str], at: int) -> str:
    return f": {lines[at - 1].strip()[:80]}; let 'after' match the last line before the rows, or give a 'pattern'"


def _chosen_match(matches: list[Any], match: int, pattern: str) -> Any:
    if not 1 <= abs(match) <= len(matches):
        raise ValueError(f"there is no match {match}: '{pattern}' matches {plural(len(matches), 'time')}")
    return matches[match - 1 if match > 0 else match]


def _dakota(text: str, section: SourceSection) -> list[float]:
    values = dakota.results(text)
    response = section["response"]
    if isinstance(response, int):
        if not 1 <= response <= len(values):
            raise ValueError(f"there is no response {response}: the file has {len(values)}")
        return [list(values.values())[response - 1]]
    if response not in values:
        near = closest(response, values)
        hint = f"did you mean '{near}'?" if near else f"it has {', '.join(values) or 'none'}"
        raise ValueError(f"there is no response '{response}'; {hint}")
    return [values[response]]


_READERS: Mapping[str, Callable[[str, SourceSection], list[float]]] = {
    "csv": _csv,
    "json": _json,
    "text": _text,
    "dakota": _dakota,
}


def nearest_lines(text: str, pattern: str) -> str:
    """The lines most similar to a regular expression, else those that share most letters in a row with it, else the
    last ones; for a message."""
    lines = [(i, line.strip()) for i, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        return "; the file is empty"
    plain = re.sub(r"\\[a-zA-Z]|[\\^$.*+?(){}\[\]|]", " ", pattern).strip()
    texts = [line[: len(plain) + 20] for _, line in lines[-SEARCHED:]]
    near = difflib.get_close_matches(plain, texts, n=SHOWN, cutoff=0.5) if plain else []
    near = near or _sharing_letters(plain, texts)
    shown_lines = [lines[-SEARCHED:][texts.index(line)] for line in dict.fromkeys(near)] or lines[-SHOWN:]
    heading = "the nearest lines are" if near else "the last lines are"
    return f"; {heading} " + " | ".join(f"{i}: {line[:80]}" for i, line in shown_lines)


def _sharing_letters(plain: str, texts: Sequence[str]) -> list[str]:
    """The texts that share at least `LETTERS` letters in a row with `plain`, most first."""
    words = [word.lower() for word in re.findall(r"[^\W\d_]+", plain)]

    def shared(text: str) -> int:
        matchers = (difflib.SequenceMatcher(None, text.lower(), word, autojunk=False) for word in words)
        return max((matcher.find_longest_match().size for matcher in matchers), default=0)

    sizes = {text: shared(text) for text in texts if re.search(r"[^\W\d_]{3}", text)}
    return sorted((text for text in sizes if sizes[text] >= LETTERS), key=lambda text: -sizes[text])[:SHOWN]
