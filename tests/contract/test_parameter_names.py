"""What can be said of a function's parameters before anybody reads its annotations."""

from __future__ import annotations

from functools import partial

from tooli import Context
from tooli.contract.reading import names_of, needs_of


def plain(a: int, b: str = "", *, c: float, d: bool = False) -> None: ...


def given(ctx: Context, a: int) -> None: ...


def later(a: NotYet) -> None: ...  # type: ignore[name-defined]  # noqa: F821


class Callable:
    def __call__(self, a: int, *rest: int, **more: int) -> None: ...


def test_names() -> None:
    assert names_of(plain) == ("a", "b", "c", "d")
    assert names_of(partial(plain, c=1.0)) == ("a", "b", "c", "d")
    assert names_of(Callable()) == ("a",)
    assert names_of(lambda: None) == ()


def test_needs() -> None:
    assert needs_of(plain, ()) == ("a", "c")
    assert needs_of(plain, ("a",)) == ("c",)
    assert needs_of(plain, ("a", "c")) == ()
    assert needs_of(given, ("a",)) == ()
    assert needs_of(given, ()) == ("a",)
    assert needs_of(later, ()) == ()
