"""Secrets are found in annotations."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict

import pytest
from pydantic import BaseModel, Field, Secret, SecretBytes, SecretStr

from tooli import SecretInput, StdinOr, Tooli
from tooli.core import secret_fields
from tooli.core.call_secrets import call_secrets
from tooli.core.secret_fields import (
    MAX_INVALID_SECRETS,
    documented_default,
    may_contain_secret,
    may_hold_secret,
    validate_with_secrets,
)
from tooli.core.tool import MISSING, ConversionError


class Model(BaseModel):
    key: SecretStr


class Outer(BaseModel):
    rows: list[Optional[Model]] = []  # noqa: UP045  the older form


class Plain(BaseModel):
    name: str
    parent: Optional[Plain] = None  # noqa: UP045


@dataclass
class Row:
    key: SecretStr


@dataclass
class Unresolved:
    key: Missing  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore


class Keys(TypedDict):
    key: SecretBytes


class Pair(NamedTuple):
    name: str
    key: SecretStr


Alias = NewType("Alias", SecretStr)


@pytest.mark.parametrize(
    "annotation",
    [
        *(SecretStr, SecretBytes, Secret[int], SecretInput[str], SecretInput, Model, Outer),
        *(Row, Keys, Pair, Alias, Unresolved, "Forward", typing.ForwardRef("Forward")),
        *(list[SecretStr], dict[str, Model], tuple[int, ...] | SecretStr, Row | None),
        *(int | SecretStr, Annotated[SecretStr, Field(min_length=3)], list["Model"]),
    ],
)
def test_secret_is_found_in_annotation(annotation: object) -> None:
    assert may_hold_secret(annotation)


@pytest.mark.parametrize(
    "annotation", [str, int, None, Any, list[str], dict[str, Any], Plain, Plain | None, MISSING]
)
def test_plain_annotation_holds_no_secret(annotation: object) -> None:
    assert not may_hold_secret(annotation)


def test_defaults_of_secrets_are_not_documented() -> None:
    app = Tooli("defaults")

    @app.command()
    def run(
        name: str = "ada",
        plain: Plain = Plain(name="ada"),  # noqa: B008
        key: SecretStr = "hunter22",  # type: ignore[assignment]
        token: SecretInput[str] = "hunter22",  # type: ignore[assignment]
        located: SecretInput[str] = "env:KEY",  # type: ignore[assignment]
        model: Model = Model(key=SecretStr("hunter22")),  # noqa: B008
        data: StdinOr[Model] | None = None,
    ) -> None:
        """Have defaults."""

    tool = app.find("run")
    assert tool is not None
    shown = {param.name: documented_default(param) for param in tool.params}
    assert shown["name"] == "ada"
    assert shown["plain"] == Plain(name="ada")
    assert shown["key"] is shown["token"] is shown["model"] is MISSING
    assert shown["located"] == "env:KEY"
    assert [p.name for p in tool.params if may_contain_secret(p)] == [
        *("key", "token", "located", "model", "data"),
    ]


def test_type_of_each_item_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An invalid list of a million items must not take a minute."""

    class Login(BaseModel):
        token: SecretStr
        kind: Literal["a", "b"] = "a"

    read: list[object] = []
    read_fields = secret_fields._read_fields
    monkeypatch.setattr(
        secret_fields, "_read_fields", lambda one: (read.append(one), read_fields(one))[1]
    )
    values = [{"kind": "x"} for _ in range(500)]
    assert list(secret_fields._InvalidValueReader().iter_secrets(list[Login], values)) == []
    assert len(read) < 50


def test_values_of_a_literal_are_no_types() -> None:
    assert not secret_fields.may_hold_secret(Literal["a"])


@pytest.fixture
def secrets() -> Iterator[list[Any]]:
    """The secrets of the current call."""
    found: list[Any] = []
    token = call_secrets.set(found)
    yield found
    call_secrets.reset(token)


def reject(annotation: object, value: object) -> object:
    raise ValueError("not valid")


class Holder:
    """An object that is no collection."""

    def __init__(self, item: object) -> None:
        self.item = item


def nest(depth: int) -> list[Any]:
    value: list[Any] = ["s1"]
    for _ in range(depth):
        value = [value]
    return value


Recursive = NewType("Recursive", object)
Recursive.__supertype__ = typing.Union[SecretStr, list[Recursive], dict[str, Recursive]]  # type: ignore[attr-defined]  # noqa: UP007


