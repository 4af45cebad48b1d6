"""A sample app with a command for every kind of parameter, function, result and error."""

# ruff: noqa: UP007, UP045  tooli reads annotations, and users write both spellings
from __future__ import annotations

import dataclasses
import enum
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict, Union
from uuid import UUID

import pydantic
import typer

from tooli import (
    ApprovalRequired,
    AuthError,
    ConflictError,
    Context,
    DependencyError,
    FormatError,
    InputError,
    InternalError,
    NotFoundError,
    StateError,
    Suggestion,
    TemporaryError,
    TimeoutExceeded,
    ToolError,
    Tooli,
    ToolRuntimeError,
)
from tooli.annotations import Destructive, Idempotent, ReadOnly


class Color(enum.Enum):
    RED = "red"
    BLUE = "deep-blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Span(TypedDict):
    start: int
    stop: int


class Address(pydantic.BaseModel):
    city: str
    postcode: str | None = None


class User(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(default=0, ge=0)
    tags: list[str] = []
    address: Address | None = None


TOOLS: list[tuple[Callable[..., Any], dict[str, Any]]] = []
USERS: list[tuple[Callable[..., Any], dict[str, Any]]] = []


def tool(group: list[Any] = TOOLS, **kwargs: Any) -> Callable[[Any], Any]:
    """Add a function to a group of commands. The keywords are those of `app.command`."""

    def add(fn: Any) -> Any:
        group.append((fn, kwargs))
        return fn

    return add


def make_app() -> Tooli:
    """Return a new sample app. It has not loaded Typer yet."""
    app = Tooli("sample", version="1.2.0", description="A sample app.")
    for fn, kwargs in TOOLS:
        app.command(**kwargs)(fn)
    users = Tooli("users")
    for fn, kwargs in USERS:
        users.command(**kwargs)(fn)
    admin = Tooli("admin")
    admin.command()(promote)
    users.add_typer(admin)
    app.add_typer(users, name="users")
    return app


def make_single_command_app() -> Tooli:
    """Return an app with a single command."""
    app = Tooli("single", version="3")
    app.command()(find_files)
    return app


def make_callback_app() -> Tooli:
    """Return an app with a callback and a group of Typer. Typer parses every command line."""
    app = Tooli("callback", version="2")

    @app.callback()
    def before(verbosity: int = 0) -> None:
        """Run before every command."""

    app.command()(find_files)
    app.command()(say)
    typer_group = typer.Typer()
    typer_group.command()(later)
    typer_group.command()(say)
    typer_group.command("levels")(promote)
    typer_group.command()(fail)
    app.add_typer(typer_group, name="plain")
    return app


def _types(**values: Any) -> dict[str, Any]:
    """Return each value that the function received, with the name of its class."""
    return {name: [type(value).__name__, value] for name, value in values.items()}


# ------------------------------------------------------------------ parameters

for _name, _type in {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "path": Path,
    "enum": Color,
    "int-enum": Level,
    "literal": Literal["ham", "eggs"],
    "datetime": datetime,
    "date": date,
    "time": time,
    "timedelta": timedelta,
    "uuid": UUID,
    "decimal": Decimal,
    "bytes": bytes,
    "str-list": list[str],
    "int-list": list[int],
    "enum-list": list[Color],
    "int-set": set[int],
    "str-frozenset": frozenset[str],
    "int-str-tuple": tuple[int, str],
    "int-tuple": tuple[int, ...],
    "date-list": list[date],
    "dict": dict[str, int],
    "union": Union[int, str],
    "dataclass": Point,
    "typed-dict": Span,
    "model": User,
    "model-list": list[User],
    "dataclass-list": list[Point],
    "any": Any,
    "positive-int": Annotated[int, pydantic.Field(gt=0)],
}.items():

    def _as_argument(value: Any) -> Any:
        return _types(value=value)

    def _as_option(*, value: Any = None) -> Any:
        return _types(value=value)

    _as_argument.__annotations__ = {"value": _type, "return": dict[str, Any]}
    _as_option.__annotations__ = {"value": Optional[_type], "return": dict[str, Any]}
    TOOLS.append((_as_argument, {"name": f"argument-{_name}"}))
    TOOLS.append((_as_option, {"name": f"option-{_name}"}))


@tool(
    annotations=ReadOnly | Idempotent,
    examples=[{"args": ["*.py", "--limit", "3"], "description": "Three files."}],
)
def find_files(
    pattern: str,
    root: Path = Path("."),
    limit: Annotated[int, typer.Option(min=1, max=100)] = 10,
    color: Color = Color.RED,
    kinds: Annotated[list[str] | None, typer.Option("--kind", "-k")] = None,
    deep: bool = False,
    follow: bool = True,
) -> dict[str, Any]:
    """Find files.

    Args:
        pattern: What to look for.
        root: Where to start.
    """
    return _types(
        pattern=pattern,
        root=root,
        limit=limit,
        color=color,
        kinds=kinds,
        deep=deep,
        follow=follow,
    )


@tool()
def collide(
    json: str = "j",
    output: str = "o",
    yes: bool = False,
    dry_run: bool = False,
    help: str = "h",
    schema: str = "s",
    name: str = "n",
    self: str = "me",
    kwargs: str = "k",
    tool_name: str = "t",
) -> dict[str, Any]:
    """Take parameters with the names of framework options."""
    return {
        "json": json,
        "output": output,
        "yes": yes,
        "dry_run": dry_run,
        "help": help,
        "schema": schema,
        "name": name,
        "self": self,
        "kwargs": kwargs,
        "tool_name": tool_name,
    }


@tool()
def ask(ctx: Context, question: str = "why") -> dict[str, Any]:
    """Use the methods of the context."""
    ctx.warn(f"asked {question}")
    items = list(ctx.progress([1, 2, 3]))
    options = ctx.options
    return {
        "tool": ctx.tool,
        "items": items,
        "sure": ctx.confirm("sure?"),
        "yes": options.yes,
        "verbose": options.verbose,
    }


@tool()
def under_typer(ctx: typer.Context, word: str = "w") -> dict[str, Any]:
    """Take the context of Typer."""
    return {"word": word, "command": ctx.info_name}


# ------------------------------------------------------------------ kinds of functions


@tool()
async def later(n: int) -> int:
    """An async function."""
    import asyncio

    await asyncio.sleep(0)
    return n + 1


@tool()
def count(n: int, fail_after: int = -1) -> Iterator[dict[str, int]]:
    """A generator."""
    for i in range(n):
        if i == fail_after:
            raise NotFoundError(f"no {i}", field="n")
        yield {"i": i}


@tool()
async def acount(n: int, fail_after: int = -1) -> AsyncIterator[dict[str, int]]:
    """An async generator."""
    for i in range(n):
        if i == fail_after:
            raise NotFoundError(f"no {i}", field="n")
        yield {"i": i}


@tool()
def breaking(n: int) -> Iterator[int]:
    """A generator that raises an unexpected exception after n items."""
    yield from range(n)
    raise KeyError("lost")


@tool()
def returning(n: int) -> Iterator[int]:
    """A generator that also returns a value, which is ignored."""
    yield from range(n)
    return 5


@tool()
def interrupted(after: int = 0) -> Iterator[int]:
    """A generator that is interrupted with Ctrl-C after some items."""
    yield from range(after)
    raise KeyboardInterrupt


@tool()
def parsed(value: Annotated[int, typer.Option(parser=lambda text: int(text, 16))]) -> int:
    """Take a value that a custom parser converts."""
    return value


def _even(value: int) -> int:
    if value % 2:
        raise typer.BadParameter("must be even")
    return value


@tool()
def checked(value: Annotated[int, typer.Option(callback=_even)] = 2) -> int:
    """Take a value that a callback validates."""
    return value


@tool()
def asked(value: Annotated[str, typer.Option(prompt=True)]) -> str:
    """Take a value that Typer prompts for."""
    return value


# ------------------------------------------------------------------ results


@tool()
def result(kind: str) -> Any:
    """Return a value of the given kind."""
    return RESULTS[kind]()


RESULTS: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "false": lambda: False,
    "zero": lambda: 0,
    "empty-text": lambda: "",
    "empty-list": list,
    "empty-dict": dict,
    "unicode": lambda: "naïve \u2028 שלום \U0001f600 \x00 \x7f",
    "surrogate": lambda: "half \ud800",
    "nan": lambda: [float("nan"), float("inf"), 1.5],
    "bytes": lambda: b"plain",
    "binary": lambda: b"\xff\xfe",
    "decimal": lambda: Decimal("1.10"),
    "uuid": lambda: UUID(int=7),
    "datetime": lambda: datetime(2024, 2, 29, 1, 2, 3),
    "timedelta": lambda: timedelta(days=1, seconds=3),
    "path": lambda: Path("a") / "b",
    "enum": lambda: Color.BLUE,
    "enum-keys": lambda: {Color.BLUE: 1, 2: "two", None: "none"},
    "dict-of-sets": lambda: {"s": {3, 1, 2}, "f": frozenset("ba")},
    "set": lambda: {3, 1, 2},
    "tuple": lambda: (1, "two"),
    "dataclass": lambda: Point(1, 2),
    "model": lambda: User(name="Ada", address=Address(city="London")),
    "list-of-models": lambda: [User(name="Ada"), Point(3)],
    "object": lambda: _Odd(),
    "nested-object": lambda: {"a": [_Odd()]},
    "big": lambda: 10**40,
    "exception": lambda: ValueError("as a value"),
    "recursive": lambda: _recursive(),
    "deep": lambda: _deep(500),
    "null-inside": lambda: {"a": None},
}


