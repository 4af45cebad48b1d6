"""The names that `from tooli.providers import …` loads on demand."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tooli.providers
from tooli.providers import public_names


def test_every_public_name_can_be_imported() -> None:
    for module, names in public_names._MODULES.items():
        for name in names:
            value = getattr(tooli.providers, name)
            assert getattr(value, "__module__", f"tooli.providers.{module}").startswith("tooli.")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'tooli\.providers' has no attribute 'nope'"):
        _ = tooli.providers.nope  # type: ignore[attr-defined]


def test_the_package_loads_no_provider() -> None:
    code = "import sys, tooli.providers; print('tooli.providers.provider' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
