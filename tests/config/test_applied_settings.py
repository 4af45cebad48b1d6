"""Settings that are applied to an app: its policy, its rules and its command line."""

from __future__ import annotations

import pytest
from tests.config.conftest import Machine

from tooli.config.applied_settings import extract_security_rules, load_cli_settings
from tooli.core import AppState


def test_tokens_of_the_lowest_layer_apply(machine: Machine) -> None:
    machine.write("user", "tokens: /user\n")
    machine.write("system", "token_key: /system\n")
    assert extract_security_rules(machine.resolve()) == {"token_key": "/system"}


def test_caller_cannot_add_tokens_by_repeating_the_key_of_the_system(machine: Machine) -> None:
    machine.write("system", "token_key: /system\n")
    env = {"TOOLI_TOKEN_KEY": "/system", "TOOLI_TOKENS": "/mine"}
    settings = machine.resolve(env=env)
    assert extract_security_rules(settings) == {"token_key": "/system"}
    effective = settings.effective("token_key")
    assert effective is not None
    assert (effective.layer, effective.origin) == ("system", f"{machine.system}:1")


def test_record_capabilities_variable_is_a_security_rule(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_RECORD_CAPABILITIES", "/tmp/record")
    assert extract_security_rules(machine.resolve()) == {"record_capabilities": "/tmp/record"}


def test_rules_contain_only_faults_that_affect_every_interface(machine: Machine) -> None:
    machine.write("user", "output: no-such-mode\ntimeout: never\nisolation: perhaps\n")
    rules = extract_security_rules(machine.resolve())
    assert [fault.key for fault in rules["faults"]] == ["timeout", "isolation"]


def test_command_line_gets_all_faults(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.write("project", "output: no-such-mode\nisolation: perhaps\n")
    monkeypatch.chdir(machine.here)
    monkeypatch.setenv("HOME", machine.env["HOME"])
    state = AppState("shop", {})
    faults = load_cli_settings(state, {}, set(), None, standalone=False)
    assert [fault.key for fault in faults] == ["output", "isolation"]
    assert [fault.key for fault in state.security_settings["faults"]] == ["isolation"]
