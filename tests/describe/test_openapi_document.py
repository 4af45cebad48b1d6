"""The OpenAPI document of an app is valid and complete, and its examples match the schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, Literal

import jsonschema
import pydantic
import pytest
from openapi_spec_validator import validate
from tests.parity.sample_apps import make_app, make_callback_app, make_single_command_app

from tooli import Context, SecretInput, Tooli
from tooli.annotations import Destructive, ReadOnly
from tooli.describe.openapi_document import build_openapi
from tooli.http.request_options import read_options
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
    names = [
        operation["operationId"]
        for item in document["paths"].values()
        for operation in item.values()
    ]
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
        (content,) = item["post"]["requestBody"]["content"].values()
        schema = {**content["schema"], "components": document["components"]}
        for example in content.get("examples", {}).values():
            jsonschema.validate(example["value"], schema)


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
    assert read["responses"].keys() == {"200", "default"}
    assert read["responses"]["default"] == {"$ref": "#/components/responses/Failure"}
    wipe = document["paths"]["/tools/wipe"]["post"]
    assert (wipe["x-tooli-scopes"], wipe["x-tooli-danger-level"]) == (["w"], "high")
    assert document["paths"]["/tools/say"]["post"]["deprecated"] is True
    assert document["paths"]["/tools/group/say"]["post"]["tags"] == ["group"]
    rows = document["paths"]["/tools/rows"]["post"]["responses"]["200"]["content"]
    assert {"application/json", "application/x-ndjson", "text/event-stream"} == set(rows)


def test_definitions_are_in_the_components(app: Tooli) -> None:
    document = build_document(app)
    text = str(document)
    assert "#/$defs/" not in text
    assert "$defs" not in text
    assert "#/tooli/" not in text
    assert "x-tooli-class" not in text
    assert {"Node", "NodeInput", "WipeArguments", "WipeAnswer"} <= set(
        document["components"]["schemas"]
    )


def test_commands_that_only_read_have_get_and_no_plan(app: Tooli) -> None:
    paths = build_document(app)["paths"]
    assert paths["/tools/read"].keys() == {"post", "get"}
    assert "/plans/read" not in paths
    assert paths["/tools/wipe"].keys() == {"post"}
    plan = paths["/plans/wipe"]["post"]
    assert plan["operationId"] == "plan_wipe"
    answer = plan["responses"]["200"]["content"]["application/json"]["schema"]
    assert answer == {"$ref": "#/components/schemas/PlanAnswer"}
    assert plan["requestBody"] == paths["/tools/wipe"]["post"]["requestBody"]


def test_commands_with_files_have_an_operation_for_a_form() -> None:
    app = Tooli("app")

    @app.command()
    def load(data: bytes, more: list[bytes], tree: Node | None = None) -> int:
        """Load it.

        Args:
            data: What to load.
        """
        return 1

    document = build_document(app)
    validate(document)
    operation = document["paths"]["/uploads/load"]["post"]
    assert operation["operationId"] == "upload_load"
    schema = document["components"]["schemas"]["LoadUpload"]
    binary = {"type": "string", "format": "binary"}
    assert operation["requestBody"]["content"].keys() == {"multipart/form-data"}
    assert schema["properties"]["data"] == {**binary, "description": "What to load."}
    assert schema["properties"]["more"] == {"type": "array", "items": binary}
    assert "NodeInput" in str(schema["properties"]["tree"])
    assert schema["required"] == ["data", "more"]
    body = document["components"]["schemas"]["LoadArguments"]
    assert "format" not in body["properties"]["data"]


def test_query_parameters_of_get() -> None:
    app = Tooli("app")

    @app.command(annotations=ReadOnly, paginated=True)
    def find(
        names: list[str],
        limit: int = 5,
        since: date | None = None,
        token: SecretInput[str] | None = None,
        tree: Node | None = None,
    ) -> list[int]:
        return []

    app.command("get-find", annotations=ReadOnly)(lambda: 1)
    document = build_document(app)
    validate(document)
    get = document["paths"]["/tools/find"]["get"]
    assert get["operationId"] == "get_find_2"
    named = {part["name"]: part for part in get["parameters"] if "name" in part}
    assert list(named) == ["names", "limit", "since", "tooli_limit", "cursor", "If-None-Match"]
    assert named["names"]["required"] is True
    assert named["names"]["schema"]["type"] == "array"
    assert named["limit"]["schema"] == {"type": "integer"}
    assert named["since"]["schema"]["format"] == "date"
    assert get["responses"]["200"]["headers"].keys() == {"Preference-Applied", "ETag", "Link"}
    assert "304" in get["responses"]


def test_answers_require_the_result_unless_it_may_be_null() -> None:
    app = Tooli("app")
    annotations = {
        "number": int,
        "text": str | None,
        "rows": list[int | None],
        "anything": Any,
        "nothing": None,
        "choice": Literal["a", None],
        "one": Literal[None],
        "node": Node,
        "either": Node | int,
    }
    for name, annotation in annotations.items():

        def fn() -> Any: ...

        fn.__annotations__ = {"return": annotation}
        app.command(name)(fn)
    schemas = build_document(app)["components"]["schemas"]
    required = {
        name for name in annotations if "result" in schemas[f"{name.title()}Answer"]["required"]
    }
    assert required == {"number", "rows", "nothing", "node", "either"}  # `nothing` prints text
    assert schemas["NumberAnswer"]["properties"]["ok"] == {"type": "boolean", "enum": [True]}
    assert not any(['"const"' in json.dumps(schema) for schema in schemas.values()])


def test_document_of_a_secured_server(app: Tooli) -> None:
    document = build_document(app, secured=True, server_url="https://x.example")
    assert document["security"] == [{"token": []}]
    assert document["servers"] == [{"url": "https://x.example"}]
    assert document["paths"]["/tools/wipe"]["post"]["security"] == [{"token": ["w"]}]
    assert "security" not in document["paths"]["/tools/read"]["post"]


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
    assert names == {
        "/tools/many": ["limit", "cursor", "yes"],
        "/tools/few": ["yes"],
        "/plans/many": [],
        "/plans/few": [],
    }


def test_timeout_and_idempotency_key_of_every_operation() -> None:
    app = Tooli("app", version="1")
    app.command("few")(lambda: 1)
    app.command("many", paginated=True)(lambda: [1])
    document = build_openapi("app", "1", None, app.catalog)
    shared = document["components"]["parameters"]
    for item in document["paths"].values():
        parameters = item["post"]["parameters"]
        names = {one["$ref"].rpartition("/")[2] for one in parameters if "$ref" in one}
        assert {"timeout", "Idempotency-Key"} <= names <= shared.keys()
    assert (shared["timeout"]["in"], shared["Idempotency-Key"]["in"]) == ("query", "header")
    assert [read_run_option("timeout", text)[1] for text in ("0.5", "10000000")] == [None, None]
    pattern = re.compile(shared["Idempotency-Key"]["schema"]["pattern"])
    for key in ("a", "order-7", '"order-7"', "a" * 255, '"', "", "a b", "é", "a" * 256):
        problems = read_options(b"", {b"idempotency-key": key.encode()})[1]
        assert bool(pattern.search(key)) == (not problems), key
