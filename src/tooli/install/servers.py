"""Servers: an app's MCP server in the settings of agents, beside whatever else stands there."""

from __future__ import annotations

import os
from contextlib import contextmanager

from tooli.contract.record import Record
from tooli.errors import FormatError, Suggestion
from tooli.install.malformed import Malformed
from tooli.install.places import SERVERS, shown
from tooli.install.plan import Change, Step, digest, read, target
from tooli.install.records import Written

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Any, Protocol

    from tooli.install.places import Place
    from tooli.install.records import Records

    class Form(Protocol):
        """A file format that holds servers by name."""

        def look(self, text: str, name: str) -> Any: ...
        def others(self, text: str, name: str) -> Any: ...
        def want(self, name: str, entry: dict[str, Any]) -> Any: ...
        def put(self, text: str, name: str, entry: dict[str, Any]) -> tuple[str, str]: ...
        def swap(
            self, text: str, name: str, entry: dict[str, Any], old: str
        ) -> tuple[str, str]: ...
        def take(self, text: str, name: str, *, container: bool) -> str: ...
        def is_empty(self, text: str) -> bool: ...


class Noted(Record):
    """A step, and what is to be remembered of it."""

    step: Step
    file: str
    written: Written | None


def plan_server(place: Place, name: str, command: Sequence[str], records: Records) -> Noted:
    """What has to be done for an agent to know the server, started by these words."""
    file, before, text, form = _open(place)
    entry = _entry(place.agent, command)
    known = records.of(file, name)
    with _naming(place.path):
        found, wanted = form.look(text, name), form.want(name, entry)
        if found == wanted:
            kept = (known or Written("")).replace(digest=_digest(found))
            return Noted(Step(place.path, place.agent, "current", "current"), file, kept)
        if found is None:
            after, inserted = form.put(text, name, entry)
        else:
            after, inserted = form.swap(text, name, entry, known.text if known else "")
        _check(form, text, after, name)
    change = Change(file, before, after.encode("utf-8", "surrogateescape"))
    written = _made(file, before, inserted, records, place).replace(
        digest=_digest(wanted), text=inserted
    )
    if found is None:
        action = "created" if before is None else "updated"
        return Noted(Step(place.path, place.agent, "absent", action, (change,)), file, written)
    if known is not None and _digest(found) == known.digest:
        return Noted(Step(place.path, place.agent, "stale", "updated", (change,)), file, written)
    step = Step(place.path, place.agent, "edited", "updated", (change,), (change,))
    return Noted(step, file, written)


def plan_server_removal(place: Place, name: str, command: Sequence[str], records: Records) -> Noted:
    """What has to be done for an agent to know the server no more."""
    file, before, text, form = _open(place)
    known = records.of(file, name)
    with _naming(place.path):
        found = form.look(text, name)
        if before is None or found is None:
            return Noted(Step(place.path, place.agent, "absent", "absent"), file, None)
        after = _without(form, text, name, known)
        _check(form, text, after, name)
    ours = found == form.want(name, _entry(place.agent, command))
    written = known is not None and known.digest == _digest(found)
    gone = known is not None and known.file and form.is_empty(after)
    data = None if gone else after.encode("utf-8", "surrogateescape")
    change = Change(file, before, data)
    prune: list[str] = []
    at = file
    for _ in range(known.folders if known and gone else 0):
        at = os.path.dirname(at)
        prune.append(at)
    state = "current" if ours else "stale" if written else "edited"
    edited = (change,) if state == "edited" else ()
    step = Step(place.path, place.agent, state, "removed", (change,), edited, tuple(prune))
    return Noted(step, file, None)


def _without(form: Form, text: str, name: str, known: Written | None) -> str:
    """The text without the entry: what was inserted cut out again, where it still stands there."""
    if known is not None and known.text and text.count(known.text) == 1:
        after = text.replace(known.text, "", 1)
        try:
            if form.look(after, name) is None and form.others(after, name) == form.others(
                text, name
            ):
                return after
        except Malformed:
            pass  # others have come to depend on it: a comma, a bracket
    return form.take(text, name, container=known is not None and known.container)


def _made(
    file: str, before: bytes | None, inserted: str, records: Records, place: Place
) -> Written:
    """What is made for an entry, now or by an app that came before."""
    made = records.made(file)
    if before is None:
        folder, missing = os.path.dirname(file), 0
        while not os.path.isdir(folder) and missing < 3:
            folder, missing = os.path.dirname(folder), missing + 1
        return made.replace(file=True, folders=missing, container=True)
    whole = inserted.lstrip(", \t\r\n{").startswith(f'"{SERVERS[place.agent].container}"')
    return made.replace(container=True) if whole else made


def _open(place: Place) -> tuple[str, bytes | None, str, Form]:
    registry = SERVERS[place.agent]
    file = os.path.realpath(target(place.path))
    before = read(file)
    try:
        text = (before or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise _refused(place.path, "it is not UTF-8") from None
    if registry.form == "toml":
        from tooli.install.toml_servers import TomlServers

        return file, before, text, TomlServers(registry.container)
    from tooli.install.json_servers import JsonServers

    return file, before, text, JsonServers(registry.container)


def _entry(agent: str, command: Sequence[str]) -> dict[str, Any]:
    said = {"command": command[0], "args": [*command[1:]]}
    return {"type": "stdio", **said} if SERVERS[agent].typed else said


def _digest(value: Any) -> str:
    from json import dumps

    return digest(dumps(value, sort_keys=True).encode())


def _check(form: Form, before: str, after: str, name: str) -> None:
    """Refuse an edit that would change anything beside the entry."""
    if form.others(before, name) != form.others(after, name):
        raise Malformed(1, "it is written in a way that cannot be edited without a loss")


@contextmanager
def _naming(path: str) -> Generator[None]:
    """Around work on a file: what is malformed becomes an error that names it."""
    try:
        yield
    except Malformed as failure:
        raise _refused(path, f"line {failure.line}: {failure.what}") from failure


def _refused(path: str, why: str) -> FormatError:
    return FormatError(
        f"{shown(path)} cannot be read ({why}); nothing was changed.",
        suggestion=Suggestion("ask_human", f"Mend {shown(path)}, or leave its agent out."),
        details={"path": shown(path)},
    )