class TestInvalidValues:
    @pytest.mark.parametrize(
        ("annotation", "value", "expected"),
        [
            (SecretStr, ["s1", {"a": b"s2"}, 3, 4.5, None], ["s1", b"s2", 3, 4.5]),
            (SecretStr, Holder(Holder("s1")), ["s1"]),
            (SecretStr, SecretStr("s1"), ["s1"]),
            (SecretStr, [SecretInput("s1")], ["s1"]),
            (SecretInput[str], {"key": "s1"}, ["s1"]),
            (Model, {"key": "s1"}, ["s1"]),
            (Model, {"keey": "s1", "n": {"deep": ["s2"]}}, ["s1", "s2"]),
            (Model, ["s1"], ["s1"]),
            (Model | None, "s1", ["s1"]),
            (Outer, {"rows": [{"key": "s1"}, None, {"keey": "s2"}]}, ["s1", "s2"]),
            (dict[str, SecretStr], {"s1": "s2"}, ["s1", "s2"]),
            (list[SecretStr], {"s1", "s2"}, ["s1", "s2"]),
            (Pair, {"name": "ada", "key": "s1"}, ["s1"]),
            (Plain, {"name": ["ada"]}, []),
            (Unresolved, {"key": "s1"}, ["s1"]),
            (list["Forward"], ["s1", ["s2"]], ["s1", "s2"]),  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore
            (typing.ForwardRef("Forward"), {"a": "s1"}, ["s1"]),
        ],
    )
    def test_their_secrets_are_recorded(
        self, secrets: list[Any], annotation: object, value: object, expected: list[object]
    ) -> None:
        with pytest.raises(ValueError, match="not valid"):
            validate_with_secrets(annotation, value, reject)
        assert {secret.reveal() for secret in secrets} == set(expected)

    def test_secrets_of_a_valid_value_are_recorded(self, secrets: list[Any]) -> None:
        valid = Model(key=SecretStr("s1"))
        assert validate_with_secrets(Model, {}, lambda *_: valid) is valid
        assert [secret.reveal() for secret in secrets] == ["s1"]

    def test_value_outside_of_a_call(self) -> None:
        assert call_secrets.get() is None
        with pytest.raises(ValueError, match=r"^not valid$"):
            validate_with_secrets(SecretStr, ["s1"], reject)

    def test_errors_with_too_many_secrets_are_replaced(self, secrets: list[Any]) -> None:
        value = [f"s{number}" for number in range(MAX_INVALID_SECRETS + 1)]
        with pytest.raises(ConversionError, match="more than 1,000 secrets") as caught:
            validate_with_secrets(list[SecretStr], value, reject)
        assert caught.value.__suppress_context__
        secrets.clear()
        with pytest.raises(ValueError, match=r"^not valid$"):
            validate_with_secrets(list[SecretStr], value[1:], reject)
        assert len(secrets) == MAX_INVALID_SECRETS

    @pytest.mark.parametrize("value", ["s1", ["s1"], {"s1": [["s1"]]}, nest(20)])
    def test_type_that_refers_to_itself(self, secrets: list[Any], value: object) -> None:
        with pytest.raises(ValueError, match="not valid"):
            validate_with_secrets(Recursive, value, reject)
        assert {secret.reveal() for secret in secrets} == {"s1"}

    @pytest.mark.parametrize("annotation", [SecretStr, Recursive])
    def test_value_that_contains_itself(self, secrets: list[Any], annotation: object) -> None:
        value: list[object] = ["s1"]
        value.append(value)
        with pytest.raises(ValueError, match=r"^not valid$"):
            validate_with_secrets(annotation, value, reject)
        assert {secret.reveal() for secret in secrets} == {"s1"}

    def test_work_is_linear(self, secrets: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
        """A list matches two types of the union, and so does each list in it."""
        read: list[object] = []
        type_parts = secret_fields._type_parts
        monkeypatch.setattr(
            secret_fields, "_type_parts", lambda one: (read.append(one), type_parts(one))[1]
        )
        value: list[Any] = []
        for _ in range(40):
            value = [value]
        with pytest.raises(ValueError, match="not valid"):
            validate_with_secrets(Recursive, value, reject)
        assert secrets == []
        assert len(read) < 1000

    @pytest.mark.parametrize("annotation", [SecretStr, Recursive])
    def test_errors_of_a_deep_value_are_replaced(
        self, secrets: list[Any], annotation: object
    ) -> None:
        with pytest.raises(ConversionError, match="nested too deeply") as caught:
            validate_with_secrets(annotation, nest(5000), reject)
        assert caught.value.__suppress_context__
