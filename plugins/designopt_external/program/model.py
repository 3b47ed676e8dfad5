"""The model ``program``: a design is written into input files, a program runs, its files contain the results."""

from __future__ import annotations

import errno
import functools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NoReturn, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from designopt.evaluation_progress import remark
from designopt.files import InputFileError
from designopt.plugin import (
    Array,
    Declaration,
    Diverged,
    ForeignCode,
    InputFile,
    InvalidSetting,
    Permission,
    ProgramFailed,
    Quantity,
    closest,
    model,
)
from designopt.study.language import units
from designopt_external.program import sources
from designopt_external.program.dakota import parameters_file
from designopt_external.program.folder import pack_folder
from designopt_external.program.process import STDERR, STDOUT, ProcessEnd, environment, run
from designopt_external.program.sources import ArraySection, MissingResult, SourceSection
from designopt_external.program.templates import SUFFIXES, DeckTemplate, TemplateMistake, UnitNumber

#: The unit of an input whose values are words.
TEXT = "text"
#: The array with the files of an evaluation.
FOLDER = "folder"
#: Files up to this size (bytes) stay in memory; larger ones are copied from the disk for each evaluation.
SMALL = 2**20
#: Lines of each printed text in the message of a failure.
PRINTED = 20

#: Errors of the system at the start of a program.
_NOT_STARTED = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOEXEC)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Variables with which a study could bring code of its own into an allowed program.
_LOADERS = re.compile(r"(LD_|DYLD_)\w*|PATH")


class EvidenceSection(TypedDict, total=False):
    """The evidence that a program has ended in a certain way: its exit code, or a text."""

    exit: Annotated[list[int], Quantity("", "exit codes")]
    text: Annotated[str, Quantity("", "regular expression of a text")]
    file: Annotated[str, Quantity("", "file that contains the text; default: what the program prints")]


class EndsSection(TypedDict, total=False):
    """The ends of a program by class."""

    success: Annotated[EvidenceSection, Quantity("", "exit codes of a success (default 0), and a text that it needs")]
    diverged: Annotated[EvidenceSection, Quantity("", "the design has no solution; the line of the text is the reason")]
    error: Annotated[EvidenceSection, Quantity("", "exit codes or a text of an error")]
    timeout: Annotated[EvidenceSection, Quantity("", "exit codes or a text of a time limit of the program itself")]


