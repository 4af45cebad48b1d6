"""Parameter names and required parameters, without evaluating annotations."""

from __future__ import annotations

from functools import partial

from tooli import Context
from tooli.schema.tool_reader import missing_required_parameters, parameter_names


def plain(a: int, b: str = "", *, c: float, d: bool = False) -> None: ...


def given(ctx: Context, a: int) -> None: ...


def later(a: NotYet) -> None: ...  # type: ignore[name-defined]  # noqa: F821


class Callable:
    def __call__(self, a: int, *rest: int, **more: int) -> None: ...


def test_names() -> None:
    assert parameter_names(plain) == ("a", "b", "c", "d")
    assert parameter_names(partial(plain, c=1.0)) == ("a", "b", "c", "d")
    assert parameter_names(Callable()) == ("a",)
    assert parameter_names(lambda: None) == ()


def test_needs() -> None:
    assert missing_required_parameters(plain, ()) == ("a", "c")
    assert missing_required_parameters(plain, ("a",)) == ("c",)
    assert missing_required_parameters(plain, ("a", "c")) == ()
    assert missing_required_parameters(given, ("a",)) == ()
    assert missing_required_parameters(given, ()) == ("a",)
    assert missing_required_parameters(later, ()) == ()
