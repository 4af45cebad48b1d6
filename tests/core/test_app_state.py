"""The state of an app: its place in the tree of apps, and its caches."""

from __future__ import annotations

import pytest

from tooli import Tooli
from tooli.core.app_state import AppState, check_choice, default_app_name
from tooli.errors import DefinitionError


def make_tree() -> tuple[AppState, AppState, AppState]:
    """Three states: the outermost app, the app in it, and the app in that one."""
    root, middle, leaf = (AppState(name, {}) for name in ("root", "middle", "leaf"))
    middle.parents.append(root)
    leaf.parents.append(middle)
    return root, middle, leaf


def test_root() -> None:
    root, middle, leaf = make_tree()
    assert (leaf.root, middle.root, root.root) == (root, root, root)


def test_permissions_of_all_apps_above_apply() -> None:
    root, _, leaf = make_tree()
    assert leaf.app_permissions(root) == ()
    root.permissions, leaf.permissions = ("fs:read",), ("fs:read:./data",)
    assert leaf.app_permissions(root) == (("fs:read:./data",), ("fs:read",))
    assert leaf.app_permissions(leaf) == (("fs:read:./data",), ("fs:read",))
    assert root.app_permissions(root) == (("fs:read",),)


def test_custom_stages_of_outer_apps_come_first() -> None:
    outer, inner = Tooli("outer"), Tooli("inner")
    outer.add_typer(inner, name="inner")

    @inner.use
    def second(call):
        return (yield call)

    @outer.use
    def first(call):
        return (yield call)

    root = outer._state
    stages = [custom.stage for custom in inner._state.custom_stages(root)]
    assert stages == [first, second]
    assert [custom.stage for custom in root.custom_stages(root)] == [first]


def test_app_below_two_others() -> None:
    root, middle, leaf = make_tree()
    other = AppState("other", {})
    middle.parents.append(other)
    root.permissions, other.permissions = ("fs:read",), ("net:read",)
    assert leaf.app_permissions(root) == (("fs:read",),)
    assert leaf.app_permissions(other) == leaf.app_permissions(leaf) == (("net:read",),)
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


def test_change_listeners() -> None:
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


def test_one_command() -> None:
    app = Tooli("one")
    assert not app._state.has_one_command
    app.command()(lambda: None)
    assert app._state.has_one_command
    app.callback()(lambda: None)
    assert not app._state.has_one_command


def test_check_choice() -> None:
    check_choice("policy", "off", ("off", "strict"))
    with pytest.raises(DefinitionError, match="policy='on': must be one of off, strict"):
        check_choice("policy", "on", ("off", "strict"))


@pytest.mark.parametrize(
    ("module_globals", "name"),
    [
        ({"__file__": "/srv/my_notes.py"}, "my-notes"),
        ({"__file__": "/srv/notes/__main__.py"}, "notes"),
        ({"__file__": "C:\\srv\\notes\\__init__.py"}, "notes"),
        ({"__name__": "notes"}, "notes"),
        ({}, "app"),
    ],
)
def test_default_app_name(module_globals: dict[str, str], name: str) -> None:
    assert default_app_name(module_globals) == name
