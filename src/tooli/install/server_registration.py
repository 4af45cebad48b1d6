"""Register the MCP server of an app in the settings files of agents.

`plan_server` and `plan_server_removal` plan the change of one file. `ServerRecords` stores digests
of the written entries in the user's state folder. They cannot be stored in the settings files,
because some agents reject unknown keys.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from contextlib import contextmanager
from shutil import which

from tooli.core import Record
from tooli.core.agent_hosts import ARGUMENTS, ARGV, NAME, PROGRAM, server_settings
from tooli.errors import FormatError, InputError, Suggestion
from tooli.execution.interpreter import module_argv
from tooli.install.file_changes import (
    FileChange,
    InstallStep,
    digest,
    display_path,
    parent_folders,
    read_file,
    resolve_path,
    single_change,
    write_atomically,
)
from tooli.install.jsonc import MalformedFileError
from tooli.install.server_formats import SERVER_FORMATS
from tooli.storage.state_files import get_state_dir, make_private_folder
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from importlib.machinery import ModuleSpec

    from tooli.core.protocols import JsonObject
    from tooli.install.server_formats import ServerFileFormat


class AgentPath(Record):
    """A path, the agents that read it, and the folder of the project or user that contains it."""

    path: str
    agent: str
    root: str


class WrittenEntry(Record):
    """A record of the entry that we wrote for a server. The fields are keys in installed.json."""

    digest: str  # of the entry
    text: str = ""  # the inserted text, for removal
    file: bool = False  # True if we created the file
    folders: int = 0  # how many parent folders we created
    container: bool = False  # True if we created the object that holds the servers


_RULES = "rules"
"""The key in installed.json for the records of permission rules. All other keys are paths."""


class ServerRecords:
    """The records of all entries that we wrote, by file and server (installed.json)."""

    def __init__(self) -> None:
        self.path = os.path.join(os.path.realpath(get_state_dir()), "installed.json")
        data = None
        try:
            with open(self.path, "rb") as file:
                data = json.loads(file.read())
        except (OSError, ValueError):
            pass  # without records, an entry is recognized by its content
        self._data: JsonObject = data if is_object(data) else {}

    def get(self, file: str, server: str) -> WrittenEntry | None:
        """Return the record of a server's entry, or None."""
        return _parse_entry(self._entries(file).get(server))

    def digests(self, file: str, server: str) -> set[str]:
        """Return the digests of a server's entry that `mcp add` or the rules have written."""
        recorded = self.get(file, server)
        with_rules = str(self.get_rules(file, server).get("server") or "")
        return {recorded.digest if recorded else "", with_rules} - {""}

    def creation_record(self, file: str) -> WrittenEntry:
        """Return a record that says whether we created the file, its folders and the container.

        We may have created them for another app. They are deleted with the last entry.
        """
        known = [_parse_entry(entry) for entry in self._entries(file).values()]
        rules = [_parse_entry({"digest": "", **entry}) for entry in self._rules(file).values()]
        written = [entry for entry in (*known, *rules) if entry]
        return WrittenEntry(
            "",
            file=any([entry.file for entry in written]),
            folders=max([entry.folders for entry in written], default=0),
            container=any([entry.container for entry in written]),
        )

    def set(self, file: str, server: str, entry: WrittenEntry | None) -> None:
        """Record an entry. If it is None, delete the record of the server."""
        created = self.creation_record(file)
        entries = dict(self._entries(file))
        entries.pop(server, None)
        if entry is not None:
            fields = WrittenEntry.__match_args__
            entries[server] = {name: getattr(entry, name) for name in fields}
        self._data.pop(file, None)
        if entries:
            self._data[file] = entries
        self._keep_creation(file, created)

    def get_rules(self, file: str, server: str) -> JsonObject:
        """Return the record of the permission rules that we wrote, or an empty one."""
        rules = self._rules(file).get(server)
        return rules if is_object(rules) else {}

    def set_rules(self, file: str, server: str, record: JsonObject | None) -> None:
        """Record the permission rules in a file. If it is None, delete the record."""
        created = self.creation_record(file)
        rules = {**self._rules(file)}
        rules.pop(server, None)
        if record is not None:
            rules[server] = record
        files = {**self._entries(_RULES), file: rules}
        self._data[_RULES] = {name: entries for name, entries in files.items() if entries}
        if not self._data[_RULES]:
            del self._data[_RULES]
        self._keep_creation(file, created)

    def save(self) -> bool:
        """Write the records; return False if that fails."""
        try:
            if not self._data:
                if os.path.exists(self.path):
                    os.unlink(self.path)
                return True
            make_private_folder(os.path.dirname(self.path))
            data = (json.dumps(self._data, indent=1) + "\n").encode()
            write_atomically(self.path, data, 0o600)
        except OSError:
            return False
        return True

    def _keep_creation(self, file: str, created: WrittenEntry) -> None:
        """Keep in another record of the file that we created it: the last one deletes it."""
        others = [one for one in self._entries(file).values() if is_object(one)]
        for record in [*others, *self._rules(file).values()][:1]:
            record["file"] = record.get("file") is True or created.file
            record["folders"] = max(record.get("folders") or 0, created.folders)
            record["container"] = record.get("container") is True or created.container

    def _rules(self, file: str) -> dict[str, JsonObject]:
        rules = self._entries(_RULES).get(file)
        found = rules.items() if is_object(rules) else ()
        return {server: record for server, record in found if is_object(record)}

    def _entries(self, file: str) -> JsonObject:
        entries = self._data.get(file)
        return entries if is_object(entries) else {}


