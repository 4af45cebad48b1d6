"""Fingerprints of calls: equal for equal calls, different for different ones."""

from __future__ import annotations

import copy
import hashlib
import io
import re
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pydantic
import pytest

from tooli import Context, Input, SecretInput, Tooli
from tooli.core import call_fingerprint
from tooli.core.call import PYTHON_CALLER, Call, Caller, Options
from tooli.core.call_fingerprint import (
    ValueEncoder,
    caller_arguments,
    canonical_bytes,
    digest,
    is_stream,
    make_keyed_digest,
)
from tooli.errors import InputError

KEYED_DIGEST = make_keyed_digest(b"key")


def fingerprint(call: Call, *more: Any) -> str:
    return call_fingerprint.fingerprint(call, *more, digest_secret=KEYED_DIGEST)


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
    """Stored keys contain fingerprints."""
    call = make_call(item="a", count=2)
    assert fingerprint(call) == "907c19538a5cc4eef026f4f6e7feac6c"


# ------------------------------------------------------------------ arguments


def test_injected_arguments_are_left_out() -> None:
    call = make_call(item="a", ctx=object())
    assert caller_arguments(call) == {"item": "a"}
    expected = canonical_bytes(make_call(item="a"), digest_secret=None)
    assert canonical_bytes(call, digest_secret=None) == expected


def test_input_model_is_an_argument_of_the_caller() -> None:
    call = make_call("order", order=Order(item="a"))
    assert caller_arguments(call) == {"order": Order(item="a")}


# ------------------------------------------------------------------ values


class Color(Enum):
    RED = "red"


class TextColor(str, Enum):
    RED = "red"


class Hidden(pydantic.BaseModel):
    shown: int = 1
    hidden: str = pydantic.Field("a", exclude=True)
    masked: str = "a"
    renamed: str = pydantic.Field("a", alias="other name")
    _private: int = pydantic.PrivateAttr(0)

    @pydantic.field_serializer("masked")
    def mask(self, value: str) -> str:
        return "***"

    def with_private(self, value: int) -> Hidden:
        self._private = value
        return self


class Open(pydantic.BaseModel, extra="allow"):
    pass


class Folder(pydantic.BaseModel):
    read: bool = False
    reveal: bool = False


@dataclass
class Point:
    x: int
    read: bool = False  # not a stream
    reveal: bool = False  # not a secret
    hidden: int = field(default=0, repr=False, compare=False)


@dataclass(slots=True)
class SlottedPoint:
    x: int


class Pair(NamedTuple):
    x: int


class Word(str):
    note: str = ""


def noted(note: str) -> Word:
    word = Word("a")
    word.note = note
    return word


class Opaque:
    def __init__(self, value: int) -> None:
        self.__value = value

    def __getstate__(self) -> dict[str, int]:
        return {}  # pickle does not see the value

    def __eq__(self, other: object) -> bool:
        return True


class NamedPath:
    def __init__(self, note: int) -> None:
        self.note = note

    def __fspath__(self) -> str:
        return "a"


def nest(value: Any, depth: int) -> list[Any]:
    for _ in range(depth):
        value = [value]
    return value


def cycle(depth: int) -> list[Any]:
    found: list[Any] = []
    found.append(nest(found, depth))
    return found


