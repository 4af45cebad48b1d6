"""Secrets of every type appear in no output of any interface, also in other spellings."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Optional

import pytest
from pydantic import (
    AliasChoices,
    BaseModel,
    Field,
    Secret,
    SecretBytes,
    SecretStr,
    field_validator,
    model_validator,
)
from tests.integration.app_process import environment, run
from typing_extensions import TypeAliasType

from tooli import Context, Option, SecretInput, StdinOr, Tooli
from tooli.core import secret_fields
from tooli.errors import ConflictError, Suggestion, ToolError
from tooli.testing import Case, invoke
from tooli.testing.app_interfaces import interfaces

CANARY = "c4nary-5ecret"
PYTHON_VALUES = ("call", "acall", "stream", "astream")
"""Interfaces that return the value of the function itself."""


class Credentials(BaseModel):
    key: SecretStr
    n: int = 0


class Aliased(BaseModel):
    key: SecretStr = Field(alias="apiKey")
    other: SecretStr = Field(default=SecretStr(""), validation_alias=AliasChoices("a1", "a2"))


class Collections(BaseModel):
    rows: list[Credentials] = []
    by_name: dict[str, SecretStr] = {}
    data: Optional[SecretBytes] = None  # noqa: UP045  the older form
    number: Secret[int] = Secret(0)


class FieldValidator(BaseModel):
    key: SecretInput[str]

    @field_validator("key", mode="before")
    @classmethod
    def check_key(cls, value: object) -> object:
        raise ValueError(f"invalid key {value}")


class RejectAll(BaseModel):
    """The error message of the validator has the whole input."""

    @model_validator(mode="before")
    @classmethod
    def check_all(cls, value: object) -> object:
        raise ValueError(f"invalid {value}")


class ModelValidator(RejectAll):
    key: SecretStr


Tree = TypeAliasType("Tree", "SecretStr | list[Tree]")
"""A type that refers to itself by its name."""


class TreeValidator(RejectAll):
    tree: Tree


class CrashingValidator(BaseModel):
    key: SecretStr

    @model_validator(mode="before")
    @classmethod
    def check_all(cls, value: object) -> object:
        raise RuntimeError(f"invalid {value}")


class Defaults(BaseModel):
    key: SecretStr = SecretStr(CANARY)
    token: SecretInput[str] = SecretInput(CANARY)


@dataclass
class Account:
    key: SecretStr
    n: int = 0


def reject(value: str) -> str:
    raise ValueError(f"rejected {value}")


def make_app() -> Tooli:
    app = Tooli("secrets", version="1")

    @app.command()
    def model(value: Credentials, fail: bool = False) -> Any:
        """Take a model."""
        if fail:
            raise RuntimeError(value.key.get_secret_value())
        return [value.key.get_secret_value(), value, repr(value), {"key": value.key}]

    @app.command()
    def aliased(value: Aliased) -> Any:
        """Take a model with aliases."""
        return [value.key.get_secret_value(), value.other.get_secret_value()]

    @app.command()
    def collections(value: Collections) -> Any:
        """Take secrets in collections."""
        return [
            *[row.key.get_secret_value() for row in value.rows],
            *[key.get_secret_value() for key in value.by_name.values()],
            value.data and value.data.get_secret_value().decode(),
            value.number.get_secret_value(),
        ]

    @app.command()
    def field_validator(value: FieldValidator) -> int:
        """Reject the field."""
        return 1

    @app.command()
    def model_validator(value: ModelValidator) -> int:
        """Reject the model."""
        return 1

    @app.command()
    def tree_validator(value: TreeValidator) -> int:
        """Reject the model."""
        return 1

    @app.command()
    def crashing_validator(value: CrashingValidator) -> int:
        """Fail in a validator."""
        return 1

    @app.command()
    def account(value: Account) -> Any:
        """Take a dataclass."""
        return [value.key.get_secret_value(), value]

    @app.command()
    def text(key: SecretStr, n: int = 0) -> Any:
        """Take a text."""
        return [key.get_secret_value(), key]

    @app.command()
    def rejected(key: Annotated[SecretStr, Option(callback=reject)]) -> Any:
        """Reject the text in a callback."""
        return key

    @app.command()
    def data(key: SecretBytes) -> Any:
        """Take bytes."""
        return key.get_secret_value().decode()

    @app.command()
    def texts(keys: list[SecretStr], n: int = 0) -> Any:
        """Take a list."""
        return [key.get_secret_value() for key in keys]

    @app.command()
    def default(key: SecretStr = SecretStr(CANARY), n: int = 0) -> Any:  # noqa: B008
        """Return a default."""
        return key.get_secret_value()

    @app.command()
    def default_model(value: Defaults = Defaults()) -> Any:  # noqa: B008
        """Return the defaults of a model."""
        return [value.key.get_secret_value(), value.token.reveal(), value]

    @app.command()
    def inner_error(key: SecretStr) -> Any:
        """Fail with an error of pydantic that contains a shortened value."""
        return Credentials.model_validate({"key": key.get_secret_value(), "n": "x" * 50})

    @app.command()
    def content(value: StdinOr[Credentials]) -> Any:
        """Read a model."""
        return value.key.get_secret_value()

    @app.command()
    def messages(key: SecretStr, ctx: Context) -> Any:
        """Send messages."""
        ctx.warn(f"warning {key.get_secret_value()}")
        ctx.info(f"info {key.get_secret_value()}")
        return 1

    @app.command(input_model=ModelValidator)
    def expanded(value: ModelValidator) -> int:
        """Take the fields of a model as options."""
        return 1

    return app


ROW = {"key": CANARY}
CASES = [
    Case("model", {"value": ROW}),
    Case("model", {"value": ROW, "fail": True}),
    Case("model", {"value": {"key": CANARY, "n": "x"}}),
    Case("model", {"value": {"keey": CANARY}}),
    Case("model", {"value": [ROW]}),
    Case("model", {"value": CANARY}),
    Case("model", {"valu": ROW}),
    Case("aliased", {"value": {"apiKey": CANARY, "a2": CANARY}}),
    Case("aliased", {"value": {"apiKey": [CANARY], "a2": {"x": CANARY}}}),
    Case("collections", {"value": {"rows": [ROW], "by_name": {"a": CANARY}, "data": CANARY}}),
    Case("collections", {"value": {"rows": [{"key": CANARY, "n": "x"}]}}),
    Case("collections", {"value": {"number": CANARY}}),
    Case("field-validator", {"value": ROW}),
    Case("field-validator", {"value": {"key": {"a": [CANARY]}}}),
    Case("model-validator", {"value": ROW}),
    Case("tree-validator", {"value": {"tree": [[CANARY]]}}),
    Case("crashing-validator", {"value": ROW}),
    Case("account", {"value": ROW}),
    Case("account", {"value": {"key": CANARY, "n": "x"}}),
    Case("text", {"key": CANARY}),
    Case("text", {"key": CANARY, "n": "x"}),
    Case("text", {"key": CANARY, "nn": "x"}),
    Case("text", {"keey": CANARY}),
    Case("text", {"key": [CANARY]}),
    Case("rejected", {"key": CANARY}),
    Case("data", {"key": CANARY}),
    Case("texts", {"keys": [CANARY, f"{CANARY}2"]}),
    Case("texts", {"keys": [CANARY], "n": "x"}),
    Case("default", {}),
    Case("default", {"n": "x"}),
    Case("default-model", {}),
    Case("inner-error", {"key": CANARY}),
    Case("content", {"value": ROW}, skip={"cli": "it takes a path"}),
    Case("content", {"value": {"key": CANARY, "n": "x"}}, skip={"cli": "it takes a path"}),
    Case("messages", {"key": CANARY}),
    Case("expanded", {"key": CANARY}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.tool)
def test_secrets_of_pydantic_are_hidden(
    case: Case, capfd: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    app = make_app()
    for interface in interfaces(app):
        if interface.name not in PYTHON_VALUES and interface.skip_reason(case) is None:
            answer = interface.send_case(case)
            assert CANARY not in str(answer), interface.name
            assert CANARY[:8] not in str(answer), interface.name
    captured = capfd.readouterr()
    assert CANARY not in captured.out + captured.err


class TextDefaults(BaseModel):
    key: SecretStr = CANARY  # type: ignore[assignment]
    optional: Optional[SecretStr] = Field(default=CANARY, examples=[CANARY])  # noqa: UP045
    keys: list[SecretStr] = [SecretStr(CANARY)]
    token: SecretInput[str] = CANARY  # type: ignore[assignment]


def make_documented_app() -> Tooli:
    app = Tooli("documented", version="1")

    @app.command()
    def plain(
        key: SecretStr = CANARY,  # type: ignore[assignment]
        token: SecretInput[str] = CANARY,  # type: ignore[assignment]
        data: SecretBytes = CANARY.encode(),  # type: ignore[assignment]  # noqa: B008
        keys: list[SecretStr] = [SecretStr(CANARY)],  # noqa: B006, B008
        located: SecretInput[str] = "env:DOCUMENTED_KEY",  # type: ignore[assignment]
    ) -> TextDefaults:
        """Have secrets as defaults."""
        return TextDefaults()

    @app.command()
    def model(value: TextDefaults = TextDefaults()) -> list[TextDefaults]:  # noqa: B008
        """Have a model as default."""
        return []

    @app.command(input_model=TextDefaults)
    def expanded(value: TextDefaults) -> int:
        """Have a model with defaults."""
        return 1

    return app


@pytest.mark.parametrize(
    "line",
    [
        *("--help", "--help-agent", "--agent-manifest", "--agent-bootstrap", "--schema"),
        *("docs llms", "docs man", "docs man plain", "docs man model", "export --target openai"),
        *(
            "export --target python --mode import --app a:b",
            "export --target permissions --host claude-code",
        ),
        *[
            f"{name} {flag}"
            for name in ("plain", "model", "expanded")
            for flag in (*("--help", "--schema", "--help-agent"),)
        ],
    ],
)
def test_defaults_are_not_documented(line: str) -> None:
    done = invoke(make_documented_app(), *line.split())
    assert done.exit_code == 0, done.stderr
    assert len(done.stdout) > 50
    assert CANARY not in done.stdout + done.stderr
    if line == "plain --help":
        assert "env:DOCUMENTED_KEY" in done.stdout


@pytest.mark.parametrize(
    ("argv", "is_warned"),
    [
        (["text", CANARY], True),
        (["model", json.dumps(ROW)], True),
        (["model", "@ROW"], False),
        (["default"], False),
    ],
)
def test_secret_on_command_line_is_warned_about(
    argv: list[str], is_warned: bool, tmp_path: Any
) -> None:
    (tmp_path / "row.json").write_text(json.dumps(ROW))
    argv = [arg.replace("@ROW", f"@{tmp_path / 'row.json'}") for arg in argv]
    answer = invoke(make_app(), *argv, "--json").envelope
    warnings = answer["meta"].get("warnings", [])
    assert any(["can read the command line" in line for line in warnings]) is is_warned


def test_errors_of_many_secrets_are_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_fields, "MAX_INVALID_SECRETS", 3)
    rows = [{"key": f"{CANARY}{n}", "n": "x"} for n in range(9)]
    http = next(i for i in interfaces(make_app()) if i.name == "http")
    answer = http.send_case(Case("collections", {"value": {"rows": rows}})).envelope
    assert CANARY not in str(answer)
    assert "its errors are not shown" in answer["error"]["message"]


# ------------------------------------------------------------------ exceptions in Python


def _drain(app: Tooli, name: str, is_async: bool) -> None:
    async def drain() -> None:
        async for _ in app.astream(name, key=CANARY):
            pass

    if is_async:
        asyncio.run(drain())
    else:
        list(app.stream(name, key=CANARY))


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("name", ["crash", "refuse", "invalid", "value", "cause"])
def test_exception_of_a_stream_is_redacted(name: str, is_async: bool) -> None:
    app = Tooli("app")

    @app.command()
    def crash(key: SecretInput[str]) -> Iterator[int]:
        yield 1
        raise RuntimeError(f"bad {key.reveal()}")

    @app.command()
    def refuse(key: SecretStr) -> Iterator[int]:
        yield 1
        text = key.get_secret_value()
        raise ConflictError(text, details={text: [text]}, suggestion=Suggestion("fix", text))

    @app.command()
    def invalid(key: SecretInput[int]) -> Iterator[int]:
        yield 1

    @app.command()
    def value(key: SecretInput[str]) -> int:
        raise ValueError(key.reveal())

    @app.command()
    def cause(key: SecretInput[str]) -> Iterator[int]:
        yield 1
        raise ConflictError(f"bad {key.reveal()}") from ValueError(key.reveal())

    with pytest.raises(ToolError) as failure:
        _drain(app, name, is_async)
    error = failure.value
    shown = "".join(traceback.format_exception(error))
    for text in (shown, str(error), repr(error), repr(error.to_dict()), repr(error.args)):
        assert CANARY not in text
    assert "***" in str(error) or name == "invalid"
    assert type(error) is ConflictError or name not in ("refuse", "cause")


def test_exception_of_a_stream_without_secrets_has_its_cause() -> None:
    app, raised = Tooli("app"), ConflictError("no")

    @app.command()
    def refuse() -> Iterator[int]:
        yield 1
        raise raised

    with pytest.raises(ConflictError) as failure:
        list(app.stream("refuse"))
    assert failure.value.__cause__ is raised  # the raised error has a number of items


# ------------------------------------------------------------------ stored data

STORING_APP = """
import logging
from typing import Any
from tooli import Context, Tooli
from tooli.annotations import Destructive
from pydantic import SecretStr

