"""Catalog: tools by key, in order of registration."""

import pytest

from tooli import Tooli
from tooli.core.catalog import Catalog, Handoff


def make_catalog() -> Catalog:
    app, users = Tooli("app"), Tooli("users")
    app.command("b")(lambda: 1)
    app.command("a")(lambda: 2)
    users.command("create")(lambda: 3)
    app.add_typer(users)
    return app.catalog


def test_catalog_keeps_the_order_of_registration() -> None:
    catalog = make_catalog()
    assert [tool.key for tool in catalog] == ["b", "a", "users.create"]
    assert len(catalog) == 3
    assert repr(catalog) == "Catalog(b, a, users.create)"


def test_tool_is_found_by_its_full_key_only() -> None:
    catalog = make_catalog()
    assert catalog["users.create"].name == "create"
    assert "a" in catalog
    assert "create" not in catalog
    with pytest.raises(KeyError):
        catalog["create"]


def test_transform_returns_another_catalog() -> None:
    catalog = make_catalog()
    fewer = Catalog(tool for tool in catalog if tool.name != "a")
    assert (len(catalog), len(fewer)) == (3, 2)


def test_handoff_object_is_resolved_and_the_first_unknown_one_is_reported() -> None:
    app = Tooli("app")
    app.command("plan")(lambda: 1)
    app.command("apply", handoffs=[Handoff("plan", "first"), "plam", "unknown"])(lambda: 2)
    tool = app.catalog["apply"]
    assert tool.guidance.handoffs == (Handoff("plan", "first"),)
    assert "'plam'" in str(app.catalog.problems["apply"])
    assert "unknown" not in str(app.catalog.problems["apply"])
