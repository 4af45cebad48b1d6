"""Settings files, and the quick check for them on the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tooli.cli import process
from tooli.config import config_files
from tooli.config.setting_definitions import SETTINGS, documented_variables


def settings_files() -> Iterator[tuple[str, str]]:
    """Yield the path and the content of files that may contain settings."""
    yield "a/b/.tooli.yaml", "x: 1"
    yield "a/.tooli.yaml", ""
    yield ".tooli.yaml", "x: 1"
    yield "a/b/pyproject.toml", "[tool.tooli]\n"
    yield "a/pyproject.toml", "[ tool . 'tooli' ]\n"
    yield "pyproject.toml", "[tool]\ntooli = {}\n"
    yield "pyproject.toml", "[tool] # tools\ntooli = {}\n"
    yield "pyproject.toml", "tool = {tooli = {}}\n"
    yield "a/pyproject.toml", "[project]\ndependencies = ['tooli']\n[tool.ruff]\n"
    yield "a/b/.env", "TOOLI_OUTPUT=json\n"
    yield "a/b/.env", "OTHER=1\n"
    yield "a/.env", "export TOOLI_QUIET=1\n"
    yield ".env", "TOOLI_QUIET=1\n"


@pytest.mark.parametrize(("file", "text"), [*settings_files()])
@pytest.mark.parametrize("repository", ["", "a", "a/b"])
def test_quick_check_finds_every_settings_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, repository: str
) -> None:
    here = tmp_path / "a" / "b"
    here.mkdir(parents=True)
    (tmp_path / file).write_text(text)
    if repository:
        (tmp_path / repository / ".git").mkdir()
    monkeypatch.chdir(here)
    for name in ("HOME", "XDG_CONFIG_HOME", "TOOLI_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    files = config_files.find_config_files(os.environ)
    found = [config for config in files if str(tmp_path) in config.path]
    relevant = [config for config in found if "TOOLI_" in text or config.layer != ".env"]
    assert process._has_config_file() or not relevant
    if not found and not file.endswith(".env"):
        assert not process._has_config_file()


def test_quick_check_tests_each_path_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOOLI_CONFIG", raising=False)
    checked: list[str] = []
    real_access = os.access

    def access(path: str, mode: int) -> bool:
        checked.append(path)
        return real_access(path, mode)

    monkeypatch.setattr(os, "access", access)
    assert not process._has_config_file()
    assert len(checked) == len(set(checked))
    assert str(tmp_path / ".env") in checked


def test_quick_check_knows_every_variable() -> None:
    variables = {setting.variable for setting in SETTINGS.values()} - {"TOOLI_OUTPUT"}
    assert variables == process.SETTING_VARIABLES - {"TOOLI_RECORD_CAPABILITIES"}
    assert variables < set(documented_variables())
    assert process.SYSTEM_CONFIG_PATH == config_files.SYSTEM_CONFIG_PATH.replace("\\", "/")
