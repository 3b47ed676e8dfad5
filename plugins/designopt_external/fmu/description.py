"""The model description of an FMU: its variables with names, units, ranges and start values.

FMI standard 2.0.4 and 3.0.1 (Modelica Association, 2022). Nothing of the FMU runs here.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from designopt.plugin import InputFile, Quantity
from designopt.study.language import units

#: Maximum size of the unpacked files of an FMU (bytes).
LARGEST = 4 * 2**30
#: Name of the model description, and its maximum size (bytes).
XML, LARGEST_XML = "modelDescription.xml", 256 * 2**20
KINDS = ("co_simulation", "model_exchange")
WORDS = "String"


class UnusableFmu(ValueError):
    """The file is not an FMU that can be simulated; the message begins with its name."""


@dataclass(frozen=True)
class FmuVariable:
    """A scalar variable: its `name` in the FMU and its `label`, the name in studies.

    `role` is ``parameter`` (parameters and start values), ``input``, or ``signal``; a parameter may vary over time too
    (`varies`), and be an output of the FMU (`is_output`). `type` and `reference` are those of the FMI. `unit` is one of
    studies; `foreign_unit` is the text in the FMU if it has no such unit. `start` is the start value as text, if any.
    """

    name: str
    label: str
    role: str
    varies: bool
    is_output: bool
    type: str
    reference: int
    unit: str
    foreign_unit: str
    description: str
    lower: float | None
    upper: float | None
    start: str

    @property
    def is_text(self) -> bool:
        """Whether its values are words."""
        return self.type == WORDS

    @property
    def is_real(self) -> bool:
        """Whether its values are floating-point numbers."""
        return self.type in ("Real", "Float64", "Float32")

    @property
    def quantity(self) -> Quantity:
        """Unit, meaning and range."""
        about = self.description or self.name
        if self.foreign_unit:
            about += f" (in {self.foreign_unit})"
        return Quantity(self.unit, about, ge=self.lower, le=self.upper)


@dataclass(frozen=True, eq=False)
class Description:
    """The contents of an FMU: `variables` by label, kinds of simulation (`KINDS`), and the default experiment.

    `fixed_step` tells for co-simulation that all steps have one size. `model` is FMPy's description.
    """

    file: str
    model: Any
    version: str
    kinds: tuple[str, ...]
    variables: Mapping[str, FmuVariable]
    start: float
    stop: float | None
    step: float | None
    tolerance: float | None
    fixed_step: bool
    members: tuple[str, ...]

    def with_role(self, role: str) -> dict[str, FmuVariable]:
        """The variables of a role by label."""
        return {label: variable for label, variable in self.variables.items() if variable.role == role}

    @property
    def signals(self) -> dict[str, FmuVariable]:
        """The numbers that vary over time, by label."""
        return {label: v for label, v in self.variables.items() if v.varies and not v.is_text}

    def find(self, name: str) -> FmuVariable | None:
        """The variable with this label, or this name in the FMU."""
        if name in self.variables:
            return self.variables[name]
        return next((v for v in self.variables.values() if v.name == name), None)


@functools.lru_cache(maxsize=16)
def describe(file: InputFile) -> Description:
    """The description of an FMU. Raises `UnusableFmu` with a sentence."""
    if importlib.util.find_spec("fmpy") is None:
        raise UnusableFmu(f"{file.name}: FMUs need FMPy; install it with: pip install 'designopt[fmu]'")
    from fmpy.model_description import read_model_description

    try:
        with file.path() as path:
            with zipfile.ZipFile(path) as archive:
                members = tuple(item.filename for item in archive.infolist())
                size = sum(item.file_size for item in archive.infolist())
                if XML not in members:
                    raise UnusableFmu(f"{file.name}: is not an FMU: it contains no {XML}")
                if archive.getinfo(XML).file_size > LARGEST_XML:
                    raise UnusableFmu(f"{file.name}: {XML} is larger than {LARGEST_XML} bytes")
                with archive.open(XML) as stream:
                    head = stream.read(4096)
            version = re.search(rb'fmiVersion\s*=\s*"([^"]*)"', head)
            number = version[1].decode("ascii", "replace") if version else ""
            if number.startswith("1."):
                raise UnusableFmu(
                    f"{file.name}: is an FMU of FMI {number}; 2.0 and 3.0 are supported, so export it as one of them"
                )
            if size > LARGEST:
                raise UnusableFmu(f"{file.name}: has {size} bytes when unpacked; at most {LARGEST} are supported")
            model = read_model_description(path)
    except zipfile.BadZipFile:
        raise UnusableFmu(f"{file.name}: is not an FMU: an FMU is a ZIP archive, and this file is none") from None
    except (UnusableFmu, OSError):
        raise
    except Exception as error:  # FMPy raises bare exceptions
        reason = " ".join(str(error).split())[:300]
        raise UnusableFmu(f"{file.name}: its model description is invalid: {reason}") from None
    return _description(file.name, model, number, members)


def _description(file: str, model: Any, version: str, members: tuple[str, ...]) -> Description:
    interfaces = {"co_simulation": model.coSimulation, "model_exchange": model.modelExchange}
    kinds = tuple(kind for kind in KINDS if interfaces[kind] is not None)
    if not kinds:
        raise UnusableFmu(f"{file}: has neither co-simulation nor model exchange; export it with one of them")
    experiment = model.defaultExperiment
    co = model.coSimulation

    def default(name: str) -> float | None:
        value = getattr(experiment, name, None) if experiment is not None else None
        return None if value is None else float(value)

    return Description(
        file,
        model,
        version,
        kinds,
        _variables(model),
        default("startTime") or 0.0,
        default("stopTime"),
        default("stepSize") or (float(co.fixedInternalStepSize) if co and co.fixedInternalStepSize else None),
        default("tolerance"),
        co is not None and not co.canHandleVariableCommunicationStepSize,
        members,
    )


def _variables(model: Any) -> dict[str, FmuVariable]:
    variables: dict[str, FmuVariable] = {}
    for item in model.modelVariables:
        role = _role(item)
        if not role or item.dimensions or item.type in ("Binary", "Clock"):
            continue
        declared_type = item.declaredType
        foreign = item.unit or (declared_type.unit if declared_type else None) or ""
        unit = _unit(foreign)
        label = _label(item.name, variables)
        variables[label] = FmuVariable(
            item.name,
            label,
            role,
            item.variability in ("continuous", "discrete"),
            item.causality == "output",
            item.type,
            item.valueReference,
            unit or "",
            foreign if unit is None else "",
            " ".join((item.description or "").split()),
            _limit(item, "min"),
            _limit(item, "max"),
            "" if item.start is None else str(item.start),
        )
    return variables


def _role(item: Any) -> str:
    """The role of a variable; "" for one that studies do not use."""
    if item.causality == "input":
        return "input"
    if item.causality in ("independent", "structuralParameter") or item.variability == "constant":
        return ""
    if item.causality == "parameter" or (item.initial == "exact" and item.start is not None):
        return "parameter"
    return "signal" if item.variability in ("continuous", "discrete") else ""


def _limit(item: Any, side: str) -> float | None:
    value = getattr(item, side)
    if value is None and item.declaredType is not None:
        value = getattr(item.declaredType, side)
    try:
        number = None if value is None else float(value)
    except ValueError:
        return None
    return None if number is None or abs(number) >= 1e300 else number


def _label(name: str, variables: Mapping[str, Any]) -> str:
    """A name of letters, digits and underscores: ``spring.k[1]`` becomes ``spring_k_1``."""
    label = re.sub(r"_+", "_", re.sub(r"\W", "_", name)).strip("_") or "variable"
    if not (label[0].isalpha() or label[0] == "_"):
        label = f"v_{label}"
    number, base = 2, label
    while label in variables or label == "time":
        label, number = f"{base}_{number}", number + 1
    return label


def _unit(text: str) -> str | None:
    """The unit of studies for one of Modelica, ``N.m/rad`` or ``m/s2``; None if there is none."""
    unit = re.sub(r"(?<=[A-Za-z])(-?\d+)", r"^\1", text.replace(".", "*"))
    try:
        units.check(unit)
    except units.UnitError:
        return None
    return unit


def table(description: Description) -> str:
    """The variables of an FMU as text, for the terminal."""
    model = description.model
    kinds = " and ".join(kind.replace("_", "-") for kind in description.kinds)
    lines = [f"{description.file}: {model.modelName}, FMI {description.version}, {kinds}"]
    if model.description:
        lines.append(" ".join(model.description.split()))
    lines.append(f"platforms: {', '.join(platforms(description)) or 'none (source code only)'}")
    if description.stop is not None:
        step = f", step {description.step:g} s" if description.step else ""
        lines.append(f"simulation: {description.start:g} s to {description.stop:g} s{step}")
    titles = {
        "parameter": "parameters and start values (design inputs)",
        "input": "inputs over time (columns of 'signals', or conditions)",
        "signal": "other variables over time",
    }
    for role, title in titles.items():
        rows = [_row(variable) for variable in description.with_role(role).values()]
        if rows:
            widths = [max(len(row[i]) for row in rows) for i in range(4)]
            lines += ["", f"{title}:"]
            lines += ["  " + "  ".join(c.ljust(w) for c, w in zip(r, [*widths, 0], strict=True)).rstrip() for r in rows]
    return "\n".join(lines)


def _row(variable: FmuVariable) -> tuple[str, ...]:
    unit = variable.unit or (f"({variable.foreign_unit})" if variable.foreign_unit else "")
    ends = ["" if v is None else f"{v:g}" for v in (variable.lower, variable.upper)]
    limits = f"[{ends[0]}, {ends[1]}]" if any(ends) else ""
    about = variable.description
    if variable.name != variable.label:
        about = f"{variable.name}: {about}" if about else variable.name
    return variable.label, variable.start, unit, limits, about


def platforms(description: Description) -> list[str]:
    """The platforms with compiled code in the FMU, as the FMI names them."""
    folders = {name.split("/")[1] for name in description.members if name.startswith("binaries/") and name.count("/")}
    return sorted(folder for folder in folders if folder)