app = Tooli("storing", version="1")

@app.command()
def big(key: SecretStr) -> Any:
    return [{"i": i, "key": key.get_secret_value() * 2} for i in range(300)]

@app.command()
def crash(key: SecretStr) -> Any:
    try:
        raise ValueError(key.get_secret_value())
    except ValueError as error:
        raise KeyError(key.get_secret_value()) from error

@app.command(annotations=Destructive)
def drop(key: SecretStr, url: str) -> Any:
    return url

@app.command(requires_approval=True)
def ask(key: SecretStr, url: str) -> Any:
    return url

@app.command()
def logs(key: SecretStr, ctx: Context) -> Any:
    ctx.info(key.get_secret_value())
    ctx.progress(1, 2, message=key.get_secret_value())
    return 1

app()
"""
LINES = [
    "big KEY --json --max-bytes 2000",
    "big KEY --json --limit 2",
    "big KEY -o csv",
    "big KEY --json --idempotency-key k1",
    "crash KEY --json --verbose",
    "crash KEY --text --verbose",
    "crash KEY --text --idempotency-key k2",
    "drop KEY https://u:KEY@host/ --json",
    "drop KEY https://u:KEY@host/ --json --dry-run",
    "drop KEY https://u:KEY@host/ --json --yes",
    "ask KEY https://u:KEY@host/ --json",
    "logs KEY --text --verbose",
    "approvals list",
    "audit tail --json",
    "idempotency list --json",
]


def test_no_process_shows_or_stores_the_secret(tmp_path: Path) -> None:
    program, state = tmp_path / "storing.py", tmp_path / "state"
    program.write_text(STORING_APP)
    settings = environment(TOOLI_STATE_DIR=str(state), HOME=str(tmp_path / "home"))
    for line in LINES:
        done = run(program, *line.replace("KEY", CANARY).split(), env=settings)
        assert CANARY.encode() not in done.out + done.err, line
        assert done.out + done.err
    stored = [path for path in state.rglob("*") if path.is_file()]
    assert len(stored) > 4
    for path in stored:
        assert CANARY.encode() not in path.read_bytes(), path