@model("program", version=2)
class ExternalProgram:
    """An external program: a finite-element solver, a compiled code, a script.

    For each evaluation the input files are written into a new folder, the program runs there by its list of arguments
    (no shell) in a clean environment, and the results are read from its files. The folder is removed afterwards;
    ``execution: {arrays: {folder: failed}}`` (or ``chosen``, ``front``, ``all``) keeps it in the store. The user
    allows the program by name: ``--allow NAME`` or ``--allow NAME=PATH``.

    A subclass with its own `read` takes results from other formats::

        @model("my_solver", version=1)
        class MySolver(ExternalProgram):
            def read(self, folder):
                return {"peak": float(meshio.read(folder / "out.vtu").point_data["stress"].max())}
    """

    run: Annotated[list[str], Quantity("", "name of the program, and its arguments; inputs as in templates")]
    inputs: Annotated[dict[str, str], Quantity("", "design inputs with their units in the files; text for words")]
    outputs: Annotated[dict[str, SourceSection], Quantity("", "results by name, with their place in the files")]
    conditions: Annotated[dict[str, str], Quantity("", "conditions of scenarios, like inputs")] = field(
        default_factory=dict
    )
    templates: Annotated[list[InputFile], Quantity("", "input files with {{ input }}, as Jinja2 templates")] = field(
        default_factory=list
    )
    aprepro: Annotated[list[InputFile], Quantity("", "input files with {input}, as for Dakota's aprepro")] = field(
        default_factory=list
    )
    files: Annotated[list[InputFile], Quantity("", "files copied as they are")] = field(default_factory=list)
    parameters: Annotated[str, Quantity("", "name of a parameters file as Dakota writes it; default none")] = ""
    stdin: Annotated[str, Quantity("", "file that the program reads as its standard input; default none")] = ""
    arrays: Annotated[dict[str, ArraySection], Quantity("", "results with an axis")] = field(default_factory=dict)
    ends: Annotated[EndsSection, Quantity("", "how the end of the program is classified")] = field(
        default_factory=EndsSection
    )
    environment: Annotated[
        list[str], Quantity("", "variables of the program: NAME from the user's environment, or NAME=value")
    ] = field(default_factory=list)

    # ------------------------------------------------------------------------------------------------------- checks

    def check(self) -> Iterator[InvalidSetting]:
        """Return the mistakes in the settings and in the templates."""
        yield from self._check_command()
        for setting, units_of in (("inputs", self.inputs), ("conditions", self.conditions)):
            for name, unit in units_of.items():
                yield from _check_input(f"{setting}.{name}", name, unit)
        for name in [name for name in self.inputs if name in self.conditions]:
            yield InvalidSetting(f"conditions.{name}", "is an input of the design too; remove one of them")
        names = [*self.inputs, *self.conditions]
        used_names: set[str] = set()
        for setting, aprepro in (("templates", False), ("aprepro", True)):
            for position, file in enumerate(getattr(self, setting)):
                try:
                    template = _template(file, aprepro)
                except (TemplateMistake, InputFileError) as error:
                    yield InvalidSetting(f"{setting}.{position}", str(error))
                    used_names.update(names)
                    continue
                used_names |= template.names.keys()
                for sentence in template.unknown(names):
                    yield InvalidSetting(f"{setting}.{position}", sentence)
        for position, text in enumerate(self.run):
            try:
                template = DeckTemplate.read(f"argument {position}", text)
            except TemplateMistake as error:
                yield InvalidSetting(f"run.{position}", str(error))
                continue
            used_names |= template.names.keys()
            for sentence in template.unknown(names):
                yield InvalidSetting(f"run.{position}", sentence)
        if type(self).write_files is ExternalProgram.write_files and not self.parameters:
            for setting, units_of in (("inputs", self.inputs), ("conditions", self.conditions)):
                for name in [name for name in units_of if name not in used_names]:
                    text = "no template, argument or parameters file uses it, so it would change nothing"
                    yield InvalidSetting(f"{setting}.{name}", text)
        yield from self._check_files()
        yield from self._check_results()

    def _check_command(self) -> Iterator[InvalidSetting]:
        if not self.run:
            yield InvalidSetting("run", "is empty; write the name of the program, as in [ccx, bracket]")
        elif not re.fullmatch(r"\w[\w.+-]*", self.run[0]):
            name = PurePosixPath(self.run[0]).name
            hint = "write its name alone"
            if "/" in self.run[0]:
                hint += f", {name}, and give its path on the command line: --allow {name}={self.run[0]}"
            elif " " in self.run[0]:
                hint += f" and the arguments as a list: [{', '.join(self.run[0].split())}]"
            yield InvalidSetting("run.0", f"'{self.run[0]}' is not the name of a program; {hint}")
        for position, text in enumerate(self.environment):
            name, equals, _ = text.partition("=")
            if not _NAME.fullmatch(name):
                yield InvalidSetting(f"environment.{position}", f"'{text}' is not a variable; write NAME or NAME=value")
            elif equals and _LOADERS.fullmatch(name):
                reason = (
                    f"a study cannot set {name}, which can bring other code into a program; write {name} to pass on"
                )
                yield InvalidSetting(f"environment.{position}", f"{reason} your own value")

    def _check_files(self) -> Iterator[InvalidSetting]:
        names: dict[str, str] = {STDOUT: "the printed text", STDERR: "the printed text"}
        for setting in ("templates", "aprepro", "files"):
            for position, file in enumerate(getattr(self, setting)):
                name = written_name(file, is_template=setting != "files")
                if name in names:
                    text = f"'{file.name}' would be written as '{name}', like {names[name]}; rename one of them"
                    yield InvalidSetting(f"{setting}.{position}", text)
                names[name] = f"'{file.name}'"
        if self.parameters:
            if Path(self.parameters).name != self.parameters or self.parameters in names:
                yield InvalidSetting("parameters", f"'{self.parameters}' is not the name of a new file")
            names[self.parameters] = "the parameters file"
        if self.stdin and self.stdin not in names and type(self).write_files is ExternalProgram.write_files:
            near = closest(self.stdin, names)
            hint = f"did you mean '{near}'?" if near else f"files are {', '.join(list(names)[2:]) or 'none'}"
            yield InvalidSetting("stdin", f"no input file is named '{self.stdin}'; {hint}")

    def _check_results(self) -> Iterator[InvalidSetting]:
        if not self.outputs:
            yield InvalidSetting(
                "outputs", "is empty; name at least one result, as in mass: {json: out.json, path: mass}"
            )
        reads = type(self).read is not ExternalProgram.read
        for setting, sections in (("outputs", self.outputs), ("arrays", self.arrays)):
            for name, section in sections.items():
                at = f"{setting}.{name}"
                if not name.isidentifier() or name == FOLDER:
                    yield InvalidSetting(at, "a name has only letters, digits and underscores, and 'folder' is in use")
                yield from sources.check(section, at, array=setting == "arrays")
                if not sources.format_of(section) and not reads:
                    yield InvalidSetting(at, "its file is missing: give csv, json, text or dakota with a file name")
        for name, array in self.arrays.items():
            if name in self.outputs:
                yield InvalidSetting(f"arrays.{name}", "is an output too; rename one of them")
            if not array["axis"].isidentifier():
                yield InvalidSetting(f"arrays.{name}.axis", f"'{array['axis']}' is not a name")
        for end, item in self.ends.items():
            evidence = cast(EvidenceSection, item)
            if not evidence.keys() & {"exit", "text"}:
                yield InvalidSetting(f"ends.{end}", "needs 'exit' (exit codes) or 'text'")
            if "file" in evidence and "text" not in evidence:
                yield InvalidSetting(f"ends.{end}.file", "'text' is missing: what to look for in it")
            if "text" in evidence:
                yield from sources.check_pattern(evidence["text"], f"ends.{end}.text")

    def check_space(self, parameters: Mapping[str, Any]) -> Iterator[InvalidSetting]:
        """Return the parameters that no input file contains."""
        for name in parameters:
            if name not in self.inputs:
                yield InvalidSetting(
                    name, f"no input of the program has this name; add it to model.inputs: {{{name}: UNIT}}"
                )

    def check_scenario(self, conditions: Mapping[str, Any]) -> Iterator[InvalidSetting]:
        """Return the conditions that no input file contains."""
        for name in conditions:
            if name not in self.conditions:
                text = f"no condition of the program has this name; add it to model.conditions: {{{name}: UNIT}}"
                yield InvalidSetting(name, text)

    def declares(self) -> Declaration:
        """The inputs, conditions, outputs and arrays of the settings, and the array `FOLDER`."""
        units_of = {**self.inputs, **self.conditions}
        quantities = {name: Quantity("" if unit == TEXT else unit) for name, unit in units_of.items()}
        arrays = {
            name: Array((array["axis"],), array.get("unit", ""), array.get("meaning", ""), "float")
            for name, array in self.arrays.items()
        }
        arrays[FOLDER] = Array(("byte",), "", "files of the evaluation, as a compressed tar archive")
        return Declaration(
            inputs={name: quantities[name] for name in self.inputs},
            conditions={name: quantities[name] for name in self.conditions},
            outputs={n: Quantity(s.get("unit", ""), s.get("meaning", "")) for n, s in self.outputs.items()},
            arrays=arrays,
            optional=frozenset[str]().union(*(template.optional for template in self._templates)),
            texts=frozenset(name for name, unit in units_of.items() if unit == TEXT),
        )

    # ---------------------------------------------------------------------------------------------------- execution

    def runs(self) -> Sequence[ForeignCode]:
        """The program."""
        return (ForeignCode(self.run[0]),)

    def prepare(self, permission: Permission) -> None:
        """Store the path of the program and the limits."""
        for mistake in self.check():  # settings from a store are unchecked
            raise mistake
        self._program = permission.programs[self.run[0]]
        self._limit = permission.timeout
        self._keeps_failed = FOLDER in permission.keeps_failed

    def evaluate(
        self, design: Mapping[str, Any], scenario: Mapping[str, Any], arrays: Set[str]
    ) -> tuple[Mapping[str, float], Mapping[str, NDArray[Any]]]:
        """The outputs and `arrays` of a run of the program in a new folder.

        Raises `Diverged` and `ProgramFailed` as the setting `ends` says; an exit code that it does not contain and a
        missing result are errors, the end by a signal is a crash.
        """
        folder = Path(tempfile.mkdtemp(prefix="designopt-program-"))
        try:
            return self._run_in(folder, {**scenario, **design}, arrays)
        except (Diverged, ProgramFailed) as error:
            if FOLDER in arrays or self._keeps_failed:
                error.arrays = {FOLDER: pack_folder(folder)}
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run_in(
        self, folder: Path, values: Mapping[str, Any], arrays: Set[str]
    ) -> tuple[dict[str, float], dict[str, NDArray[Any]]]:
        try:
            self.write_files(folder, values)
            command = [
                self._program,
                *(argument.fill(self._values_with_units(values)) for argument in self._arguments),
            ]
        except TemplateMistake as error:
            raise ProgramFailed(str(error), reason="template") from None
        except OSError as error:
            text = f"the input files cannot be written: {error.strerror or error}"
            raise ProgramFailed(text, reason="disk") from error
        try:
            stdin = folder / self.stdin if self.stdin else None
            variables = environment(folder, self.environment)
            process_end = run(command, folder, variables, limit=self._limit, stdin=stdin)
        except OSError as error:
            if error.errno in _NOT_STARTED:
                text = f"the program '{self.run[0]}' cannot be started: {error.strerror}"
                raise ProgramFailed(text, reason="start") from error
            text = f"the printed text cannot be written: {error.strerror or error}"
            raise ProgramFailed(text, reason="disk") from error
        self._judge(process_end, folder)
        try:
            return self._results(folder, arrays)
        except MissingResult as error:
            _fail(folder, str(error), reason="missing result")

    def write_files(self, folder: Path, values: Mapping[str, Any]) -> None:
        """Write the input files of a design into `folder`; `values` are its inputs and conditions by name, in their
        units. Raises `TemplateMistake`, `OSError`."""
        texts = self._values_with_units(values)
        for file in self.files:
            _copy(file, _path_inside(folder, written_name(file, is_template=False)))
        for file, template in zip((*self.templates, *self.aprepro), self._templates, strict=True):
            text = template.fill(texts)
            _path_inside(folder, written_name(file, is_template=True)).write_bytes(
                text.encode("utf-8", "surrogateescape")
            )
        if self.parameters:
            entries = {name: values[name] for name in (*self.inputs, *self.conditions) if name in values}
            _path_inside(folder, self.parameters).write_text(parameters_file(entries, list(self.outputs)))

    def read(self, folder: Path) -> Mapping[str, Any]:
        """Outputs and arrays by name that have no file in the study; a subclass reads them from `folder`."""
        return {}

    @functools.cached_property
    def _templates(self) -> list[DeckTemplate]:
        return [*(_template(file, False) for file in self.templates), *(_template(file, True) for file in self.aprepro)]

    @functools.cached_property
    def _arguments(self) -> list[DeckTemplate]:
        return [DeckTemplate.read(f"argument {i}", text) for i, text in enumerate(self.run[1:], 1)]

    def _values_with_units(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values with their units, for templates."""
        units_of = {**self.inputs, **self.conditions}
        return {
            name: UnitNumber.with_unit(value, units_of[name])
            if isinstance(value, float) and name in units_of
            else value
            for name, value in values.items()
        }

    def _judge(self, process_end: ProcessEnd, folder: Path) -> None:
        """Raise the exception for the end of the program, unless it is a success."""
        if process_end.timed_out:
            _fail(folder, f"the program ran longer than {self._limit:g} s, the time limit", status="timeout")
        for end in ("diverged", "timeout", "error"):
            section = cast(EvidenceSection, self.ends.get(end, {}))
            sentence = _line_with(section, folder)
            if sentence or process_end.code in section.get("exit", ()):
                sentence = sentence or f"the program ended with exit code {process_end.code}"
                if end == "diverged":
                    raise Diverged(sentence, reason=sentence[:80])
                _fail(folder, sentence, status=end, reason=sentence[:80])
        if process_end.signal:
            _fail(folder, f"the program was ended by {process_end.signal}", status="crashed", reason=process_end.signal)
        success = self.ends.get("success", EvidenceSection())
        if process_end.code not in success.get("exit", (0,)):
            cause = stated_cause(_text(folder, STDERR), _text(folder, STDOUT))
            _fail(
                folder,
                f"the program ended with exit code {process_end.code}{cause}",
                reason=f"exit code {process_end.code}",
            )
        if "text" in success and not _line_with(success, folder):
            name = success.get("file", STDOUT)
            near = sources.nearest_lines(_text(folder, name), success["text"])
            _fail(folder, f"{name}: no line matches '{success['text']}', as a success needs{near}", reason="no success")

    def _results(self, folder: Path, arrays: Set[str]) -> tuple[dict[str, float], dict[str, NDArray[Any]]]:
        texts: dict[str, str] = {}
        further_results = self.read(folder)
        outputs = {}
        reductions: list[str] = []
        for name, section in self.outputs.items():
            if sources.format_of(section):
                numbers = sources.read(section, folder, texts)
                outputs[name] = sources.single_number(section, numbers)
                table_text = sources.table_position(section, texts)
                if len(numbers) > 1 or table_text:
                    taken_number = f"{section.get('take', 'last')} of {len(numbers)} numbers"
                    reductions.append(f"{name} is the {taken_number if len(numbers) > 1 else 'number'}{table_text}")
            elif name in further_results:
                outputs[name] = float(further_results[name])
        if reductions:
            remark(", ".join(reductions))
        results: dict[str, NDArray[Any]] = {}
        for name, array in self.arrays.items():
            if name in arrays:
                section = cast(SourceSection, array)
                results[name] = np.array(
                    sources.read(section, folder, texts) if sources.format_of(section) else further_results[name]
                )
        if FOLDER in arrays:
            results[FOLDER] = pack_folder(folder)
        return outputs, results


def _check_input(at: str, name: str, unit: str) -> Iterator[InvalidSetting]:
    if not name.isidentifier():
        yield InvalidSetting(at, f"'{name}' is not a name: use letters, digits and underscores")
    if unit != TEXT:
        try:
            units.check(unit)
        except units.UnitError as error:
            yield InvalidSetting(at, f"{error}; write the unit of the number in the files, or {TEXT} for words")


def _fail(folder: Path, sentence: str, **about: Any) -> NoReturn:
    """Raise `ProgramFailed` with the end of the printed text, then the sentence."""
    lines_printed = []
    for name in (STDOUT, STDERR):
        if lines := _text(folder, name).strip().splitlines():
            lines_printed += [f"{name}, the end of what the program printed:", *lines[-PRINTED:]]
    raise ProgramFailed("\n".join([*lines_printed, sentence]), **about)


def _text(folder: Path, name: str) -> str:
    try:
        return sources.text_of(folder, name)
    except (MissingResult, OSError):
        return ""


#: A line that reports an error, not its absence or a numerical error.
_ERROR = re.compile(r"(?<!no )(?<!\b0 )(?<!relative )(?<!absolute )errors?\b", re.IGNORECASE)


def stated_cause(*texts: str) -> str:
    """``; it prints: *ERROR reading elements: ...``: the first lines of `texts` that report an error, else the last
    line; "" if all are empty."""
    lines = [[line.strip() for line in text.splitlines() if line.strip()] for text in texts]
    for text_lines in lines:
        k = next((k for k, line in enumerate(text_lines) if _ERROR.search(line)), None)
        if k is not None:
            return f"; it prints: {' '.join(text_lines[k : k + 2])[:200]}"
    return next((f"; its last line is: {text_lines[-1][:200]}" for text_lines in lines if text_lines), "")


def _line_with(section: EvidenceSection, folder: Path) -> str:
    """The first line that matches the text of a section; "" without one."""
    if "text" not in section:
        return ""
    for name in [section["file"]] if "file" in section else [STDOUT, STDERR]:
        text = _text(folder, name)
        if match := re.search(section["text"], text, re.MULTILINE):
            begin, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.start())
            return text[begin : end if end >= 0 else len(text)].strip() or match[0].strip() or section["text"]
    return ""


def written_name(file: InputFile, *, is_template: bool) -> str:
    """The name of an input file in the folder of an evaluation: below the study's folder for copied files, without
    folder and suffix for templates."""
    name = file.name.rpartition(":")[2]
    if not is_template:
        return name
    name = PurePosixPath(name).name
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)


def _path_inside(folder: Path, name: str) -> Path:
    """The file `name` in `folder`. Raises `ValueError` for a name that leads out of it, which a received store
    may contain."""
    file = folder / name
    if not file.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"'{name}' lies outside the folder of the evaluation")
    return file


@functools.lru_cache(maxsize=256)
def _template(file: InputFile, aprepro: bool) -> DeckTemplate:
    """The template in a file. Raises `TemplateMistake`, `InputFileError`."""
    return DeckTemplate.read(file.name, file.content.decode("utf-8", "surrogateescape"), aprepro=aprepro)


@functools.lru_cache(maxsize=64)
def _content(file: InputFile) -> bytes:
    return file.content


def _copy(file: InputFile, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if file.size <= SMALL:
        target.write_bytes(_content(file))
        return
    with file.path() as source:
        shutil.copyfile(source, target)
    os.chmod(target, 0o644)
