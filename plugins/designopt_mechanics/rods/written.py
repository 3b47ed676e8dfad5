"""The equations of motion of given rods written out, as text or LaTeX: what Borisov's matrices are made for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from designopt_mechanics.rods.matrices import ROWS, TABLE
from designopt_mechanics.rods.tree import RodTree

Style = Literal["text", "latex"]

_PRODUCTS = {
    "A": ("d2phi",), "B": ("d2psi",), "C": ("d2l",), "D": ("dphi", "dphi"), "E": ("dpsi", "dpsi"),
    "F": ("2", "dl", "dphi"), "G": ("2", "dphi", "dpsi"), "H": ("2", "dl", "dpsi"),
}  # fmt: skip
_LATEX = {"phi": r"\varphi", "psi": r"\psi", "l": "l", "m": "m", "n": "n", "k": "k", "d": "d", "N": "N", "g": "g"}


@dataclass(frozen=True)
class _Term:
    """A signed product of factors."""

    sign: int
    factors: tuple[str, ...]


def equations(tree: RodTree, style: Style = "text") -> list[str]:
    """3 n equations, "left = right", in the order of the coordinates; rods are numbered from 1.

    Symbols are m, n (the fraction of the centre of mass), k, l0 and d of the rods, c2 where the mass is spread, Ix, Iy
    or It, Ia, the components of gravity that are not zero (gx, gy, gz), and of the drives Mphi, Mpsi and N; d and d2
    are first and second rates. In text, products are marked by * so that the equations can be evaluated.
    """
    lines = []
    for row in ROWS:
        for i in range(tree.n):
            left = _left(tree, row, i, style)
            lines.append(f"{_sum(left, style)} = {_sum(_right(tree, row, i, style), style)}")
    return lines


def _left(tree: RodTree, row: str, i: int, style: Style) -> list[_Term]:
    terms: list[_Term] = []
    for letter, product in _PRODUCTS.items():
        for j in range(tree.n):
            if not (i == j or _above(tree, i, j) or _above(tree, j, i)):
                continue
            lengths, parts = TABLE[f"{letter}_{row}"]
            remaining = [p for p in parts if not (i == j and p[1] == "s")]
            remaining = _cancelled(remaining) if i == j else remaining
            rates = _rates(product, j, style)
            sign, mass = _mass(tree, i, j, style)
            stretch = tuple(_named("l", {"i": i, "j": j}[side], style) for side in lengths)
            if i == j and lengths == "ij":
                stretch = (_square(_named("l", i, style), style),)
            for s, azimuth, elevations in remaining:
                angles = () if elevations == "1" else _elevations(elevations, i, j, style)
                turned = _azimuth(azimuth, i, j, style) if i != j else ()
                terms.append(_Term(sign * s, (mass, *stretch, *turned, *angles, *rates)))
    terms += _turning(tree, row, i, style)
    return terms + _weight(tree, row, i, style)


def _cancelled(parts: Sequence[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    """On the diagonal S S + C C is 1 and S C - C S is 0."""
    if len(parts) < 2:
        return list(parts)
    (s, _, one), (t, _, second) = parts
    if {one, second} == {"SS", "CC"}:
        return [(s, "", "1")] if s == t else list(parts)
    return []  # S C and C S with opposite signs


def _mass(tree: RodTree, i: int, j: int, style: Style) -> tuple[int, str]:
    """Sign and text of mu_ij."""
    p = j if i == j or _above(tree, i, j) else i
    m, n = _named("m", p, style), _named("n", p, style)
    if i == j:
        spread = tree.rods[i].second != tree.rods[i].com ** 2
        mass_terms = [m, _named("c2", i, style) if spread else _square(n, style)]
    else:
        mass_terms = [m, n]
    parts = [_joined(mass_terms, style), *(_named("m", k, style) for k in range(tree.n) if _above(tree, p, k))]
    text = " + ".join(parts)
    return tree.rods[i].sign * tree.rods[j].sign, f"({text})" if len(parts) > 1 else text


def _turning(tree: RodTree, row: str, i: int, style: Style) -> list[_Term]:
    rod = tree.rods[i]
    c, s = (_trig(name, "psi", i, style) for name in ("cos", "sin"))
    if tree.inertia == "coordinate":
        kind = {"phi": "Ix", "psi": "Iy"}.get(row)
        if kind is None or getattr(rod, kind) == 0.0:
            return []
        return [_Term(1, (_named(kind, i, style), _rate("d2", row, i, style)))]
    It, Ia = (_named(name, i, style) for name in ("It", "Ia"))
    if row == "phi":
        first = _rate("d2", "phi", i, style)
        rates = (_rate("d", "phi", i, style), _rate("d", "psi", i, style))
        difference = f"({Ia} - {It})"
        return [
            _Term(1, (It, _square(c, style), first)),
            _Term(1, (Ia, _square(s, style), first)),
            _Term(1, ("2", difference, s, c, *rates)),
        ]
    if row == "psi":
        squared = _square(_rate("d", "phi", i, style), style)
        return [
            _Term(1, (It, _rate("d2", "psi", i, style))),
            _Term(-1, (f"({Ia} - {It})", s, c, squared)),
        ]  # fmt: skip
    return []


def _weight(tree: RodTree, row: str, i: int, style: Style) -> list[_Term]:
    """-nu_i e^r_i . g."""
    parts = [_joined([_named("m", i, style), _named("n", i, style)], style)]
    parts += [_named("m", k, style) for k in range(tree.n) if _above(tree, i, k)]
    mass = f"({' + '.join(parts)})" if len(parts) > 1 else parts[0]
    cp, sp = (_trig(name, "phi", i, style) for name in ("cos", "sin"))
    C, S = (_trig(name, "psi", i, style) for name in ("cos", "sin"))
    stretch = () if row == "l" else (_named("l", i, style),)
    vectors: dict[str, tuple[tuple[int, tuple[str, ...]] | None, ...]] = {
        "phi": ((-1, (C, sp)), (1, (C, cp)), None),
        "psi": ((-1, (S, cp)), (-1, (S, sp)), (1, (C,))),
        "l": ((1, (C, cp)), (1, (C, sp)), (1, (S,))),
    }
    terms = []
    for axis, component, vector in zip("xyz", tree.gravity, vectors[row], strict=True):
        if component != 0.0 and vector is not None:
            sign, angles = vector
            g = f"g{axis}" if style == "text" else f"g_{axis}"
            terms.append(_Term(-sign * tree.rods[i].sign, (mass, *stretch, *angles, g)))
    return terms


def _right(tree: RodTree, row: str, i: int, style: Style) -> list[_Term]:
    if row == "l":
        stretch = f"({_named('l', i, style)} - {_named('l0', i, style)})"
        terms = [_Term(1, (_named("N", i, style),))]
        if tree.rods[i].stiffness is not None:
            terms.append(_Term(-1, (_named("k", i, style), stretch)))
        return [*terms, _Term(-1, (_named("d", i, style), _rate("d", "l", i, style)))]
    moment_name = f"M{row}" if style == "text" else "M_{" + _LATEX[row]
    close = "" if style == "text" else "}"

    def drive(k: int) -> str:
        return f"{moment_name}{k + 1}" if style == "text" else f"{moment_name},{k + 1}{close}"

    return [_Term(1, (drive(i),)), *(_Term(-1, (drive(c),)) for c in tree.children[i])]


# ----------------------------------------------------------------------------------------------------------- writing


def _above(tree: RodTree, i: int, j: int) -> bool:
    """Whether rod i is a proper ancestor of rod j."""
    while j >= 0:
        j = tree.parents[j]
        if j == i:
            return True
    return False


def _named(kind: str, i: int, style: Style) -> str:
    if style == "text":
        return f"{kind}{i + 1}" if kind not in ("l0", "c2") else f"{kind}_{i + 1}"
    if kind in ("Ix", "Iy", "It", "Ia"):
        return f"I_{{{kind[1]},{i + 1}}}"
    if kind == "l0":
        return f"l_{{0,{i + 1}}}"
    if kind == "c2":
        return f"c_{{2,{i + 1}}}"
    return f"{_LATEX[kind]}_{{{i + 1}}}"


def _rate(order: str, kind: str, i: int, style: Style) -> str:
    if style == "text":
        return f"{order}{kind}{i + 1}"
    return f"\\{'dot' if order == 'd' else 'ddot'}{{{_LATEX[kind]}}}_{{{i + 1}}}"


def _rates(product: Sequence[str], j: int, style: Style) -> tuple[str, ...]:
    if len(product) == 2:  # a square
        return (_square(_rate("d", product[0][1:], j, style), style),)
    factors = []
    for part in product:
        if part == "2":
            factors.append(part)
        else:
            order = "d2" if part.startswith("d2") else "d"
            factors.append(_rate(order, part[len(order) :], j, style))
    return tuple(factors)


def _trig(function: str, kind: str, i: int, style: Style) -> str:
    return f"{function}({kind}{i + 1})" if style == "text" else f"\\{function}{_LATEX[kind]}_{{{i + 1}}}"


def _elevations(letters: str, i: int, j: int, style: Style) -> tuple[str, ...]:
    names = {"C": "cos", "S": "sin"}
    first, second = (_trig(names[e], "psi", k, style) for e, k in zip(letters, (i, j), strict=True))
    return (_square(first, style),) if first == second else (first, second)


def _azimuth(letter: str, i: int, j: int, style: Style) -> tuple[str, ...]:
    if not letter:
        return ()
    name = {"c": "cos", "s": "sin"}[letter]
    if style == "text":
        return (f"{name}(phi{i + 1} - phi{j + 1})",)
    return (f"\\{name}({_LATEX['phi']}_{{{i + 1}}} - {_LATEX['phi']}_{{{j + 1}}})",)


def _square(text: str, style: Style) -> str:
    if style == "text":
        return f"{text}**2"
    for name in ("\\cos", "\\sin"):
        if text.startswith(name):
            return f"{name}^2{text[len(name) :]}"
    return f"{text}^2"


def _joined(factors: Sequence[str], style: Style) -> str:
    return ("*" if style == "text" else r"\,").join(factors)


def _sum(terms: Sequence[_Term], style: Style) -> str:
    """Terms with numbers in front."""
    texts = []
    for k, term in enumerate(terms):
        ordered = sorted(term.factors, key=lambda f: f != "2")
        sign = "-" if term.sign < 0 else "+"
        text = _joined(ordered, style)
        texts.append(f"{'-' if sign == '-' else ''}{text}" if k == 0 else f" {sign} {text}")
    return "".join(texts) if texts else "0"
