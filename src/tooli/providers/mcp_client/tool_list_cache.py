"""The lists of tools of MCP servers on disk, so that help and lists start no server.

A list belongs to one command or URL, with its folder, variables and headers. It is used for a day,
as long as the files that the command names are the same. Each connection reads the list again, so
an old list is corrected by the first call.
"""

from __future__ import annotations

import os
from hashlib import sha256
from json import dumps, loads
from time import time
from typing import Any

from tooli.core import Record
from tooli.errors import InputError
from tooli.providers.mcp_client.server_session import HANDSHAKE_VERSIONS, STATELESS_VERSION
from tooli.storage.state_files import (
    UnusableFile,
    check_private_folder,
    delete_own_files,
    get_state_dir,
    make_private_folder,
    read_regular_file,
    remove_file,
    write_private_file,
)
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tooli.core.protocols import JsonObject

MAX_AGE_SECONDS = 24 * 3600.0
MAX_LIST_BYTES = 16 << 20
_FORMAT = 1
_SUFFIX = ".json"
_DELETE_AFTER_SECONDS = 60 * 24 * 3600.0


class ToolList(Record):
    """The tools of a server, as it describes them, and the version of the protocol."""

    tools: Sequence[JsonObject]
    version: str
    server: Mapping[str, object] = {}


class ToolListCache:
    """The list of one server on disk.

    Args:
        identity: What the list depends on; only its digest is stored.
        files: The files that the command names. If one changes, the list is read again.
    """

    def __init__(self, identity: object, files: Sequence[str]) -> None:
        self._digest = sha256(dumps([_FORMAT, identity]).encode()).hexdigest()[:40]
        self._files = files

    def _path(self) -> str | None:
        try:
            return os.path.join(get_state_dir(), "mcp-tools", self._digest + _SUFFIX)
        except InputError:  # the state folder cannot be used
            return None

    def load(self) -> ToolList | None:
        """Return the list; None if there is none, or it may be out of date."""
        path = self._path()
        if path is None:
            return None
        try:
            check_private_folder(os.path.dirname(path))
            stored: Any = loads(read_regular_file(path, MAX_LIST_BYTES)[0])
        except (OSError, UnusableFile, ValueError, RecursionError):
            return None
        if not is_object(stored) or stored.get("files") != self._fingerprint():
            return None
        made, tools, server = stored.get("made"), stored.get("tools"), stored.get("server")
        if not isinstance(made, (int, float)) or not -60 < time() - made < MAX_AGE_SECONDS:
            return None
        version = stored.get("version")
        is_known = version == STATELESS_VERSION or version in HANDSHAKE_VERSIONS
        if (
            not isinstance(version, str)
            or not is_known
            or not is_list(tools)
            or not all(map(is_object, tools))
        ):
            return None
        return ToolList(tools, version, server if is_object(server) else {})

    def save(self, found: ToolList) -> None:
        """Store a list. If that fails, the next process asks the server again."""
        path = self._path()
        if path is None:
            return
        stored = {
            "made": time(),
            "version": found.version,
            "server": found.server,
            "files": self._fingerprint(),
            "tools": found.tools,
        }
        data = dumps(stored, separators=(",", ":")).encode("ascii")
        temporary = f"{path}.{os.getpid()}-{os.urandom(4).hex()}"
        try:
            folder = os.path.dirname(path)
            make_private_folder(folder)
            check_private_folder(folder)
            if len(data) > MAX_LIST_BYTES:
                return
            write_private_file(temporary, data)
            os.replace(temporary, path)
            limit = time() - _DELETE_AFTER_SECONDS
            delete_own_files(folder, lambda _, file: file.st_mtime < limit)
        except OSError:
            remove_file(temporary)

    def forget(self) -> None:
        """Delete the list."""
        path = self._path()
        if path is not None:
            remove_file(path)

    def _fingerprint(self) -> list[Any]:
        """Return the time and the size of each file of the command."""
        found: list[Any] = []
        for path in self._files:
            try:
                status = os.stat(path)
            except OSError:
                continue
            found.append([path, status.st_mtime_ns, status.st_size, status.st_ino])
        return found