def _parse_entry(data: object) -> WrittenEntry | None:
    if not is_object(data) or not isinstance(data.get("digest"), str):
        return None
    folders = data.get("folders")
    return WrittenEntry(
        data["digest"],
        str(data.get("text") or ""),
        data.get("file") is True,
        folders if isinstance(folders, int) else 0,
        data.get("container") is True,
    )


# ------------------------------------------------------------------ plans


class ServerPlan(Record):
    """An install step, and the record to store when it is applied."""

    step: InstallStep
    file: str
    written_entry: WrittenEntry | None


def plan_server(
    agent_path: AgentPath, name: str, command: Sequence[str], records: ServerRecords
) -> ServerPlan:
    """Plan the registration of a server that `command` starts."""
    file, before, text, file_format = _open_config(agent_path)
    entry = _server_entry(agent_path.agent, name, command)
    recorded = records.get(file, name)
    with errors_name_file(agent_path.path):
        found = file_format.get_entry(text, name)
        entry.update(_rules_in(agent_path.agent, found))
        if found == entry:
            found_digest = server_digest(agent_path.agent, found)
            known_entry = (recorded or WrittenEntry("")).replace(digest=found_digest)
            step = InstallStep(agent_path.path, agent_path.agent, "current", "current")
            return ServerPlan(step, file, known_entry)
        if found is None:
            after, inserted = file_format.insert_entry(text, name, entry)
        else:
            recorded_text = recorded.text if recorded else ""
            after, inserted = file_format.replace_entry(text, name, entry, recorded_text)
        _check_rest_unchanged(file_format, text, after, name)
    change = FileChange(file, before, after.encode("utf-8", "surrogateescape"))
    written = _creation_record(file, before, inserted, records, agent_path).replace(
        digest=server_digest(agent_path.agent, entry), text=inserted
    )
    if found is None:
        state, action = "absent", "created" if before is None else "updated"
    else:
        is_recorded = server_digest(agent_path.agent, found) in records.digests(file, name)
        state, action = "stale" if is_recorded else "edited", "updated"
    step = single_change(agent_path.path, agent_path.agent, state, action, change)
    return ServerPlan(step, file, written)


