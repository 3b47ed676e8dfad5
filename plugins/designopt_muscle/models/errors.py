"""Errors of the files of a trial."""


class TrialError(ValueError):
    """Files that make no trial: which one, and why."""
