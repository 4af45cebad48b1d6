"""The annotations of commands, and what they mean for a tool."""

from __future__ import annotations

import pytest

from tooli import Tooli, annotations
from tooli.annotations import Destructive, Idempotent, OpenWorld, ReadOnly
from tooli.core.tool import Behavior
from tooli.errors import DefinitionError

FIELDS = {
    "read_only": ReadOnly,
    "idempotent": Idempotent,
    "destructive": Destructive,
    "open_world": OpenWorld,
}


@pytest.mark.parametrize("field", FIELDS)
def test_annotation_sets_one_field(field: str) -> None:
    assert FIELDS[field] == Behavior(**{field: True})


def test_every_field_has_an_annotation() -> None:
    defined = {value for value in vars(annotations).values() if isinstance(value, Behavior)}
    assert defined == set(FIELDS.values())
    assert set(Behavior.__match_args__) == set(FIELDS)


def test_combined_annotations_set_both_fields() -> None:
    combined = ReadOnly | Idempotent
    assert combined == Idempotent | ReadOnly == Behavior(read_only=True, idempotent=True)
    assert combined | ReadOnly == combined
    assert ReadOnly == Behavior(read_only=True), "combining changes neither value"


def test_labels_name_the_fields_that_are_set() -> None:
    assert (Destructive | OpenWorld).labels() == ("destructive", "open-world")
    assert Behavior().labels() == ()


def test_annotations_of_a_command_become_its_behavior() -> None:
    app = Tooli("shop")
    app.command("list", annotations=ReadOnly | OpenWorld)(lambda: None)
    app.command("plain")(lambda: None)
    assert app.catalog["list"].behavior == ReadOnly | OpenWorld
    assert app.catalog["plain"].behavior == Behavior()


def test_destructive_command_needs_a_confirmation() -> None:
    app = Tooli("shop")
    app.command("drop", annotations=Destructive)(lambda: "dropped")
    result = app.call("drop")
    assert result.error is not None
    assert result.error.code == "E1010"
    assert app.options(yes=True).call("drop").unwrap() == "dropped"


@pytest.mark.parametrize("wrong", ["read_only", ["ReadOnly"], Behavior])
def test_values_that_are_not_annotations_are_rejected(wrong: object) -> None:
    app = Tooli("shop")
    with pytest.raises(DefinitionError, match="annotations"):
        app.command("list", annotations=wrong)(lambda: None)