DIFFERENT: dict[str, Any] = {
    "None": None,
    "False": False,
    "True": True,
    "0": 0,
    "1": 1,
    "1.0": 1.0,
    "0.0": 0.0,
    "-0.0": -0.0,
    "inf": float("1e999"),
    "-inf": float("-inf"),
    "nan": float("nan"),
    "complex": 1 + 0j,
    "large int": 10**5000,
    "other large int": 10**5000 + 1,
    "large int as text": hex(10**5000),
    "text 1": "1",
    "empty": "",
    "text null": "null",
    "bytes": b"\xff",
    "base64 of bytes": "/w==",
    "bytes 1": b"1",
    "bytearray": bytearray(b"1"),
    "path": Path("1"),
    "bytes of a surrogate": "\udcff",
    "escaped surrogate": "\\udcff",
    "other surrogate": "\ud800",
    "red": "red",
    "Color": Color.RED,
    "TextColor": TextColor.RED,
    "date": date(2020, 1, 1),
    "text of a date": "2020-01-01",
    "datetime": datetime(2020, 1, 1),
    "datetime with zone": datetime(2020, 1, 1, tzinfo=timezone.utc),
    "fold": datetime(2020, 1, 1, fold=1),
    "timedelta": timedelta(seconds=1),
    "Decimal": Decimal("1.0"),
    "other Decimal": Decimal("1.00"),
    "UUID": UUID(int=1),
    "list": [1],
    "tuple": (1,),
    "set": {1},
    "frozenset": frozenset((1,)),
    "NamedTuple": Pair(1),
    "deque": deque([1]),
    "bounded deque": deque([1], 3),
    "dict": {"x": 1},
    "dict with another key": {1: 1},
    "dict with text key": {"1": 1},
    "list in list": [[1], []],
    "list next to list": [[1, []]],
    "dataclass": Point(1),
    "dataclass with hidden field": Point(1, hidden=1),
    "slots": SlottedPoint(1),
    "model": Hidden(),
    "given default": Hidden(shown=1),
    "excluded field": Hidden(hidden="b"),
    "masked field": Hidden(masked="b"),
    "renamed field": Hidden(**{"other name": "b"}),
    "private attribute": Hidden().with_private(1),
    "extra field": Open.model_validate({"a": 1}),
    "other extra field": Open.model_validate({"a": True}),
    "field named read": Folder(read=True),
    "field named reveal": Folder(reveal=True),
    "str subclass": noted(""),
    "attribute of a str": noted("x"),
    "state hidden from pickle": Opaque(1),
    "other hidden state": Opaque(2),
    "path object": NamedPath(1),
    "other path object": NamedPath(2),
    "address": ip_address("10.0.0.1"),
    "other address": ip_address("10.0.0.2"),
    "pattern": re.compile("a"),
    "pattern with flags": re.compile("a", re.IGNORECASE),
    "class": int,
    "function": len,
    "URL": pydantic.AnyUrl("http://a/"),
    "other URL": pydantic.AnyUrl("http://b/"),
    "SecretStr": pydantic.SecretStr("a"),
    "other SecretStr": pydantic.SecretStr("b"),
    "below depth 150": nest(1, 200),
    "below depth 150, other": nest(2, 200),
    "deep": nest(1, 10_000),
    "deep, other": nest(2, 10_000),
    "cycle": cycle(0),
    "longer cycle": cycle(1),
}


class Named(deque[int]):
    """An object that pickle stores by its name."""

    def __reduce_ex__(self, version: object) -> str:
        return f"NAME_{len(self)}"


class FailingPath:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def __fspath__(self) -> str:
        raise self.error


def encode(value: object) -> bytes:
    return ValueEncoder(KEYED_DIGEST).encode(value)


@pytest.fixture(scope="module")
def encodings() -> dict[str, bytes]:
    """The encodings of all values of DIFFERENT."""
    return {name: encode(value) for name, value in DIFFERENT.items()}


def test_different_values_have_different_encodings(encodings: dict[str, bytes]) -> None:
    names: dict[bytes, str] = {}
    for name, encoding in encodings.items():
        other = names.setdefault(encoding, name)
        assert other == name


@pytest.mark.parametrize("name", [name for name in DIFFERENT if "ycle" not in name])
def test_equal_values_have_equal_encodings(name: str, encodings: dict[str, bytes]) -> None:
    value = DIFFERENT[name]
    copied = value if "deep" in name else copy.deepcopy(value)
    assert "Opaque" in repr(type(value)) or encode(copied) == encodings[name]


def test_order_of_dicts_and_sets_does_not_matter() -> None:
    words = [f"word{number}" for number in range(20)]
    assert encode({0, 8}) == encode({8, 0})
    assert encode(dict.fromkeys(words)) == encode(dict.fromkeys(reversed(words)))
    model = Open.model_validate({"a": 1, "b": 2})
    assert encode(model) == encode(Open.model_validate({"b": 2, "a": 1}))


def test_values_that_imitate_another_type_are_different() -> None:
    class Fake:
        __class__ = int  # type: ignore[assignment]

    assert encode(Fake()) != encode(0)