def plan_server_removal(
    agent_path: AgentPath, name: str, command: Sequence[str], records: ServerRecords
) -> ServerPlan:
    """Plan the removal of a server."""
    file, before, text, file_format = _open_config(agent_path)
    recorded = records.get(file, name)
    with errors_name_file(agent_path.path):
        found = file_format.get_entry(text, name)
        if before is None or found is None:
            step = InstallStep(agent_path.path, agent_path.agent, "absent", "absent")
            return ServerPlan(step, file, None)
        after = _remove_server_text(file_format, text, name, recorded)
        _check_rest_unchanged(file_format, text, after, name)
    is_recorded = server_digest(agent_path.agent, found) in records.digests(file, name)
    removes_file = recorded is not None and recorded.file and file_format.is_empty(after)
    data = None if removes_file else after.encode("utf-8", "surrogateescape")
    change = FileChange(file, before, data)
    prune = parent_folders(file, recorded.folders if recorded and removes_file else 0)
    rules = _rules_in(agent_path.agent, found)
    if found == {**_server_entry(agent_path.agent, name, command), **rules}:
        state = "current"
    else:
        state = "stale" if is_recorded else "edited"
    step = single_change(agent_path.path, agent_path.agent, state, "removed", change, prune)
    return ServerPlan(step, file, None)


def _remove_server_text(
    file_format: ServerFileFormat, text: str, name: str, recorded: WrittenEntry | None
) -> str:
    """Return the text without the entry.

    If the inserted text is unchanged, exactly that text is removed.
    """
    if recorded is not None and recorded.text and text.count(recorded.text) == 1:
        after = text.replace(recorded.text, "", 1)
        try:
            rest = file_format.other_entries(after, name)
            if file_format.get_entry(after, name) is None and rest == file_format.other_entries(
                text, name
            ):
                return after
        except MalformedFileError:
            pass  # since a later edit, the rest needs a comma or bracket of the inserted text
    return file_format.remove_entry(
        text, name, container=recorded is not None and recorded.container
    )


def _creation_record(
    file: str, before: bytes | None, inserted: str, records: ServerRecords, agent_path: AgentPath
) -> WrittenEntry:
    """Return a record that says whether tooli creates the file, its folders and the container.

    It also says so if tooli created them earlier, for another app.
    """
    record = records.creation_record(file)
    if before is None:
        return record.replace(file=True, folders=missing_folders(file), container=True)
    container = server_settings(agent_path.agent).container
    adds_container = inserted.lstrip(", \t\r\n{").startswith((f'"{container}"', f"{container}:"))
    return record.replace(container=True) if adds_container else record


def missing_folders(file: str) -> int:
    """Return how many parent folders of a file have to be created."""
    folder, missing = os.path.dirname(file), 0
    while not os.path.isdir(folder) and missing < 3:
        folder, missing = os.path.dirname(folder), missing + 1
    return missing


