"""load_security_settings: the security settings of an app, read once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.config.conftest import Machine

from tooli.config import load_security_settings
from tooli.core import AppState


@pytest.fixture(autouse=True)
def environment(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("TOOLI_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", machine.env["HOME"])
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(machine.here)


def test_without_settings_nothing_changes() -> None:
    state = AppState("shop", {})
    load_security_settings(state)
    assert (state.policy, state.security_settings) == ("standard", {})
    assert state.security_settings_loaded


def test_strictest_values_apply(machine: Machine) -> None:
    machine.write("user", "security_policy: strict\ntimeout: 7\noutput: json\n")
    machine.write("project", "security_policy: off\ndeny_paths: /a\n")
    state = AppState("shop", {})
    load_security_settings(state)
    assert state.policy == "strict"
    assert state.security_settings == {"deny_paths": ("/a",), "timeout": 7.0}


def test_declared_policy_is_a_layer(machine: Machine) -> None:
    machine.write("user", "security_policy: off\n")
    state = AppState("shop", {})
    state.policy = state.declared_policy = "strict"
    load_security_settings(state)
    assert state.policy == "strict"


def test_settings_are_read_once(machine: Machine) -> None:
    state = AppState("shop", {})
    load_security_settings(state)
    machine.write("user", "security_policy: strict\n")
    load_security_settings(state)
    assert state.policy == "standard"


def test_faults_of_security_settings_are_kept(machine: Machine) -> None:
    machine.write("user", "security_policy: none\noutput: no-such-mode\nunknown: 1\n")
    state = AppState("shop", {})
    load_security_settings(state)
    keys = [fault.key for fault in state.security_settings["faults"]]
    assert set(keys) == {"security_policy", None}


def test_work_dir_must_be_a_directory(machine: Machine) -> None:
    machine.write("user", "work_dir: no-such-folder\n")
    state = AppState("shop", {})
    load_security_settings(state)
    (fault,) = state.security_settings["faults"]
    assert fault.key == "work_dir" and "it is not a directory" in fault.message
    assert state.security_settings["work_dir"] == str(machine.here / "no-such-folder")


def test_variable_applies_without_settings_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_SECURITY_POLICY", "strict")
    state = AppState("shop", {})
    load_security_settings(state)
    assert state.policy == "strict"


def test_variable_with_a_similar_name_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOOLI_SECURITY_POLICY", "strict")
    state = AppState("shop", {})
    load_security_settings(state)
    assert state.policy == "standard"


def test_system_file_applies_if_other_files_are_disabled(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_CONFIG", "off")
    machine.write("system", "security_policy: strict\n")
    machine.write("user", "deny_paths: /a\n")
    state = AppState("shop", {})
    load_security_settings(state)
    assert (state.policy, state.security_settings) == ("strict", {})


def test_layers_are_imported_only_if_there_are_settings(machine: Machine) -> None:
    code = (
        "import sys\n"
        "from tooli.config import load_security_settings\n"
        "from tooli.core import AppState\n"
        "load_security_settings(AppState('shop', {}))\n"
        "print('tooli.config.layers' in sys.modules)\n"
    )
    found = []
    for variables in ({}, {"TOOLI_TIMEOUT": "5"}):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.strip())
    assert found == ["False", "True"]
