"""Paths that a caller names: from the folder that commands run in, and only where they may lead."""

from __future__ import annotations

import os

from tooli.call.canonical import given_to
from tooli.contract.capabilities import is_below
from tooli.contract.parts import parts_of
from tooli.contract.tool import is_path
from tooli.enforce.allowances import bounds_of
from tooli.errors import AuthError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

    from tooli.call.model import Call, Outcome, Stage
    from tooli.contract.capabilities import Allowance


def enter_folder(house: Any) -> Stage:
    """Relative paths are those of `work_dir`, before anybody looks whether they are there.

    A command line has gone into that folder itself. A process that belongs to others stays where
    it is: there the paths that callers name are put below it.
    """

    def enter(call: Call) -> Generator[Call, Outcome, Outcome]:
        folder = _elsewhere(house)
        if folder is None:
            return (yield call)
        given = dict(call.arguments)
        for param in call.tool.public:
            if param.name in given and is_path(param.shape):
                given[param.name] = _moved(given[param.name], folder)
        return (yield call.replace(arguments=given))

    return enter


def keep_to_paths(house: Any) -> Stage:
    """Refuse a call with a path outside `allow_paths`, or below one of `deny_paths`.

    Nothing has run yet. A text is not known to be a path: what becomes of it is watched.
    """

    def keep(call: Call) -> Generator[Call, Outcome, Outcome]:
        folder, bounds = _elsewhere(house), bounds_of(house)
        bound = dict(call.arguments)
        for name, value in given_to(call).items():
            if folder is not None:  # a default is fitted late
                bound[name] = _moved(value, folder) if not isinstance(value, str) else value
            if bounds is not None:
                for path in _paths(bound[name], set()):
                    _check(call, name, os.path.join(folder or "", path), bounds)
        return (yield call if folder is None else call.replace(arguments=bound))

    return keep


def _elsewhere(house: Any) -> str | None:
    """The folder that commands run in, where the process is in another one."""
    folder = house.rules.get("work_dir")
    if folder is None:
        return None
    folder = os.path.realpath(os.path.expanduser(folder))
    return None if folder == os.path.realpath(os.curdir) else folder


def _moved(value: Any, folder: str) -> Any:
    """A relative path, or each of many, below the folder; anything else as it is."""
    if type(value) in (list, tuple, set, frozenset):
        return type(value)([_moved(item, folder) for item in value])
    if isinstance(value, str):
        return value if value == "-" or "://" in value else os.path.join(folder, value)
    if hasattr(value, "__fspath__") and not hasattr(value, "tooli_place"):
        return type(value)(os.path.join(folder, os.fsdecode(value)))
    return value


def _paths(value: Any, met: set[int]) -> Iterator[str]:
    """Every path inside a value, as far as it can be told from a text."""
    if hasattr(value, "tooli_place"):
        place = value.tooli_place
        if place is not None and "://" not in place:
            yield os.fsdecode(place)
    elif isinstance(value, os.PathLike):
        yield os.fsdecode(value)  # pyright: ignore[reportUnknownArgumentType]
    elif id(value) not in met:
        met.add(id(value))
        for part in parts_of(value):
            yield from _paths(part, met)


def _check(call: Call, name: str, path: str, bounds: Allowance) -> None:
    real = os.path.realpath(os.path.expanduser(path))
    if is_below(real, bounds.reads) and not is_below(real, bounds.denied):
        return
    details: dict[str, object] = {"path": real}
    if bounds.reads is not None:
        details["allowed"] = list(bounds.reads)
    raise AuthError(
        f"{call.tool.name} may not be given {path!r}: the configuration does not allow it.",
        code="E2005",
        field=name,
        suggestion=Suggestion(
            "retry_with_modified_input", "Name a path that is allowed, or ask its owner for it."
        ),
        details=details,
    )