class _Odd:
    def __str__(self) -> str:
        return "odd"


def _recursive() -> list[Any]:
    loop: list[Any] = [1]
    loop.append(loop)
    return loop


def _deep(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


# ------------------------------------------------------------------ failures


@tool()
def fail(kind: str) -> str:
    """Raise an error of any class."""
    raise ERRORS[kind]()


def _rich_error() -> ToolError:
    suggestion = Suggestion(
        "retry_with_modified_input", "Try '*.py'.", example="sample find-files '*.py'"
    )
    return StateError(
        "No files matched",
        code="E3001",
        field="pattern",
        suggestion=suggestion,
        is_retryable=True,
        details={"pattern": "*.rs", "at": Path("x"), "when": date(2024, 1, 1)},
    )


ERRORS: dict[str, Callable[[], BaseException]] = {
    **{
        cls.__name__: (lambda cls=cls: cls("it failed"))
        for cls in (
            *(ToolError, InputError, FormatError, AuthError, ApprovalRequired, StateError),
            *(NotFoundError, ConflictError, ToolRuntimeError, DependencyError),
            *(TimeoutExceeded, TemporaryError, InternalError),
        )
    },
    "rich": _rich_error,
    "own-exit-code": lambda: ToolRuntimeError("mine", code="E4999", exit_code=42),
    "value-error": lambda: ValueError("a bad value"),
    "key-error": lambda: KeyError("k"),
    "empty-message": lambda: RuntimeError(),
    "multi-line": lambda: RuntimeError("one\ntwo"),
    "file-not-found": lambda: FileNotFoundError(2, "No such file or directory", "gone.txt"),
    "file-exists": lambda: FileExistsError(17, "File exists", "there.txt"),
    "permission": lambda: PermissionError(13, "Permission denied", "secret.txt"),
    "timeout": lambda: TimeoutError("slow"),
    "connection": lambda: ConnectionRefusedError(111, "Connection refused"),
    "broken-pipe": lambda: BrokenPipeError(32, "Broken pipe"),
    "os-error": lambda: OSError(28, "No space left on device", "disk"),
    "stop-iteration": lambda: StopIteration("done"),
    "assertion": lambda: AssertionError("no"),
    "typer-exit": lambda: typer.Exit(3),
    "typer-exit-0": lambda: typer.Exit(),
    "typer-abort": lambda: typer.Abort(),
    "bad-parameter": lambda: typer.BadParameter("not that", param_hint="kind"),
    "bad-parameter-bare": lambda: typer.BadParameter("not that"),
    "system-exit": lambda: SystemExit(4),
    "system-exit-0": lambda: SystemExit(),
    "system-exit-text": lambda: SystemExit("bye"),
    "recursion": lambda: RecursionError("deep"),
    "validation": lambda: _validation_error(),
    "exception-group": lambda: _group(),
}


def _validation_error() -> Exception:
    try:
        User(name=3)  # type: ignore[arg-type]
    except pydantic.ValidationError as error:
        return error
    raise AssertionError


def _group() -> BaseException:
    if sys.version_info >= (3, 11):
        return ExceptionGroup("two", [ValueError("a"), KeyError("b")])  # noqa: F821
    return RuntimeError("two")


@tool()
async def afail(kind: str) -> str:
    """Raise an error of any class, in async code."""
    raise ERRORS[kind]()


# ------------------------------------------------------------------ printing


@tool()
def say(text: str, code: int = 0) -> None:
    """Print text and return nothing, like most Typer commands."""
    print(text)
    typer.echo("and more")
    print("extra", file=sys.stderr)
    if code:
        raise typer.Exit(code)


@tool()
def chatty(text: str) -> str:
    """Print text and return a value."""
    print("printed")
    return text


# ------------------------------------------------------------------ policy


@tool(annotations=Destructive)
def delete(path: Path, force: bool = False) -> str:
    """Delete a file."""
    return f"deleted {path}"


@tool(requires_approval=True)
def launch(target: str) -> str:
    """Run only with the approval of a person."""
    return f"launched {target}"


@tool(auth=["files:write"])
def scoped(path: str = "p") -> str:
    """Run only with the scope files:write."""
    return path


@tool(deprecated=True)
def old(n: int = 1) -> int:
    """A deprecated command."""
    return n


@tool(version="9.9")
def fresh() -> User:
    """A command with its own version, which returns a model."""
    return User(name="new")


# ------------------------------------------------------------------ groups


@tool(USERS)
def create(user: User, notify: bool = False) -> User:
    """Create a user."""
    return user


@tool(USERS, name="list")
def list_users(limit: int = 2) -> list[User]:
    """List users."""
    return [User(name=f"u{i}") for i in range(limit)]


def promote(name: str, level: Level = Level.LOW) -> dict[str, Any]:
    """A command in a nested group."""
    return _types(name=name, level=level)
