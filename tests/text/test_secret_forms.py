"""The texts that reveal a secret are found in every spelling and encoding."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from base64 import b64encode, urlsafe_b64encode
from decimal import Decimal
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tooli import SecretInput, Tooli
from tooli.core.call import RedactionPolicy
from tooli.core.tool import MISSING
from tooli.pipeline.present import present_text
from tooli.testing import Case
from tooli.testing.app_interfaces import interfaces
from tooli.text import secret_forms
from tooli.text.secret_forms import SecretForms


def contains_secret(text: str, secret: object) -> bool:
    return any([form in text for form in SecretForms([SecretInput(secret)]).texts])


@settings(max_examples=150, deadline=None)
@given(
    st.text(st.characters(blacklist_categories=["Cs"]), min_size=8, max_size=30),
    st.text(max_size=9),
)
def test_encoded_secrets_are_found(secret: str, before: str) -> None:
    assume(secret.strip())
    try:
        data = (before + secret + "tail").encode()
    except UnicodeEncodeError:
        assume(False)
        raise
    for written in (
        secret,
        json.dumps(secret),
        json.dumps(secret, ensure_ascii=False),
        repr(secret),
        quote(secret, safe=""),
        quote(secret),
        quote_plus(secret),
        secret.encode().hex(),
        secret.encode().hex().upper(),
        re.sub("%..", lambda code: code[0].lower(), quote(secret, safe="")),
        b64encode(data).decode(),
        urlsafe_b64encode(data).decode(),
    ):
        assert contains_secret(f"{before}{written}tail", secret), written


def test_secrets_of_any_type_are_found() -> None:
    assert contains_secret("it is 123456", 123456)
    assert contains_secret("abcdefgh", b"abcdefgh")
    assert contains_secret("b: second1", {"a": "first11", "b": ["second1"]})
    assert SecretForms([SecretInput(b"\xff\xfe\x00binary")]).texts
    assert SecretForms([SecretInput("abc"), SecretInput(None), SecretInput(True)]).texts == []
    assert SecretForms([SecretInput(MISSING)]).texts == [], (
        "a secret that is not loaded is not read"
    )


def test_secret_forms_are_sorted_by_length() -> None:
    forms = SecretForms([SecretInput("key1"), SecretInput("key1-and-more")]).texts
    assert forms == sorted(forms, key=len, reverse=True)
    assert "key1" in forms


PEM = (
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ/FAASC\n"
    "'quoted\" line/é <here>&\nBKcwggSjAgEA+Aoi\n-----END PRIVATE KEY-----\n"
)
PARTS = ("MIIEvQIBADAN", "quoted", "BKcwggSjAg")


def redact(text: str, secret: object) -> str:
    return present_text(text, RedactionPolicy(secrets=[SecretInput(secret)]))


@pytest.mark.parametrize(
    "written",
    [
        PEM,
        PEM.replace("\n", "\r\n"),
        PEM.replace("\n", "\r"),
        PEM.replace("\n", " "),
        PEM.replace("\n", ""),
        PEM.replace("\n", "\n    | "),
        PEM.replace("\n", "\\n"),
        PEM.strip(),
        json.dumps(PEM),
        json.dumps(PEM, ensure_ascii=False),
        json.dumps(json.dumps(PEM)),
        json.dumps(PEM).replace("/", "\\/"),
        json.dumps(PEM.replace("\n", "\r\n")),
        repr(PEM),
        ascii(PEM),
        repr(PEM.encode()),
        shlex.quote(PEM),
        html.escape(PEM),
        html.escape(PEM, quote=False),
        quote(PEM),
        quote(PEM.replace("\n", "\r\n"), safe=""),
        *[f"line {n}: {line}" for n, line in enumerate(PEM.splitlines())],
    ],
)
def test_multi_line_secret_is_hidden(written: str) -> None:
    redacted = redact(f"before {written} after", PEM)
    assert not any([part in redacted for part in PARTS]), redacted
    assert redacted.startswith("before ")
    assert redacted.endswith(" after")


@pytest.mark.parametrize("width", [0, 64, 76])
def test_base64_of_secret_is_hidden(width: int) -> None:
    encoded = base64.b64encode(PEM.encode()).decode()
    lines = [encoded[i : i + width] for i in range(0, len(encoded), width)] if width else [encoded]
    redacted = redact("\n".join(lines), PEM)
    assert len(redacted) < 20 * len(lines)


@pytest.mark.parametrize("secret", [1234567, "1234567", Decimal("1234567.00"), 1234567.0])
@pytest.mark.parametrize(
    "written",
    [
        *("1234567", "1_234_567", "1,234,567", "1 234 567", "1234567.0", "1234567.00"),
        *("1.234567e6", "1.234567e+06", "1.234567E+6", "0x12d687", "0X12D687", "0o4553207"),
        *("-1234567", "0001234567", "100101101011010000111"),
    ],
)
def test_number_is_hidden_in_every_spelling(secret: object, written: str) -> None:
    assert not set("1234567").intersection(redact(f"n {written} n", secret).replace("0", ""))


@pytest.mark.parametrize("secret", [1234567, "01234567", Decimal("1234567.0"), b"1234567"])
def test_number_is_hidden_in_json(secret: object) -> None:
    app = Tooli("numbers")

    @app.command()
    def numbers(key: SecretInput[Any]) -> Any:
        """Return the number in several types."""
        number = int(key.reveal())
        return [number, -number, float(number), Decimal(number), {number: number}]

    http = next(i for i in interfaces(app) if i.name == "http")
    value = secret.decode() if isinstance(secret, bytes) else secret
    answer = http.send_case(Case("numbers", {"key": str(value)}))
    assert "234567" not in str(answer)


@pytest.mark.parametrize("secret", ["0000", "0001", 1000.0, "1e3", "00.00"])
def test_small_numbers_are_kept(secret: object) -> None:
    assert redact("0 1 10 100 0.0 1.0", secret) == "0 1 10 100 0.0 1.0"


@pytest.mark.parametrize(
    "written",
    [
        *("0A1B2C3D4E5F", "0a1b2c3d4e5f", "0a1B2c3D4e5F", "  0a1B2c3D4e5F\n"),
        *("value 0a1B2c3…", "0a1B...", "…3D4e5F", "'0a1B2...4e5F', input", "0a1B2c3D4e5..."),
    ],
)
def test_case_and_shortened_values_are_hidden(written: str) -> None:
    redacted = redact(written, "0a1B2c3D4e5F")
    assert not any([part in redacted.lower() for part in ("0a1b", "4e5f")])


@pytest.mark.parametrize(
    ("secret", "written", "redacted"),
    [
        ("Zx9QpLZx9Qab", "key Zx9QpLZx9Q…", "key ***…"),  # its first characters occur twice
        ("baLmT7cLmT7", "…LmT7cLmT7 end", "…*** end"),
        ("aaaabaaaaab", "aaaabaaaa...aaaab!", "***...***!"),
        ("0a1B2c3D4e5F", "0a1B2c.....D4e5F", "***.....***"),
        ("0a1B2c3D4e5F", "0a1B2c………D4e5F", "***………***"),
        ("0a1B2c3D4e5F", '{"text":"0a1B2c\\u2026D4e5F"}', '{"text":"***\\u2026***"}'),
        ("0a1B…c3D4e5F", "0a1B…c3…3D4e5F", "***…***"),
    ],
)
def test_all_remains_of_a_secret_are_hidden(secret: str, written: str, redacted: str) -> None:
    assert redact(written, secret) == redacted


@pytest.mark.parametrize("mark", ["… ", "... "])
def test_remains_are_hidden_after_many_ellipses(mark: str) -> None:
    assert redact(mark * 2000 + "0a1B2c…", "0a1B2c3D4e5F") == f"{mark * 2000}***…"


def test_text_near_ellipses_is_hidden_if_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(secret_forms, "_MAX_CUT_CHECKS", 2)
    text = f"a…{' ' * 20}0a1B2c…{' ' * 20}b…{' ' * 9}c"
    assert redact(text, "0a1B2c3D4e5F") == f"a…{' ' * 20}***…{' ' * 9}***"


def test_text_before_ellipsis_is_hidden_if_a_value_may_begin_at_too_many_places() -> None:
    assert redact("aaaa-" * 150 + "… end", "a" * 1000 + "b") == "***… end"
    assert redact("aaaa-" * 9 + "… end", "a" * 1000 + "b") == "aaaa-" * 9 + "… end"
    assert redact("start …" + "-aaaa" * 150, "b" + "a" * 1000) == "start …***"


def test_text_around_ellipsis_is_kept() -> None:
    text = "see 0a1... and c3D4… and x0a1B2x…, …, ...\n…"
    assert redact(text, "0a1B2c3D4e5F") == text


@pytest.mark.parametrize("secret", ["a", "key", 123, "", None])
def test_short_secrets_are_not_searched_for(secret: object) -> None:
    assert redact("a key 123", secret) == "a key 123"


def test_many_secrets_are_searched_for_without_encodings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_forms, "MAX_ENCODED_SECRETS", 3)
    forms = SecretForms([SecretInput(f"secret-number-{n}") for n in range(5)])
    assert sorted(forms.texts) == [f"secret-number-{n}" for n in range(5)]


def test_long_secret_has_few_forms() -> None:
    forms = SecretForms([SecretInput("0123456789abcdef\n" * (1 << 13))])
    assert len(forms.texts) < 10
    assert "0123456789abcdef" in forms.texts


def test_forms_of_a_secret_are_kept() -> None:
    secret = SecretInput("hunter22")
    assert SecretForms([secret]).texts == SecretForms([secret]).texts
    assert secret.forms is not None


@pytest.mark.parametrize(
    "value", [[1000, 2000, 3000, 4000], {"a": "abcd", "b": ["bcde", "cdef", "defg"]}]
)
def test_many_values_of_one_secret_have_no_encodings(
    value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret_forms, "MAX_ENCODED_SECRETS", 3)
    forms = SecretForms([FakeSecret(value)])
    assert len(forms.texts) == len(forms.values) == 4
    few = SecretForms([FakeSecret(["abcd-efgh", "bcde-fghi"])])
    assert len(few.texts) > 2


class FakeSecret:
    is_loaded, forms = True, None

    def __init__(self, value: Any) -> None:
        self.reveal = lambda: value
