"""Tests of `tooli.core`: AppState and Record."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from tooli import SecurityPolicy, Tooli
from tooli.core import AppState, Record, default_app_name, read_choice
from tooli.core.tool import Behavior, Guard, Tool
from tooli.errors import DefinitionError


def make_tree() -> tuple[AppState, AppState, AppState]:
    """Three states: the outermost app, the app in it, and the app in that one."""
    root, middle, leaf = (AppState(name, {}) for name in ("root", "middle", "leaf"))
    middle.parents.append(root)
    leaf.parents.append(middle)
    return root, middle, leaf


def test_root_is_the_outermost_app() -> None:
    root, middle, leaf = make_tree()
    assert (leaf.root, middle.root, root.root) == (root, root, root)


def test_app_with_two_parents_has_all_ancestors() -> None:
    root, middle, leaf = make_tree()
    other = AppState("other", {})
    middle.parents.append(other)
    assert (leaf.root, leaf.parent, root.parent) == (other, middle, None)
    assert leaf.self_and_ancestors() == [leaf, middle, root, other]
    leaf.invalidate()
    assert [state.revision for state in (root, other)] == [1, 1]


def test_invalidate_drops_the_caches_of_all_apps_above() -> None:
    states = make_tree()
    app = Tooli("cached")
    for state in states:
        state.command_tree = app.tree()
    states[2].invalidate()
    assert [state.command_tree for state in states] == [None, None, None]
    assert [state.revision for state in states] == [1, 1, 1]


def test_invalidate_leaves_the_apps_below_alone() -> None:
    root, middle, leaf = make_tree()
    middle.invalidate()
    assert [state.revision for state in (root, middle, leaf)] == [1, 1, 0]


def test_change_listeners_of_the_root_are_notified() -> None:
    root, _, leaf = make_tree()
    changes: list[tuple[str, str | None]] = []

    def listen_once(kind: str, uri: str | None) -> None:
        changes.append((kind, uri))
        root.change_listeners.remove(listen_once)

    root.change_listeners.append(listen_once)
    root.change_listeners.append(lambda kind, uri: changes.append((kind, uri)))
    leaf.invalidate("prompts")
    leaf.notify_change("resource", "notes://1")
    assert changes == [("prompts", None), ("prompts", None), ("resource", "notes://1")]


def test_has_one_command_is_false_with_a_callback() -> None:
    app = Tooli("one")
    assert not app._state.has_one_command
    app.command()(lambda: None)
    assert app._state.has_one_command
    app.callback()(lambda: None)
    assert not app._state.has_one_command


@pytest.mark.parametrize("value", ["strict", "STRICT", "Strict", SecurityPolicy.STRICT])
def test_choice_is_read_in_any_case_and_as_an_enum(value) -> None:
    found = read_choice("policy", value, ("off", "strict"))
    assert (found, type(found)) == ("strict", str)


def test_unknown_choice_is_rejected() -> None:
    with pytest.raises(DefinitionError, match="did you mean 'strict'"):
        read_choice("policy", "strikt", ("off", "strict"))
    with pytest.raises(DefinitionError, match="policy='on': must be one of off, strict"):
        read_choice("policy", "on", ("off", "strict"))


@pytest.mark.parametrize(
    ("module_globals", "name"),
    [
        ({"__file__": "/srv/my_notes.py"}, "my-notes"),
        ({"__file__": "/srv/notes/__main__.py"}, "notes"),
        ({"__file__": "C:\\srv\\notes\\__init__.py"}, "notes"),
        ({"__name__": "notes"}, "notes"),
        ({}, "app"),
        ({"__file__": "/src/my_tool/cli.py", "__package__": "my_tool"}, "my-tool"),
        ({"__file__": "/src/my_tool/sub/_cli_utils.py", "__package__": "my_tool.sub"}, "my-tool"),
        ({"__file__": "/src/my_tool/shop.py", "__package__": "my_tool"}, "shop"),
        ({"__file__": "/src/cli.py"}, "cli"),
        ({"__file__": "/src/_cli_utils.py"}, "cli-utils"),
    ],
)
def test_default_app_name(module_globals: dict[str, str], name: str) -> None:
    assert default_app_name(module_globals) == name


# ------------------------------------------------------------------ records


class Point(Record):
    x: int
    y: int = 0


class Dot(Point):
    colour: str = "red"


class Empty(Record):
    pass


MANY = 30
"""More instances than a record class needs until it compiles its `__init__`."""


@pytest.fixture(params=["generic", "compiled"], ids=str)
def point(request: pytest.FixtureRequest) -> type[Record]:
    """Return a record class with two fields, before or after it has compiled its `__init__`."""

    class FreshPoint(Record):
        x: int
        y: int = 0

    if request.param == "compiled":
        for _ in range(MANY):
            FreshPoint(1)
    return FreshPoint


class TestRecordCreation:
    @pytest.mark.parametrize(
        ("args", "fields"), [((1, 2), {}), ((1,), {"y": 2}), ((), {"y": 2, "x": 1})]
    )
    def test_positional_and_keyword_arguments(self, point, args, fields) -> None:
        record = point(*args, **fields)
        assert (record.x, record.y) == (1, 2)

    def test_defaults(self, point) -> None:
        assert point(5).y == 0

    @pytest.mark.parametrize(
        ("args", "fields", "message"),
        [
            ((), {}, "x"),
            ((), {"y": 1}, "x"),
            ((1,), {"z": 1}, "z"),
            ((1,), {"x": 1}, "x"),
            ((1, 2, 3), {}, "3|4"),
        ],
        ids=["nothing", "missing", "unknown", "twice", "too many"],
    )
    def test_invalid_arguments_are_rejected(self, point, args, fields, message) -> None:
        with pytest.raises(TypeError, match=message):
            point(*args, **fields)

    def test_compiled_init_creates_equal_records(self) -> None:
        class Pair(Record):
            a: int
            b: str = "b"

        first = Pair(1)
        generic_init = Pair.__init__
        later = [Pair(1) for _ in range(MANY)]
        assert Pair.__init__ is not generic_init
        assert later == [first] * MANY

    def test_record_without_fields_takes_no_arguments(self) -> None:
        assert [Empty() for _ in range(MANY)] == [Empty()] * MANY
        with pytest.raises(TypeError):
            Empty(1)


class TestRecordIsFrozen:
    def test_field_cannot_be_set(self) -> None:
        with pytest.raises(AttributeError, match=r"Point is frozen; use replace\(x=…\)"):
            Point(1).x = 2

    def test_field_cannot_be_deleted(self) -> None:
        with pytest.raises(AttributeError, match="frozen"):
            del Point(1).x

    def test_field_cannot_be_added(self) -> None:
        assert not hasattr(Point(1), "__dict__")
        with pytest.raises(AttributeError):
            object.__setattr__(Point(1), "z", 1)

    def test_replace_returns_a_copy(self) -> None:
        one = Point(1, 2)
        assert one.replace(y=3) == Point(1, 3)
        assert one == Point(1, 2)

    def test_replace_rejects_unknown_fields(self) -> None:
        with pytest.raises(TypeError, match="z"):
            Point(1).replace(z=3)


class TestRecordInheritance:
    def test_fields_of_the_base_come_first(self) -> None:
        assert Dot.__match_args__ == ("x", "y", "colour")
        assert Dot(1, 2, "blue").colour == "blue"
        assert Dot(1) == Dot(1, 0, "red")

    def test_defaults_of_a_subclass_do_not_change_the_base(self) -> None:
        class High(Point):
            z: int = 1

        assert (Point(1).y, High(1, z=4).z) == (0, 4)

    def test_match_statement_uses_the_order_of_fields(self) -> None:
        match Dot(1, 2):
            case Dot(x, y, colour="red"):
                assert (x, y) == (1, 2)
            case _:
                pytest.fail("did not match")


class TestRecordComparison:
    def test_equal_by_value_and_class(self) -> None:
        assert Point(1, 2) == Point(1, 2)
        assert Point(1, 2) != Point(1, 3)
        assert Point(1, 0) != Dot(1, 0)
        assert Point(1) != (1, 0)

    def test_equal_records_have_equal_hashes(self) -> None:
        assert hash(Point(1, 2)) == hash(Point(1, 2))
        assert len({Point(1), Point(1, 0), Dot(1)}) == 2

    def test_record_with_a_list_is_unhashable(self) -> None:
        with pytest.raises(TypeError, match="unhashable"):
            hash(Point([]))


class TestRecordCopies:
    @pytest.mark.parametrize(
        "duplicate", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))]
    )
    def test_copies_are_equal(self, duplicate) -> None:
        assert duplicate(Dot(1, 2, "blue")) == Dot(1, 2, "blue")

    def test_repr(self) -> None:
        assert repr(Dot(1)) == "Dot(x=1, y=0, colour='red')"


@pytest.mark.parametrize(
    ("section", "isolation", "expected"),
    [
        ({"security_policy": "strict"}, None, ("strict", None, False)),
        ({"security_policy": "off"}, "required", ("standard", "required", False)),
        ({"isolation": "wanted"}, None, ("standard", "wanted", False)),
        ({"isolation": "wanted"}, "required", ("standard", "required", False)),
        ({"human_in_the_loop": True}, None, ("standard", None, True)),
        ({"human_in_the_loop": False}, None, ("standard", None, False)),
    ],
)
def test_settings_of_an_app_below(section: Any, isolation: Any, expected: object) -> None:
    state = AppState("shop", {})
    state.security_settings = {"apps": {"vault": section}}
    if isolation:
        state.security_settings["isolation"] = isolation
    guard = Guard(policy="standard", apps=("shop", "vault"))
    behavior = Behavior(destructive=True)
    tool = Tool("shop", ("drop",), "", (), print, (), frozenset(), behavior=behavior, guard=guard)
    found = state.restrict(tool).guard
    assert (found.policy, found.isolation, found.human_in_the_loop) == expected
    assert state.effective_policy(tool) == expected[0]  # type: ignore[index]
    other = tool.replace(guard=guard.replace(apps=()))
    assert state.restrict(other) is other
