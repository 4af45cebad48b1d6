"""Functions of lazy commands."""

from __future__ import annotations

import os

import pytest

from tooli.errors import DefinitionError
from tooli.providers.lazy_functions import load_function


def test_function_is_imported() -> None:
    assert load_function("os:getcwd") is os.getcwd


@pytest.mark.parametrize("target", ["os:missing", "no_such_module:f", ":f", "os"])
def test_missing_function_names_the_target(target: str) -> None:
    with pytest.raises(DefinitionError, match="cannot be loaded"):
        load_function(target)
