"""Fields that an object does not have: a warning in JSON, an error as a flag."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, Field

from tooli import Tooli
from tooli.testing import Case, assert_parity, invoke

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject


class Address(BaseModel):
    street: str = ""
    zip_code: int = 0


class Order(BaseModel):
    sku: str
    count: int = Field(1, le=99)
    gift: bool = False
    address: Address | None = None
    labels: dict[str, str] = {}


app = Tooli("shop", version="1.0")


@app.command(auth=[])
def order(order: Order, note: str = "") -> dict[str, Any]:
    """Order."""
    return order.model_dump(exclude_defaults=True)


@app.command(auth=[])
def orders(orders: list[Order]) -> int:
    """Order several times."""
    return len(orders)


def run(*argv: str) -> JsonObject:
    return json.loads(invoke(app, *argv, "--json").stdout)


def test_unknown_field_in_json_is_a_warning() -> None:
    value = {"sku": "a", "gft": True, "address": {"zipcode": 1}, "xyzzy": 1}
    found = assert_parity(app, Case("order", {"order": value}))
    assert found["result"] == {"sku": "a", "address": {}}
    assert found["meta"]["warnings"] == [
        "'order.gft' was ignored: there is no such field; did you mean 'gift'?",
        "'order.xyzzy' was ignored: there is no such field: "
        "the fields are sku, count, gift, address, labels",
        "'order.address.zipcode' was ignored: there is no such field; did you mean 'zip_code'?",
    ]


def test_number_of_warnings_about_fields_is_limited() -> None:
    value = {"sku": "a", **{f"field{i}": i for i in range(100)}}
    found = assert_parity(app, Case("order", {"order": value}))
    assert found["meta"]["warnings"][-1] == "Other fields of 'order' were ignored as well."
    assert len(found["meta"]["warnings"]) <= 6


def test_misspelled_required_field_in_json_is_an_error() -> None:
    found = assert_parity(app, Case("order", {"order": {"skuu": "a", "gift": True}}))
    assert found["error"]["code"] == "E1004"
    assert found["error"]["field"] == "order.skuu"
    assert len(found["error"]["details"]["errors"]) == 1


@pytest.mark.parametrize(
    "argv",
    [
        ["--order.sku", "a", "--order.count", "3", "--order.gft", "true"],
        ["--order", "sku=a", "--order", "count=3", "--order", "gft=true"],
        ['{"sku":"a"}', "--order.count=3", "--order.gft=true"],
    ],
)
def test_unknown_field_as_a_flag_is_an_error_with_a_line_that_works(argv: list[str]) -> None:
    error = run("order", *argv, "--note", "n")["error"]
    assert error["code"] == "E1004"
    assert error["message"] == "'order.gft': there is no such field; did you mean 'gift'?"
    suggestion = error["suggestion"]
    assert suggestion["fix"] == "Use 'order.gift' instead of 'order.gft'."
    corrected = run(*suggestion["argv"][1:])
    assert corrected["result"] == {"sku": "a", "count": 3, "gift": True}
    assert "n" in suggestion["argv"]


def test_all_unknown_and_invalid_fields_are_reported_at_once() -> None:
    argv = ["--order.skuu", "a", "--order.count", "300", "--order.address.zipcode", "1"]
    error = run("order", *argv)["error"]
    assert [(e["field"], e["code"]) for e in error["details"]["errors"]] == [
        ("order.skuu", "E1004"),
        ("order.address.zipcode", "E1004"),
        ("order.count", "E1003"),
    ]
    argv = error["suggestion"]["argv"][1:]
    assert run(*argv)["result"] == {"sku": "a", "count": 99, "address": {"zip_code": 1}}


def test_value_of_a_flag_may_be_json_with_unknown_fields() -> None:
    found = run("order", "--order.sku", "a", "--order.address", '{"stret":"x"}')
    assert found["ok"]
    assert "did you mean 'street'?" in found["meta"]["warnings"][0]


def test_keys_of_dicts_are_kept_and_fields_may_have_hyphens() -> None:
    argv = ["--order.sku", "a", "--order.labels.a-b", "x", "--order.address.zip-code", "7"]
    found = run("order", *argv)
    assert found["result"] == {"sku": "a", "labels": {"a-b": "x"}, "address": {"zip_code": 7}}
    error = run("order", *argv[:-1], "x")["error"]
    assert error["suggestion"]["argv"][-3:] == ["--order.address.zip_code", "<zip_code>", "--json"]


def test_list_of_objects_has_no_dotted_flags() -> None:
    error = run("orders", "--orders.sku", "a")["error"]
    assert error["message"] == (
        "'orders': the objects of a list have no flags: give each one as JSON"
    )


def test_object_given_by_name_is_merged_with_dotted_flags() -> None:
    words: list[Any] = ["--order.gift", "true", "--order", "sku=a", "--order", "count=3"]
    assert run("order", *words)["result"] == {"sku": "a", "count": 3, "gift": True}