def _open_config(agent_path: AgentPath) -> tuple[str, bytes | None, str, ServerFileFormat]:
    settings = server_settings(agent_path.agent)
    file = resolve_path(agent_path.path, agent_path.root)
    before = read_file(file)
    try:
        text = (before or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise _unreadable_config(agent_path.path, "it is not UTF-8") from None
    return file, before, text, SERVER_FORMATS[settings.file_format](settings.container)


def _server_entry(agent: str, name: str, command: Sequence[str]) -> JsonObject:
    values = {PROGRAM: command[0], ARGUMENTS: [*command[1:]], ARGV: [*command], NAME: name}
    entry: JsonObject = {}
    for key, value in server_settings(agent).entry:
        if isinstance(value, str):
            value = values.get(value, value)
        entry[key] = [*value] if isinstance(value, tuple) else value
    return entry


def _rules_in(agent: str, entry: object) -> JsonObject:
    """Return the permission rules in an entry, which `export --target permissions` writes."""
    keys = server_settings(agent).rule_keys
    return {key: entry[key] for key in keys if key in entry} if is_object(entry) else {}


def server_digest(agent: str, entry: object) -> str:
    """Return the digest of an entry without its permission rules."""
    if is_object(entry):
        rules = _rules_in(agent, entry)
        entry = {key: value for key, value in entry.items() if key not in rules}
    return digest(json.dumps(entry, sort_keys=True, default=str).encode())


def _check_rest_unchanged(
    file_format: ServerFileFormat, before: str, after: str, name: str
) -> None:
    """Raise MalformedFileError if an edit changes anything but the entry."""
    if file_format.other_entries(before, name) != file_format.other_entries(after, name):
        raise MalformedFileError(1, "an edit would change other settings in it")


@contextmanager
def errors_name_file(path: str) -> Generator[None]:
    """Turn a MalformedFileError into a FormatError that names the file."""
    try:
        yield
    except MalformedFileError as failure:
        raise _unreadable_config(path, f"line {failure.line}: {failure.problem}") from failure


def _unreadable_config(path: str, reason: str) -> FormatError:
    return FormatError(
        f"Cannot edit {display_path(path)} ({reason}). Nothing was changed.",
        suggestion=Suggestion(
            "ask_human", f"Fix {display_path(path)}, or name other agents with --agent."
        ),
        details={"path": display_path(path)},
    )


# ------------------------------------------------------------------ start the server

SERVE_ARGV = ("mcp", "serve", "--transport", "stdio")


def server_argv(
    name: str, command: str | None = None, serve_argv: Sequence[str] = SERVE_ARGV
) -> tuple[str, ...]:
    """Return the argv of an app's MCP server. `command` overrides how the app is started."""
    return (*(split_command(command) if command is not None else program_argv(name)), *serve_argv)


def program_argv(name: str) -> tuple[str, ...]:
    """Return an argv that starts the running program from any folder.

    A module or a script is started with the interpreter. It is not imported from the folder in
    which the agent starts it. A program on the PATH is started by its name. Any other program, and
    one in a virtual environment, is started by its full path.
    """
    spec: ModuleSpec | None = getattr(sys.modules.get("__main__"), "__spec__", None)
    argv0 = sys.argv[0] if sys.argv else ""
    if spec is not None and spec.name and spec.name != "__main__":
        return module_argv(spec.name.removesuffix(".__main__"), _module_folder(spec))
    is_archive_or_folder = spec is not None and os.path.exists(argv0)
    if is_archive_or_folder or (argv0.endswith((".py", ".pyw")) and os.path.isfile(argv0)):
        return (sys.executable, os.path.abspath(argv0))
    if getattr(sys, "frozen", False):  # a program with its own interpreter, as PyInstaller makes
        return (sys.executable,)
    program_name = os.path.basename(argv0)
    found = which(program_name) if program_name not in ("", "-c", "-") else None
    # A name without a folder was found on the PATH, never in the current folder.
    here = os.path.abspath(argv0) if os.path.dirname(argv0) else ""
    if found is None:
        if program_name not in ("", "-c", "-") and os.path.isfile(here):
            return (here,)
        found, program_name = which(name), name
        if found is None:
            raise _unknown_program(name)
    elif os.path.isfile(here) and os.path.realpath(here) != os.path.realpath(found):
        return (here,)  # the PATH has another program of that name
    return (os.path.abspath(found),) if _is_in_virtualenv(found) else (program_name,)


def _module_folder(spec: ModuleSpec) -> str | None:
    """Return the folder of the running module, if Python found it only in the current folder.

    `python -m` puts the folder in which it is started at the beginning of `sys.path`.
    """
    folder = os.path.abspath(spec.origin or "")
    for _ in spec.name.split("."):
        folder = os.path.dirname(folder)
    entries = [os.path.realpath(entry) for entry in sys.path]
    is_only_first = entries[:1] == [os.path.realpath(folder)] and entries[0] not in entries[1:]
    is_current_folder_excluded: bool = getattr(sys.flags, "safe_path", False)
    return folder if is_only_first and not is_current_folder_excluded else None


def _unknown_program(name: str) -> InputError:
    return InputError(
        f"The command that starts {name} is unknown: there is no such program on the PATH.",
        field="command",
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Pass it with --command, such as --command 'uvx mytool'.",
            applicability="has_placeholders",
        ),
    )


def _is_in_virtualenv(path: str) -> bool:
    """True if a program is in the virtual environment of this interpreter."""
    if sys.prefix == sys.base_prefix:
        return False
    inside = os.path.join(os.path.abspath(sys.prefix), "")
    return os.path.abspath(path).startswith(inside)


def split_command(command: str) -> list[str]:
    """Return the words of `--command`; raise InputError if there are none."""
    try:
        argv = shlex.split(command, posix=os.name != "nt")
    except ValueError as error:
        raise InputError(f"--command: {error}", field="command") from None
    if not argv:
        raise InputError(
            "--command is empty. Pass the command that starts the app.", field="command"
        )
    return argv
