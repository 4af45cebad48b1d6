"""Servers: an app's MCP server in the settings of agents, beside whatever else stands there."""

from __future__ import annotations

import os
from contextlib import contextmanager

from tooli.core.record import Record
from tooli.errors import FormatError, Suggestion
from tooli.install.agent_paths import SERVER_CONFIGS, display_path
from tooli.install.file_changes import FileChange, InstallStep, digest, read_file, resolve_link
from tooli.install.malformed_file import MalformedFileError
from tooli.install.server_records import WrittenEntry

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Any, Protocol

    from tooli.install.agent_paths import AgentPath
    from tooli.install.server_records import ServerRecords

    class ServerFileFormat(Protocol):
        """A file format that holds servers by name."""

        def get_entry(self, text: str, name: str) -> Any: ...
        def other_entries(self, text: str, name: str) -> Any: ...
        def expected_entry(self, name: str, entry: dict[str, Any]) -> Any: ...
        def insert_entry(self, text: str, name: str, entry: dict[str, Any]) -> tuple[str, str]: ...
        def replace_entry(
            self, text: str, name: str, entry: dict[str, Any], old: str
        ) -> tuple[str, str]: ...
        def remove_entry(self, text: str, name: str, *, container: bool) -> str: ...
        def is_empty(self, text: str) -> bool: ...


class ServerPlan(Record):
    """A step, and what is to be remembered of it."""

    step: InstallStep
    file: str
    written_entry: WrittenEntry | None


def plan_server(
    agent_path: AgentPath, name: str, command: Sequence[str], records: ServerRecords
) -> ServerPlan:
    """What has to be done for an agent to know the server, started by these words."""
    file, before, text, file_format = _open_config(agent_path)
    entry = _server_entry(agent_path.agent, command)
    recorded = records.get(file, name)
    with _errors_name_file(agent_path.path):
        found, expected = file_format.get_entry(text, name), file_format.expected_entry(name, entry)
        if found == expected:
            known_entry = (recorded or WrittenEntry("")).replace(digest=_digest(found))
            return ServerPlan(
                InstallStep(agent_path.path, agent_path.agent, "current", "current"),
                file,
                known_entry,
            )
        if found is None:
            after, inserted = file_format.insert_entry(text, name, entry)
        else:
            after, inserted = file_format.replace_entry(
                text, name, entry, recorded.text if recorded else ""
            )
        _check_rest_unchanged(file_format, text, after, name)
    change = FileChange(file, before, after.encode("utf-8", "surrogateescape"))
    written = _creation_record(file, before, inserted, records, agent_path).replace(
        digest=_digest(expected), text=inserted
    )
    if found is None:
        action = "created" if before is None else "updated"
        return ServerPlan(
            InstallStep(agent_path.path, agent_path.agent, "absent", action, (change,)),
            file,
            written,
        )
    if recorded is not None and _digest(found) == recorded.digest:
        return ServerPlan(
            InstallStep(agent_path.path, agent_path.agent, "stale", "updated", (change,)),
            file,
            written,
        )
    step = InstallStep(agent_path.path, agent_path.agent, "edited", "updated", (change,), (change,))
    return ServerPlan(step, file, written)


def plan_server_removal(
    agent_path: AgentPath, name: str, command: Sequence[str], records: ServerRecords
) -> ServerPlan:
    """What has to be done for an agent to know the server no more."""
    file, before, text, file_format = _open_config(agent_path)
    recorded = records.get(file, name)
    with _errors_name_file(agent_path.path):
        found = file_format.get_entry(text, name)
        if before is None or found is None:
            return ServerPlan(
                InstallStep(agent_path.path, agent_path.agent, "absent", "absent"), file, None
            )
        after = _remove_server_text(file_format, text, name, recorded)
        _check_rest_unchanged(file_format, text, after, name)
    is_expected = found == file_format.expected_entry(
        name, _server_entry(agent_path.agent, command)
    )
    is_recorded = recorded is not None and recorded.digest == _digest(found)
    removes_file = recorded is not None and recorded.file and file_format.is_empty(after)
    data = None if removes_file else after.encode("utf-8", "surrogateescape")
    change = FileChange(file, before, data)
    prune: list[str] = []
    folder = file
    for _ in range(recorded.folders if recorded and removes_file else 0):
        folder = os.path.dirname(folder)
        prune.append(folder)
    state = "current" if is_expected else "stale" if is_recorded else "edited"
    edited = (change,) if state == "edited" else ()
    step = InstallStep(
        agent_path.path, agent_path.agent, state, "removed", (change,), edited, tuple(prune)
    )
    return ServerPlan(step, file, None)


