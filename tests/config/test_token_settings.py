"""Which settings make a server verify tokens, and the keywords that stand for them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.config.conftest import Machine

from tooli.config.applied_settings import extract_security_rules
from tooli.config.setting_definitions import SETTINGS, InvalidSetting, RawSetting
from tooli.config.token_settings import (
    OAUTH_SETTINGS,
    has_discovered_keys,
    verifies_tokens,
    with_keywords,
)
from tooli.errors import DefinitionError

ISSUER = "https://issuer.example"


@pytest.mark.parametrize(
    ("settings", "verifies", "is_discovered"),
    [
        ({}, False, False),
        ({"token_issuer": "a name"}, False, False),
        ({"token_issuer": ISSUER}, True, True),
        ({"token_issuer": ISSUER, "token_key": "/key"}, True, False),
        ({"token_issuer": ISSUER, "tokens": "/tokens"}, True, False),
        ({"token_issuer": ISSUER, "token_jwks_url": ISSUER}, True, False),
        ({"introspection_url": ISSUER}, True, False),
        ({"resource_url": ISSUER, "token_scopes": "a"}, False, False),
    ],
)
def test_settings_say_if_tokens_are_verified(
    settings: Any, verifies: bool, is_discovered: bool
) -> None:
    assert verifies_tokens(settings) is verifies
    assert has_discovered_keys(settings) is is_discovered


def test_keywords_are_merged_with_the_settings() -> None:
    settings: Any = {"token_issuer": ISSUER, "tokens": "/tokens"}
    merged = with_keywords(settings, {"token_issuer": ISSUER, "token_audience": "shop"})
    assert merged == {**settings, "token_audience": "shop"}
    assert with_keywords(settings, dict.fromkeys(OAUTH_SETTINGS)) == settings
    with pytest.raises(DefinitionError, match="TOOLI_TOKEN_ISSUER"):
        with_keywords(settings, {"token_issuer": "https://other.example"})
    with pytest.raises(DefinitionError, match="https"):
        with_keywords({}, {"token_jwks_url": "http://other.example/jwks"})


@pytest.mark.parametrize(
    ("name", "text", "is_valid"),
    [
        ("token_jwks_url", "https://issuer.example/jwks?x=1", True),
        ("token_jwks_url", "http://127.0.0.1:9/jwks", True),
        ("token_jwks_url", "http://localhost", True),
        ("token_jwks_url", "http://[::1]:9", True),
        ("token_jwks_url", "http://issuer.example/jwks", False),
        ("token_jwks_url", "http://localhost.evil.example/", False),
        ("token_jwks_url", "http://127.0.0.1.evil.example/", False),
        ("token_jwks_url", "/etc/jwks", False),
        ("introspection_url", "https://", False),
        ("resource_url", "https://shop.example.com/shop", True),
        ("resource_url", "http://shop.internal:8000", True),
        ("resource_url", "https://shop.example.com/?a", False),
        ("resource_url", "https://user@shop.example.com", False),
        ("resource_url", "shop.example.com", False),
        ("introspection_secret", "env:SECRET", True),
        ("introspection_secret", "@/run/secret", True),
        ("introspection_secret", "@secret", False),
        ("introspection_secret", "env:", False),
        ("introspection_secret", "hunter2", False),
    ],
)
def test_values_are_checked(name: str, text: str, is_valid: bool) -> None:
    if is_valid:
        assert SETTINGS[name].convert(RawSetting(text)) == text
        return
    with pytest.raises(InvalidSetting) as caught:
        SETTINGS[name].convert(RawSetting(text))
    assert f"not {text}" not in str(caught.value)  # it may be secret


@pytest.mark.parametrize("name", OAUTH_SETTINGS)
def test_project_cannot_set_them(machine: Machine, name: str) -> None:
    value = "env:X" if name.endswith("secret") else ISSUER
    machine.write("project", f"{name}: {value}\n")
    assert name not in extract_security_rules(machine.resolve())


# ------------------------------------------------------------------ layers


def test_issuer_of_the_system_decides(machine: Machine) -> None:
    machine.write("system", f"token_issuer: {ISSUER}\n")
    env = {
        "TOOLI_TOKEN_ISSUER": "https://evil.example",
        "TOOLI_TOKEN_JWKS_URL": "https://evil.example/jwks",
        "TOOLI_INTROSPECTION_URL": "https://evil.example/introspect",
        "TOOLI_TOKENS": "/mine",
    }
    assert extract_security_rules(machine.resolve(env=env)) == {"token_issuer": ISSUER}


def test_caller_cannot_add_an_issuer(machine: Machine) -> None:
    machine.write("system", "tokens: /system\n")
    env = {"TOOLI_TOKEN_ISSUER": "https://evil.example"}
    rules = extract_security_rules(machine.resolve(env=env))
    assert rules.get("tokens") == "/system"
    assert not has_discovered_keys(rules)
