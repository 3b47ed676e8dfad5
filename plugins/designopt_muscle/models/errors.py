"""Errors of the files of a trial."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from designopt_mechanics.robot_files.xml import ModelError
from designopt_recordings.errors import RecordingError, errors_about

from designopt.plugin import InputFile
from designopt_muscle.markers.status import MarkerError


class TrialError(ValueError):
    """Files that make no trial: which one, and why."""


@contextmanager
def readable(file: InputFile) -> Iterator[None]:
    """Turn errors of reading a file into a `TrialError` that begins with its name."""
    try:
        with errors_about(file.name):
            yield
    except (RecordingError, ModelError, MarkerError) as error:
        text = str(error)
        raise TrialError(text if text.startswith(file.name) else f"{file.name}: {text}") from None
