"""A machine with settings files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tooli.cli import process
from tooli.config import config_files
from tooli.config.layers import Settings, resolve_settings


class Machine:
    """A machine with settings files of a project, a user and the system."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.here = self.project / "src" / "deep"
        self.here.mkdir(parents=True)
        (self.project / ".git").mkdir()
        self.user = folder / "home" / ".config" / "tooli" / "config.yaml"
        self.system = folder / "etc" / "config.yaml"
        for file in (self.user, self.system):
            file.parent.mkdir(parents=True)
        self.files = {
            ".env": self.project / ".env",
            "project": self.project / ".tooli.yaml",
            "user": self.user,
            "system": self.system,
        }
        self.env = {"HOME": str(folder / "home")}

    def write(self, layer: str, text: str) -> None:
        self.files[layer].write_text(text)

    def resolve(self, app: str = "shop", **more: Any) -> Settings:
        return resolve_settings(
            app, env={**self.env, **more.pop("env", {})}, folder=str(self.here), **more
        )


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    monkeypatch.setattr(config_files, "SYSTEM_CONFIG_PATH", str(machine.system))
    monkeypatch.setattr(process, "SYSTEM_CONFIG_PATH", str(machine.system))
    return machine