def test_parts_cannot_be_moved_between_values() -> None:
    found = {encode(["ab", "c"]), encode(["a", "bc"]), encode(["abc"]), encode(["a", "b", "c"])}
    assert len(found) == 4


def test_shared_parts_are_encoded_once() -> None:
    """Without that, the time would double with each level."""
    value: Any = [1]
    for _ in range(200):
        value = Pair([value, value])  # type: ignore[arg-type]
    assert encode(value) == encode(value)


def test_value_without_stable_content_is_its_class() -> None:
    assert encode(threading.Lock()) == encode(threading.Lock())
    assert encode(threading.Lock()) != encode(lambda: 0)


# ------------------------------------------------------------------ inputs and streams


def test_streams_are_not_read() -> None:
    file = io.StringIO("content")

    def items() -> Iterator[int]:
        yield 1

    stream = items()
    assert is_stream(file)
    assert is_stream(stream)
    assert encode(file) != encode(stream)
    assert (file.read(), next(stream)) == ("content", 1)


def test_input_is_fingerprinted_by_its_location(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert encode(Input(missing, "data")) == encode(Input(missing, "data"))
    assert len({encode(Input(missing)), encode(Input("-")), encode(missing)}) == 3


def test_input_with_direct_content_is_its_content() -> None:
    one, two, three = Input("content"), Input("content"), Input("content")
    one.content, two.content, three.content = {"a": 1}, {"a": True}, {"a": 1}
    assert encode(one) == encode(three) != encode(two)


# ------------------------------------------------------------------ secrets


def test_secret_is_a_keyed_digest() -> None:
    encoded = encode(SecretInput("c4nary"))
    assert b"c4nary" not in encoded
    assert encoded == encode(SecretInput("c4nary"))
    assert encoded != encode(SecretInput("other"))
    assert encoded != ValueEncoder(make_keyed_digest(b"other key")).encode(SecretInput("c4nary"))
    assert len(encoded) == len(encode(SecretInput("a")))


def test_secrets_are_equal_without_a_key() -> None:
    secrets = [SecretInput("a"), SecretInput("b"), pydantic.SecretStr("c")]
    assert len({ValueEncoder().encode([secret]) for secret in secrets}) == 1


def test_secret_with_secret_parts() -> None:
    class Login(pydantic.BaseModel):
        password: pydantic.SecretStr

    found = {encode(SecretInput(Login(password=pydantic.SecretStr(text)))) for text in "ab"}
    assert len(found) == 2


def test_object_that_reveals_itself() -> None:
    class Card:
        def reveal(self) -> Card:
            return self

    assert b"unknown content" in encode(Card())


def test_secrets_in_collections_matter() -> None:
    found = [encode([SecretInput(text), 1]) for text in ("a", "b")]
    assert found[0] != found[1]


def test_secret_that_cannot_be_read_is_its_location() -> None:
    class Unreadable:
        tooli_cli_text = "env:MISSING"

        def reveal(self) -> str:
            raise InputError("not set")

    assert b"env:MISSING" in encode(Unreadable())


# ------------------------------------------------------------------ digests


def test_digest_is_the_same_without_the_c_module(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = digest(b"data", 8), digest(b"data", 8, b"key")
    assert expected[0] != expected[1]
    monkeypatch.setattr(call_fingerprint, "blake2b", hashlib.blake2b)
    assert (digest(b"data", 8), digest(b"data", 8, b"key")) == expected


def test_objects_that_pickle_stores_by_name() -> None:
    assert encode(Named([1])) == encode(Named([2]))
    assert encode(Named([1])) != encode(Named([1, 2]))


def test_value_whose_code_fails_is_unstable() -> None:
    reasons: list[str] = []

    class Encoder(ValueEncoder):
        def encode_unstable(self, value: object, reason: str) -> bytes:
            reasons.append(reason)
            return b"unstable"

    Encoder().encode([FailingPath(RuntimeError("no"))])
    assert reasons == ["cannot be read (RuntimeError)"]


def test_error_about_an_input_is_raised() -> None:
    with pytest.raises(InputError, match="no such file"):
        encode([FailingPath(InputError("no such file"))])