def _remove_server_text(
    file_format: ServerFileFormat, text: str, name: str, recorded: WrittenEntry | None
) -> str:
    """The text without the entry: what was inserted cut out again, where it still stands there."""
    if recorded is not None and recorded.text and text.count(recorded.text) == 1:
        after = text.replace(recorded.text, "", 1)
        try:
            if file_format.get_entry(after, name) is None and file_format.other_entries(
                after, name
            ) == file_format.other_entries(text, name):
                return after
        except MalformedFileError:
            pass  # others have come to depend on it: a comma, a bracket
    return file_format.remove_entry(
        text, name, container=recorded is not None and recorded.container
    )


def _creation_record(
    file: str, before: bytes | None, inserted: str, records: ServerRecords, agent_path: AgentPath
) -> WrittenEntry:
    """What is made for an entry, now or by an app that came before."""
    record = records.creation_record(file)
    if before is None:
        folder, missing = os.path.dirname(file), 0
        while not os.path.isdir(folder) and missing < 3:
            folder, missing = os.path.dirname(folder), missing + 1
        return record.replace(file=True, folders=missing, container=True)
    adds_container = inserted.lstrip(", \t\r\n{").startswith(
        f'"{SERVER_CONFIGS[agent_path.agent].container}"'
    )
    return record.replace(container=True) if adds_container else record


def _open_config(agent_path: AgentPath) -> tuple[str, bytes | None, str, ServerFileFormat]:
    registry = SERVER_CONFIGS[agent_path.agent]
    file = os.path.realpath(resolve_link(agent_path.path))
    before = read_file(file)
    try:
        text = (before or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise _unreadable_config(agent_path.path, "it is not UTF-8") from None
    if registry.file_format == "toml":
        from tooli.install.toml_servers import TomlServers

        return file, before, text, TomlServers(registry.container)
    from tooli.install.json_servers import JsonServers

    return file, before, text, JsonServers(registry.container)


def _server_entry(agent: str, command: Sequence[str]) -> dict[str, Any]:
    server = {"command": command[0], "args": [*command[1:]]}
    return {"type": "stdio", **server} if SERVER_CONFIGS[agent].has_type_key else server


def _digest(value: Any) -> str:
    from json import dumps

    return digest(dumps(value, sort_keys=True).encode())


def _check_rest_unchanged(
    file_format: ServerFileFormat, before: str, after: str, name: str
) -> None:
    """Refuse an edit that would change anything beside the entry."""
    if file_format.other_entries(before, name) != file_format.other_entries(after, name):
        raise MalformedFileError(1, "it is written in a way that cannot be edited without a loss")


@contextmanager
def _errors_name_file(path: str) -> Generator[None]:
    """Around work on a file: what is malformed becomes an error that names it."""
    try:
        yield
    except MalformedFileError as failure:
        raise _unreadable_config(path, f"line {failure.line}: {failure.problem}") from failure


def _unreadable_config(path: str, reason: str) -> FormatError:
    return FormatError(
        f"{display_path(path)} cannot be read ({reason}); nothing was changed.",
        suggestion=Suggestion("ask_human", f"Mend {display_path(path)}, or leave its agent out."),
        details={"path": display_path(path)},
    )
