"""The OpenAPI document of an app is valid and complete, and its examples match the schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pydantic
import pytest
from openapi_spec_validator import validate
from tests.parity.sample_apps import make_app, make_callback_app, make_single_command_app

from tooli import Context, Tooli
from tooli.annotations import Destructive, ReadOnly
from tooli.describe.openapi_document import build_openapi
from tooli.errors import ERROR_CODES
from tooli.http.http_request import read_options
from tooli.records.call_options import read_run_option


class Node(pydantic.BaseModel):
    """A recursive model."""

    name: str
    children: list[Node] = []


@pytest.fixture
def app() -> Tooli:
    app = Tooli("docs", version="2", description="Documents.")

    @app.command(
        annotations=ReadOnly,
        task_group="Reading",
        when_to_use="often",
        error_codes={"E3001": "nothing"},
        examples=[
            {"args": ["a.md", "--limit", "3", "--deep"], "description": "Deep."},
            {"args": ["a.md", "--no-such"], "description": "Dropped."},
        ],
    )
    def read(path: Path, limit: int = 1, deep: bool = False) -> list[str]:
        """Read it.

        All of it.
        """
        return []

    @app.command(annotations=Destructive, requires_approval=True, auth=["w"], danger_level="high")
    def wipe(tree: Node) -> Node:
        """Wipe it."""
        return tree

    @app.command()
    def rows(n: int = 1) -> Iterator[Node]:
        """Stream it."""
        yield Node(name="x")

    @app.command(deprecated=True)
    def say(text: str) -> None:
        """Print it."""

    @app.command()
    def ask(ctx: Context) -> str:
        """Ask."""
        return ""

    @app.command(hidden=True)
    def secret() -> str:
        """A hidden command."""
        return ""

    app.command("odd {name}/x")(lambda: 1)
    group = Tooli("group")
    group.command("say")(say)
    app.add_typer(group, name="group")
    app.command("group-say")(lambda: 2)
    return app


def build_document(app: Tooli, **more):
    state = app._state
    return build_openapi(state.name, state.version, state.description, app.catalog, **more)


@pytest.mark.parametrize(
    "make", [make_app, make_single_command_app, make_callback_app, lambda: Tooli("empty")]
)
@pytest.mark.parametrize("more", [{}, {"secured": True, "server_url": "https://x.example/api"}])
def test_document_is_valid(make, more) -> None:
    validate(build_document(make(), **more))


def test_document_with_recursive_types_and_special_names(app: Tooli) -> None:
    document = build_document(app, secured=True)
    validate(document)
    assert document["openapi"] == "3.1.1"
    assert "/tools/odd%20%7Bname%7D%2Fx" in document["paths"]
    assert "/tools/secret" not in document["paths"]
    names = [item["post"]["operationId"] for item in document["paths"].values()]
    assert len(names) == len(set(names))
    assert "group_say_2" in names


def test_document_of_file_tools() -> None:
    from examples.file_tools.app import app as files

    document = build_document(files)
    validate(document)
    body = document["paths"]["/tools/find-files"]["post"]["requestBody"]
    content = body["content"]["application/json"]
    (example,) = content["examples"].values()
    assert example["value"] == {"pattern": "*.py", "root": "src"}
    for item in document["paths"].values():
        content = item["post"]["requestBody"]["content"]["application/json"]
        for example in content.get("examples", {}).values():
            jsonschema.validate(example["value"], content["schema"])


def test_operation_has_the_metadata_of_its_command(app: Tooli) -> None:
    document = build_document(app)
    read = document["paths"]["/tools/read"]["post"]
    assert (read["operationId"], read["tags"]) == ("read", ["Reading"])
    assert (read["summary"], read["description"]) == ("Read it.", "Read it.\n\nAll of it.")
    assert read["requestBody"]["required"] is True
    examples = read["requestBody"]["content"]["application/json"]["examples"]
    assert [e["value"] for e in examples.values()] == [{"path": "a.md", "limit": 3, "deep": True}]
    assert read["x-tooli-annotations"] == ["read-only"]
    assert read["x-tooli-error-codes"] == {"E3001": "nothing"}
    assert read["x-tooli-command"] == "docs read"
    assert {"200", "400", "404", "422", "429", "500", "503"} <= set(read["responses"])
    assert "428" not in read["responses"]
    assert "401" not in read["responses"]
    wipe = document["paths"]["/tools/wipe"]["post"]
    assert {"428"} <= set(wipe["responses"])
    assert (wipe["x-tooli-scopes"], wipe["x-tooli-danger-level"]) == (["w"], "high")
    assert "428" in document["paths"]["/tools/ask"]["post"]["responses"]
    assert document["paths"]["/tools/say"]["post"]["deprecated"] is True
    assert document["paths"]["/tools/group/say"]["post"]["tags"] == ["group"]
    rows = document["paths"]["/tools/rows"]["post"]["responses"]["200"]["content"]
    assert {"application/json", "application/x-ndjson", "text/event-stream"} == set(rows)


def test_status_of_a_declared_error_code() -> None:
    app = Tooli("app")
    app.command("go", error_codes={"E2101": "ask first", "E3999": "mine"})(lambda: 1)
    assert "428" in build_document(app)["paths"]["/tools/go"]["post"]["responses"]


def test_definitions_are_in_the_components(app: Tooli) -> None:
    document = build_document(app)
    text = str(document["paths"])
    assert "#/$defs/" not in text
    assert "$defs" not in text
    assert "wipe_Node" in document["components"]["schemas"]
    assert "wipe_result_Node" in document["components"]["schemas"]


def test_every_error_code_has_a_valid_example(app: Tooli) -> None:
    components = build_document(app, secured=True)["components"]
    documented: set[str] = set()
    schema = {"$ref": "#/components/schemas/Failure", "components": components}
    for response in components["responses"].values():
        for code, example in response["content"]["application/json"]["examples"].items():
            jsonschema.validate(example["value"], schema)
            documented.add(code)
    assert documented == {code for code, row in ERROR_CODES.items() if row[2] != 405}


def test_document_of_a_secured_server(app: Tooli) -> None:
    document = build_document(app, secured=True, server_url="https://x.example")
    assert document["security"] == [{"token": []}]
    assert document["servers"] == [{"url": "https://x.example"}]
    assert "401" in document["paths"]["/tools/read"]["post"]["responses"]


def test_paging_parameters_of_a_paginated_command() -> None:
    app = Tooli("app", version="1")

    @app.command(paginated=True)
    def many() -> list[int]:
        return []

    @app.command()
    def few() -> list[int]:
        return []

    paths = build_openapi("app", "1", None, app.catalog)["paths"]
    names = {
        path: [one["name"] for one in item["post"]["parameters"] if "name" in one]
        for path, item in paths.items()
    }
    assert names == {"/tools/many": ["limit", "cursor"], "/tools/few": []}


def test_timeout_and_idempotency_key_of_every_operation() -> None:
    app = Tooli("app", version="1")
    app.command("few")(lambda: 1)
    app.command("many", paginated=True)(lambda: [1])
    document = build_openapi("app", "1", None, app.catalog)
    shared = document["components"]["parameters"]
    for item in document["paths"].values():
        names = {one["$ref"].rpartition("/")[2] for one in item["post"]["parameters"][:9]}
        assert {"timeout", "Idempotency-Key"} <= names <= shared.keys()
    assert (shared["timeout"]["in"], shared["Idempotency-Key"]["in"]) == ("query", "header")
    assert [read_run_option("timeout", text)[1] for text in ("0.5", "10000000")] == [None, None]
    pattern = re.compile(shared["Idempotency-Key"]["schema"]["pattern"])
    for key in ("a", "order-7", '"order-7"', "a" * 255, '"', "", "a b", "é", "a" * 256):
        problems = read_options(b"", {b"idempotency-key": key.encode()})[1]
        assert bool(pattern.search(key)) == (not problems), key
