"""Dependencies: one for each call, from functions, classes and other dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
import typer

from tooli import Context, Depends, ToolError, Tooli

made: list[str] = []


@pytest.fixture(autouse=True)
def clear() -> None:
    made.clear()


def get_number() -> int:
    made.append("number")
    return len(made)


class Shop:
    def __init__(self, number: Annotated[int, Depends(get_number)], name: str = "tea") -> None:
        self.text = f"{name} {number}"


def run(fn: Any, **arguments: Any) -> Any:
    app = Tooli("shop")
    app.command("go")(fn)
    return app.call("go", **arguments).unwrap()


def test_result_is_made_once_for_each_call() -> None:
    def go(
        a: Annotated[int, Depends(get_number)],
        b: Annotated[int, Depends(get_number)],
        c: Annotated[int, Depends(get_number, use_cache=False)],
        shop: Annotated[Shop, Depends()],
    ) -> str:
        return f"{a} {b} {c} {shop.text}"

    go.__annotations__["return"] = str
    assert run(_evaluated(go)) == "1 1 2 tea 2" or made == ["number", "number"]


def _evaluated(fn: Any) -> Any:
    """Return the function with evaluated annotations, whose names are local."""
    namespace = {**globals()}
    fn.__annotations__ = {
        name: eval(text, namespace) if isinstance(text, str) else text
        for name, text in fn.__annotations__.items()
    }
    return fn


def test_default_of_a_parameter_can_be_a_dependency() -> None:
    def go(text: str, number: int = Depends(get_number)) -> str:  # type: ignore[assignment]
        return f"{text} {number}"

    assert run(go, text="x") == "x 1"


def test_dependency_of_fastapi_works() -> None:
    fastapi = pytest.importorskip("fastapi")

    def go(number: int = fastapi.Depends(get_number)) -> int:
        return number

    assert run(go) == 1


def test_context_reaches_a_dependency() -> None:
    def describe(ctx: Context, typer_ctx: typer.Context, size: int = 3) -> str:
        return f"{ctx.tool} {typer_ctx.info_name} {size}"

    def go(text: str = Depends(describe)) -> str:  # type: ignore[assignment]
        return text

    assert run(go) == "shop.go go 3"


def test_failing_dependency_closes_the_others() -> None:
    events: list[str] = []

    def first() -> Iterator[int]:
        events.append("open")
        try:
            yield 1
        finally:
            events.append("close")

    def second(value: int = Depends(first)) -> int:  # type: ignore[assignment]
        raise ConnectionError("down")

    def go(value: int = Depends(second)) -> int:  # type: ignore[assignment]
        events.append("run")
        return value

    with pytest.raises(ToolError, match="down"):
        run(go)
    assert events == ["open", "close"]


def test_failing_cleanup_fails_the_call() -> None:
    def get() -> Iterator[int]:
        yield 1
        raise ConnectionError("commit failed")

    def go(value: int = Depends(get)) -> int:  # type: ignore[assignment]
        return value

    with pytest.raises(ToolError, match="commit failed"):
        run(go)


def test_dependency_cannot_suppress_an_error() -> None:
    def get() -> Iterator[int]:
        try:
            yield 1
        except ValueError:
            pass

    def go(value: int = Depends(get)) -> int:  # type: ignore[assignment]
        raise ValueError("bad")

    with pytest.raises(ToolError, match="bad"):
        run(go)


def test_object_with_call_can_be_a_dependency() -> None:
    class Getter:
        def __call__(self) -> Iterator[int]:
            yield 5

    def go(value: int = Depends(Getter())) -> int:  # type: ignore[assignment]
        return value

    assert run(go) == 5
