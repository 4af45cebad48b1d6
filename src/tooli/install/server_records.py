"""Records: what we wrote into files that are not ours, so that it can be known and undone.

An agent's settings have no room for a digest of ours: some agents refuse a key that they do not
know. So it is kept with the user's state, by file and by server.
"""

from __future__ import annotations

import json
import os

from tooli.core.record import Record
from tooli.storage.state_files import get_state_dir
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


class WrittenEntry(Record):
    """An entry that we wrote."""

    digest: str  # of what it says
    text: str = ""  # what was inserted, for as long as it stands there as one piece
    file: bool = False  # whether the file was made for it
    folders: int = 0  # and how many folders above it
    container: bool = False  # and what holds it


class ServerRecords:
    """Every entry that we wrote, by file and by server."""

    def __init__(self) -> None:
        self.path = os.path.join(get_state_dir(), "installed.json")
        data: Any = None
        try:
            with open(self.path, "rb") as file:
                data = json.loads(file.read())
        except (OSError, ValueError):
            pass  # nothing is known any more; what stands there tells the rest
        self._data: dict[str, Any] = data if is_object(data) else {}

    def get(self, file: str, server: str) -> WrittenEntry | None:
        """What we wrote there."""
        return _parse_entry(self._entries(file).get(server))

    def creation_record(self, file: str) -> WrittenEntry:
        """What was made for the entries of any app there: the last one to go undoes it."""
        known = [_parse_entry(entry) for entry in self._entries(file).values()]
        return WrittenEntry(
            "",
            file=any([entry.file for entry in known if entry]),
            folders=max([entry.folders for entry in known if entry], default=0),
            container=any([entry.container for entry in known if entry]),
        )

    def set(self, file: str, server: str, entry: WrittenEntry | None) -> None:
        """Remember an entry, or forget it."""
        entries = dict(self._entries(file))
        entries.pop(server, None)
        if entry is not None:
            fields = WrittenEntry.__match_args__
            entries[server] = {name: getattr(entry, name) for name in fields}
        self._data.pop(file, None)
        if entries:
            self._data[file] = entries

    def save(self) -> bool:
        """Write everything down; whether that could be done."""
        from tooli.install.file_transaction import write_atomically

        try:
            if not self._data:
                if os.path.exists(self.path):
                    os.unlink(self.path)
                return True
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            write_atomically(self.path, (json.dumps(self._data, indent=1) + "\n").encode())
        except OSError:
            return False
        return True

    def _entries(self, file: str) -> dict[str, Any]:
        entries = self._data.get(file)
        return entries if is_object(entries) else {}


def _parse_entry(data: Any) -> WrittenEntry | None:
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
