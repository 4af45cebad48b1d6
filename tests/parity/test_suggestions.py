"""Each interface suggests a call in its own form, and that call does not fail in the same way.

A client that does what the suggestion says must get out of the error: it runs `argv`, sends
`arguments`, or requests `example`.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from tooli import NotFoundError, Option, SecretInput, StdinOr, Suggestion, Tooli
from tooli.annotations import Destructive, ReadOnly
from tooli.pipeline.dry_run_recorder import dry_run_support, record_dry_action
from tooli.testing import Case, invoke
from tooli.testing.app_interfaces import interfaces, send_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli.core.protocols import JsonObject
    from tooli.testing.app_interfaces import Interface

INTERFACES = [interface.name for interface in interfaces(Tooli("names"))]


class Row(BaseModel):
    name: str
    size: int


def make_app() -> Tooli:
    app = Tooli("shop")

    @app.command(annotations=Destructive)
    def delete(path: str, depth: int = 1, tags: list[str] | None = None) -> str:
        """Delete."""
        return f"{path} {depth} {tags}"

    @app.command(annotations=Destructive)
    def drop(yes: bool = False, limit: int = 3) -> str:
        """Drop, with parameters that have the names of options."""
        return f"dropped {yes} {limit}"

    @app.command(annotations=ReadOnly, paginated=True)
    def rows(
        kind: Literal["small", "large"] = "small", top: Annotated[int, Option(max=9)] = 5
    ) -> list[Row]:
        """List rows."""
        return [Row(name=f"{kind} {i}", size=i) for i in range(top)]

    @app.command(annotations=ReadOnly)
    def read(data: StdinOr[str], count: int = 1) -> str:
        """Read an input."""
        return data[:count]

    @app.command(annotations=Destructive)
    @dry_run_support
    def move(path: str) -> str:
        """Move."""
        if not record_dry_action("move", path):
            return "moved"
        return "planned"

    @app.command(annotations=ReadOnly)
    def unlock(key: SecretInput[str], count: int = 1) -> str:
        """Take a secret."""
        return f"unlocked {count}"

    @app.command(annotations=ReadOnly)
    def search(pattern: str, root: str = ".") -> str:
        """Search, with an error of the app that suggests a command line."""
        if pattern == "*.rs":
            argv = ["shop", "search", "*.py", "--root", root]
            fix = Suggestion("retry_with_modified_input", "Try '*.py'.", argv=argv)
            raise NotFoundError("No files match.", suggestion=fix)
        return f"{pattern} {root}"

    @app.command(annotations=ReadOnly)
    def pick(number: int, dry: bool = False) -> int:
        """Pick, with an error of the app that suggests arguments."""
        if number > 9:
            fix = Suggestion(fix="Use 9.", arguments={"number": 9, "dry": dry, "timeout": 5})
            raise NotFoundError("No such number.", suggestion=fix)
        return number

    return app


CASES = {
    "E1001": Case("delet", {"path": "x"}, {"dry_run": True}),
    "E1002": Case("delete", {"depth": 3}, {"dry_run": True}),
    "E1002 secret": Case("unlock", {"count": 2}, {"limit": 2}),
    "E1003": Case("rows", {"kind": "smal", "top": 3}, {"limit": 2}),
    "E1003 range": Case("rows", {"kind": "large", "top": 30}, {"limit": 2}),
    "E1003 item": Case("delete", {"path": "x", "depth": "x"}, {"yes": True}),
    "E1004": Case("delete", {"pth": "x", "depth": 3}, {"dry_run": True}),
    "E1004 flag": Case("delete", {"path": "x", "dry_rn": True}),
    "E1004 unknown": Case("delete", {"path": "x", "zzzzzz": "1"}, {"dry_run": True}),
    "E1005": Case("rows", argv=["rows", "extra", "--limit", "2"]),
    "E1007": Case("rows", {"top": 3}, {"limit": "x", "fields": "name"}),
    "E1007 timeout": Case("rows", {"top": 3}, {"timeout": -1, "limit": 2}),
    "E1010": Case("delete", {"path": "x", "depth": 2, "tags": ["a", "-b"]}, {"timeout": 30}),
    "E1010 taken": Case("drop", {"yes": True}),
    "E1035": Case(
        "read",
        {"data": "-", "count": 2},
        skip={"cli": "stdin can be read", "python": "stdin can be read"},
    ),
    "E1040": Case("rows", {"top": 3}, {"filter": "nme == 'x'", "limit": 2}),
    "E1040 syntax": Case("rows", {"top": 3}, {"filter": "size >", "limit": 2}),
    "E1041": Case("rows", {"top": 3}, {"fields": "nme", "limit": 2}),
    "E1042": Case("rows", {"top": 3}, {"cursor": "nonsense", "limit": 2}),
    "E1051": Case("move", {"path": "x"}, {"apply": "nonsense", "yes": True}),
    "E3010 argv": Case("search", {"pattern": "*.rs", "root": "src"}),
    "E3010 arguments": Case("pick", {"number": 10, "dry": True}),
}
PLACEHOLDERS = {
    "<path>": "x",
    "<filter>": "size > 1",
    "<depth>": 2,
    "<data>": "text",
    "<top>": 3,
    "<count>": 1,
    "<key>": "env:HOME",
    "<idempotency_key>": "another-key",
}


def find_interface(app: Tooli, name: str) -> Interface:
    return next(interface for interface in interfaces(app) if interface.name == name)


def fill(value: Any) -> Any:
    """Return a value with a real one in place of each placeholder."""
    if isinstance(value, list):
        return [fill(item) for item in value]
    return PLACEHOLDERS.get(value, value) if isinstance(value, str) else value


def follow(interface: Interface, case: Case, suggestion: Mapping[str, Any]) -> JsonObject:
    """Do what a suggestion says, and return the new answer."""
    if interface.surface == "cli":
        assert "arguments" not in suggestion and "query" not in suggestion
        words = [str(fill(word)) for word in suggestion["argv"][1:]]
        return invoke(interface.app, *words, mode="json").envelope
    assert "argv" not in suggestion
    arguments = {name: fill(value) for name, value in suggestion.get("arguments", {}).items()}
    if "arguments" not in suggestion:  # only the name of the command was wrong
        arguments = dict(case.arguments)
    options = suggestion.get("query") or suggestion.get("options") or {}
    options = {name: fill(value) for name, value in options.items()}
    command = suggestion.get("command", case.tool)
    return interface.send_case(Case(command, arguments, options)).envelope


@pytest.mark.parametrize("name", INTERFACES)
@pytest.mark.parametrize("code", CASES)
def test_suggested_call_does_not_fail_in_the_same_way(code: str, name: str) -> None:
    app, case = make_app(), CASES[code]
    interface = find_interface(app, name)
    if interface.skip_reason(case) is not None:
        pytest.skip(interface.skip_reason(case) or "")
    error = interface.send_case(case).envelope["error"]
    assert error["code"] == code[:5], error
    answer = follow(interface, case, error["suggestion"])
    assert answer.get("error", {}).get("code") != error["code"], answer


@pytest.mark.parametrize("name", INTERFACES)
@pytest.mark.parametrize("code", ["E1002", "E1004", "E1004 flag", "E1004 unknown"])
def test_suggested_call_is_still_a_dry_run(code: str, name: str) -> None:
    """A corrected call must not do what the caller only wanted to plan."""
    app, case = make_app(), CASES[code]
    interface = find_interface(app, name)
    suggestion = interface.send_case(case).envelope["error"]["suggestion"]
    answer = follow(interface, case, suggestion)
    assert answer["ok"], answer
    plan = answer["result"][0] if isinstance(answer["result"], list) else answer["result"]
    assert "delete" in plan["tool"]


@pytest.mark.parametrize("name", INTERFACES)
def test_text_of_a_confirmation_is_in_the_words_of_the_interface(name: str) -> None:
    interface = find_interface(make_app(), name)
    fix = interface.send_case(CASES["E1010"]).envelope["error"]["suggestion"]["fix"]
    dry_run, yes = {
        "cli": ("--dry-run", "--yes"),
        "http": ("?dry_run=true", "?yes=true"),
        "mcp": ('"dry_run": true', '"yes": true'),
        "python": ("dry_run=True", "yes=True"),
    }[interface.surface]
    assert fix == f"Check the effects with {dry_run}, then repeat the call with {yes}."


@pytest.mark.parametrize("code", CASES)
@pytest.mark.parametrize("name", INTERFACES)
def test_only_the_command_line_mentions_flags(code: str, name: str) -> None:
    interface = find_interface(make_app(), name)
    case = CASES[code]
    if interface.surface == "cli" or interface.skip_reason(case) is not None:
        return
    error = interface.send_case(case).envelope["error"]
    assert "--" not in json.dumps({**error["suggestion"], "message": error["message"]})


@pytest.mark.parametrize("code", ["E1003", "E1010", "E1010 taken", "E1040", "E1004 flag"])
def test_request_line_over_http_works(code: str) -> None:
    """The loop of "repeat the call with --yes" has an exit: `example` is the request to send."""
    app, case = make_app(), CASES[code]
    error = find_interface(app, "http").send_case(case).envelope["error"]
    method, target, *rest = error["suggestion"]["example"].split(" ", 2)
    path, _, query = target.partition("?")
    body = "".join(rest).encode()
    sent = asyncio.run(send_request(app.asgi(), method, path, body=body, query=query))
    answer = sent.json()
    assert answer.get("error", {}).get("code") != error["code"], answer


@pytest.mark.parametrize("code", ["E1003", "E1010", "E1010 taken", "E1004 flag", "E3010 argv"])
def test_python_example_works(code: str) -> None:
    app, case = make_app(), CASES[code]
    error = find_interface(app, "call").send_case(case).envelope["error"]
    found = eval(error["suggestion"]["example"], {"app": app})
    assert found.ok or found.error.code != error["code"]


@pytest.mark.parametrize("name", INTERFACES)
def test_suggested_call_has_a_place_for_another_idempotency_key(name: str) -> None:
    interface = find_interface(make_app(), name)
    options = {"yes": True, "idempotency_key": f"key-{name}"}
    assert interface.send_case(Case("move", {"path": "a"}, options)).envelope["ok"]
    case = Case("move", {"path": "b"}, options)
    error = interface.send_case(case).envelope["error"]
    suggestion = error["suggestion"]
    assert (error["code"], suggestion["applicability"]) == ("E3050", "has_placeholders")
    assert "--" not in json.dumps(suggestion) or interface.surface == "cli"
    assert follow(interface, case, suggestion)["ok"]


@pytest.mark.parametrize("name", INTERFACES)
def test_error_about_a_plan_suggests_a_dry_run_of_the_same_call(name: str) -> None:
    interface = find_interface(make_app(), name)
    case = Case("move", {"path": "b"}, {"apply": "x" * 40, "yes": True, "timeout": 30})
    error = interface.send_case(case).envelope["error"]
    assert error["code"] == "E1051"
    answer = follow(interface, case, error["suggestion"])
    plan = answer["result"][0] if isinstance(answer["result"], list) else answer["result"]
    assert plan["arguments"] == {"path": "b"}


@pytest.mark.parametrize("name", INTERFACES)
def test_errors_that_ask_to_wait_name_no_flags(name: str) -> None:
    """A limit of the rate, or a missing approval: repeat the same call later."""
    app = Tooli("desk")

    @app.command(annotations=ReadOnly, rate_limit="1/minute")
    def status() -> str:
        """Show the status."""
        return "fine"

    @app.command(requires_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    interface = find_interface(app, name)
    answers = [interface.send_case(Case("status")).envelope for _ in range(2)]
    answers.append(interface.send_case(Case("pay", {"amount": 3})).envelope)
    errors = [answer["error"] for answer in answers if not answer["ok"]]
    expected = ["E4029"] if interface.surface in ("http", "mcp") else []
    assert [error["code"] for error in errors] == [*expected, "E2101"]
    for error in errors:
        suggestion = error["suggestion"]
        assert suggestion["action"] in ("retry_later", "ask_human")
        assert "--" not in json.dumps({**suggestion, "message": error["message"]})
