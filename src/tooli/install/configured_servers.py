"""Read the MCP servers that are registered in the settings of agents. Nothing is started.

Values of variables and headers may be credentials. Only their names are read.
"""

from __future__ import annotations

from tooli.core import Record
from tooli.core.agent_hosts import SERVER_HOSTS, server_settings
from tooli.errors import ToolError
from tooli.install.agent_install import server_config_paths
from tooli.install.file_changes import display_path, read_file, resolve_path
from tooli.install.jsonc import MalformedFileError
from tooli.install.server_formats import SERVER_FORMATS
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.install.server_registration import AgentPath

MAX_SETTINGS_BYTES = 32 << 20
_COMMAND_KEYS, _URL_KEYS = ("command", "cmd"), ("url", "httpUrl", "serverUrl", "uri")
_VARIABLE_KEYS = ("env", "envs", "environment")
_HEADER_KEYS = ("headers", "http_headers", "env_http_headers")


class ConfiguredServer(Record):
    """An MCP server in the settings of an agent."""

    name: str
    agent: str
    scope: str  # "project" or "user"
    path: str  # of the settings
    command: tuple[str, ...] = ()
    url: str = ""
    variables: tuple[str, ...] = ()  # names
    headers: tuple[str, ...] = ()  # names


def read_configured_servers() -> tuple[list[ConfiguredServer], list[str]]:
    """Return the servers in the settings of all agents, and what could not be read."""
    servers: list[ConfiguredServer] = []
    problems: list[str] = []
    for scope in ("project", "user"):
        for at in server_config_paths(SERVER_HOSTS, user=scope == "user"):
            try:
                servers += _read_servers(at, scope)
            except (ToolError, OSError, UnicodeDecodeError) as failure:
                problems.append(f"{display_path(at.path)}: {failure}")
            except MalformedFileError as failure:
                problems.append(f"{display_path(at.path)}: line {failure.line}: {failure.problem}")
    return servers, problems


def _read_servers(at: AgentPath, scope: str) -> list[ConfiguredServer]:
    data = read_file(resolve_path(at.path, at.root))
    if data is None or len(data) > MAX_SETTINGS_BYTES:
        return []
    settings = server_settings(at.agent)
    file_format = SERVER_FORMATS[settings.file_format](settings.container)
    found: list[ConfiguredServer] = []
    for name, entry in file_format.entries(data.decode("utf-8")).items():
        server = _parse_entry(str(name), entry, at, scope)
        if server is not None:
            found.append(server)
    return found


def _parse_entry(name: str, entry: object, at: AgentPath, scope: str) -> ConfiguredServer | None:
    """Return the server of an entry; None for an entry that starts and names nothing."""
    if not is_object(entry):
        return None
    command = next((entry[key] for key in _COMMAND_KEYS if entry.get(key)), ())
    words = [command] if isinstance(command, str) else command if is_list(command) else ()
    arguments = entry.get("args")
    words = [*words, *(arguments if words and is_list(arguments) else ())]
    url = next((entry[key] for key in _URL_KEYS if isinstance(entry.get(key), str)), "")
    if not words and not url:
        return None
    return ConfiguredServer(
        name,
        at.agent,
        scope,
        display_path(at.path),
        tuple([str(word) for word in words]),
        str(url),
        _names(entry, _VARIABLE_KEYS),
        _names(entry, _HEADER_KEYS),
    )


def _names(entry: dict[str, object], keys: tuple[str, ...]) -> tuple[str, ...]:
    found = [str(name) for key in keys if is_object(value := entry.get(key)) for name in value]
    return tuple(found)
