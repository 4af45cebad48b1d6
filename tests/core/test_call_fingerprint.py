"""Fingerprints of calls: equal for equal calls, different for different ones."""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest

from tooli import Context, Input, SecretInput, Tooli
from tooli.core.call import PYTHON_CALLER, Call, Caller, Options
from tooli.core.call_fingerprint import (
    caller_arguments,
    canonical_arguments,
    canonical_bytes,
    digest,
    fingerprint,
    to_stable_json,
)
from tooli.errors import InputError


class Order(pydantic.BaseModel):
    item: str
    count: int = 1


def make_app() -> Tooli:
    app = Tooli("shop")

    @app.command()
    def buy(item: str, ctx: Context, count: int = 1) -> None: ...

    @app.command()
    def sell(item: str, count: int = 1) -> None: ...

    @app.command(input_model=Order)
    def order(order: Order) -> None: ...

    return app


def make_call(name: str = "buy", **arguments: Any) -> Call:
    tool = make_app().find(name)
    assert tool is not None
    return Call(tool, arguments, PYTHON_CALLER, [])


# ------------------------------------------------------------------ equal and different calls


def test_order_of_arguments_does_not_matter() -> None:
    assert fingerprint(make_call(item="a", count=2)) == fingerprint(make_call(count=2, item="a"))


def test_caller_and_options_do_not_matter() -> None:
    call = make_call(item="a")
    other = call.replace(caller=Caller("http", name="x"), options=Options(yes=True), warnings=["w"])
    assert fingerprint(call) == fingerprint(other)


@pytest.mark.parametrize(
    "other",
    [
        make_call(item="b"),
        make_call(item="a", count=1),
        make_call("sell", item="a"),
        make_call(item=["a"]),
    ],
)
def test_tool_and_arguments_matter(other: Call) -> None:
    assert fingerprint(make_call(item="a")) != fingerprint(other)


def test_additional_values_matter() -> None:
    call = make_call(item="a")
    found = {
        fingerprint(call),
        fingerprint(call, 1),
        fingerprint(call, "1"),
        fingerprint(call, 1, 2),
    }
    assert len(found) == 4


def test_fingerprint_is_a_digest_of_16_bytes() -> None:
    assert len(bytes.fromhex(fingerprint(make_call(item="a")))) == 16


def test_fingerprint_is_stable_between_versions() -> None:
    """Stored keys and approvals contain fingerprints."""
    call = make_call(item="a", count=2)
    expected = hashlib.blake2b(b'shop.buy\0[[["count",2],["item","a"]]]', digest_size=16)
    assert fingerprint(call) == expected.hexdigest()


# ------------------------------------------------------------------ arguments


def test_injected_arguments_are_left_out() -> None:
    call = make_call(item="a", ctx=object())
    assert caller_arguments(call) == {"item": "a"}
    assert canonical_arguments(call) == [("item", "a")]


def test_input_model_is_an_argument_of_the_caller() -> None:
    call = make_call("order", order=Order(item="a"))
    assert canonical_arguments(call) == [("order", {"item": "a", "count": 1})]


def test_call_without_arguments_is_an_empty_list() -> None:
    assert canonical_bytes(make_call()) == b"[[]]"


def test_sets_are_sorted() -> None:
    words = [f"word{number}" for number in range(20)]
    assert to_stable_json(set(words)) == to_stable_json(frozenset(words)) == sorted(words)


def test_path_is_converted_to_text() -> None:
    assert to_stable_json(Path("a/b")) == "a/b"


# ------------------------------------------------------------------ inputs and streams


def test_streams_are_not_read() -> None:
    file = io.StringIO("content")

    def items() -> Iterator[int]:
        yield 1

    stream = items()
    assert to_stable_json(file) == "StringIO"
    assert to_stable_json(stream) == "generator"
    assert (file.read(), next(stream)) == ("content", 1)


def test_input_is_fingerprinted_by_its_location(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert to_stable_json(Input(missing, "data")) == ["Input", missing]
    assert to_stable_json(Input("-", "data")) == ["Input", ""]


def test_input_with_direct_content_is_its_content() -> None:
    source = Input("content", "data")
    source.content = {"a": 1}
    assert to_stable_json(source) == ["Input", "", {"a": 1}]


# ------------------------------------------------------------------ secrets


def test_secret_is_a_short_digest() -> None:
    name, identity = to_stable_json(SecretInput("c4nary"))  # type: ignore[misc]
    assert name == "SecretInput"
    assert len(identity) == 6
    assert identity != "c4nary"
    assert to_stable_json(SecretInput("c4nary")) == [name, identity]
    assert to_stable_json(SecretInput("other")) != [name, identity]


def test_secrets_in_a_list_are_digests() -> None:
    found = to_stable_json([SecretInput("a"), 1])
    assert found == [to_stable_json(SecretInput("a")), 1]


def test_secrets_of_the_call_matter() -> None:
    call = make_call(item="a")
    one, two = SecretInput("one"), SecretInput("two")
    plain = fingerprint(call.replace(secrets=[]))
    assert plain == fingerprint(call)
    assert fingerprint(call.replace(secrets=[one])) not in (
        plain,
        fingerprint(call.replace(secrets=[two])),
    )
    assert fingerprint(call.replace(secrets=[one, two])) == fingerprint(
        call.replace(secrets=[two, one, one])
    )


def test_secret_that_cannot_be_read_is_its_location() -> None:
    class Unreadable:
        tooli_cli_text = "env:MISSING"

        def reveal(self) -> str:
            raise InputError("not set")

    assert to_stable_json(Unreadable()) == ["Unreadable", "env:MISSING"]


# ------------------------------------------------------------------ digests


def test_digest_is_the_same_without_the_c_module(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = digest(b"data", 8), digest(b"data", 8, b"key")
    monkeypatch.setitem(sys.modules, "_blake2", None)
    assert (digest(b"data", 8), digest(b"data", 8, b"key")) == expected
    assert expected[0] != expected[1]
