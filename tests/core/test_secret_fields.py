"""Secrets are found in annotations."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict

import pytest
from pydantic import BaseModel, Field, Secret, SecretBytes, SecretStr

from tooli import SecretInput, StdinOr, Tooli
from tooli.core import secret_fields
from tooli.core.secret_fields import documented_default, may_contain_secret, may_hold_secret
from tooli.core.tool import MISSING


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
    values = [{"kind": "x"}] * 500
    assert list(secret_fields._iter_invalid(list[Login], values, {})) == []
    assert len(read) < 50


def test_values_of_a_literal_are_no_types() -> None:
    assert not secret_fields.may_hold_secret(Literal["a"])
