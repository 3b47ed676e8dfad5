"""The line of a plugin in which an error began."""

import re

import pytest

from designopt.plugin.error_location import error_line


def test_an_error_in_code_without_a_file_is_located_in_the_users_line() -> None:
    generated = compile("raise ValueError('bad name')", "<string>", "exec")
    with pytest.raises(ValueError, match="bad name") as raised:
        exec(generated)  # as the generated __init__ of a dataclass
    assert re.fullmatch(r".*test_plugin_error_location\.py:\d+: ValueError: bad name", error_line(raised.value))
