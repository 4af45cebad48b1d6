"""Every encoding of a secret is listed."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tooli import SecretInput
from tooli.core.tool import MISSING
from tooli.text.secret_forms import list_secret_forms


def hidden(text: str, secret: object) -> bool:
    return any([trace in text for trace in list_secret_forms([SecretInput(secret)])])


@settings(max_examples=150, deadline=None)
@given(
    st.text(st.characters(blacklist_categories=["Cs"]), min_size=8, max_size=30),
    st.text(max_size=9),
)
def test_encodings(secret: str, before: str) -> None:
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
        assert hidden(f"{before}{written}tail", secret), written


def test_types_of_secrets() -> None:
    assert hidden("it is 123456", 123456)
    assert hidden("abcdefgh", b"abcdefgh")
    assert hidden("b: second1", {"a": "first11", "b": ["second1"]})
    assert list_secret_forms([SecretInput(b"\xff\xfe\x00binary")])
    assert list_secret_forms([SecretInput("abc"), SecretInput(None), SecretInput(True)]) == []
    assert list_secret_forms([SecretInput(MISSING)]) == [], (
        "what nobody has read is not read for this"
    )


def test_the_longest_form_comes_first() -> None:
    traces = list_secret_forms([SecretInput("key1"), SecretInput("key1-and-more")])
    assert traces == sorted(traces, key=len, reverse=True)
    assert "key1" in traces
