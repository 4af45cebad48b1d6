"""Records: what we wrote into files that are not ours, so that it can be known and undone.

An agent's settings have no room for a digest of ours: some agents refuse a key that they do not
know. So it is kept with the user's state, by file and by server.
"""

from __future__ import annotations

import json
import os

from tooli.contract.jsonable import is_object
from tooli.contract.record import Record
from tooli.state.home import state_home

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


class Written(Record):
    """An entry that we wrote."""

    digest: str  # of what it says
    text: str = ""  # what was inserted, for as long as it stands there as one piece
    file: bool = False  # whether the file was made for it
    folders: int = 0  # and how many folders above it
    container: bool = False  # and what holds it


class Records:
    """Every entry that we wrote, by file and by server."""

    def __init__(self) -> None:
        self.path = os.path.join(state_home(), "installed.json")
        said: Any = None
        try:
            with open(self.path, "rb") as file:
                said = json.loads(file.read())
        except (OSError, ValueError):
            pass  # nothing is known any more; what stands there tells the rest
        self._said: dict[str, Any] = said if is_object(said) else {}

    def of(self, file: str, server: str) -> Written | None:
        """What we wrote there."""
        return _read(self._entries(file).get(server))

    def made(self, file: str) -> Written:
        """What was made for the entries of any app there: the last one to go undoes it."""
        known = [_read(entry) for entry in self._entries(file).values()]
        return Written(
            "",
            file=any([entry.file for entry in known if entry]),
            folders=max([entry.folders for entry in known if entry], default=0),
            container=any([entry.container for entry in known if entry]),
        )

    def keep(self, file: str, server: str, entry: Written | None) -> None:
        """Remember an entry, or forget it."""
        entries = dict(self._entries(file))
        entries.pop(server, None)
        if entry is not None:
            fields = Written.__match_args__
            entries[server] = {name: getattr(entry, name) for name in fields}
        self._said.pop(file, None)
        if entries:
            self._said[file] = entries

    def save(self) -> bool:
        """Write everything down; whether that could be done."""
        from tooli.install.writing import write

        try:
            if not self._said:
                if os.path.exists(self.path):
                    os.unlink(self.path)
                return True
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            write(self.path, (json.dumps(self._said, indent=1) + "\n").encode())
        except OSError:
            return False
        return True

    def _entries(self, file: str) -> dict[str, Any]:
        held = self._said.get(file)
        return held if is_object(held) else {}


def _read(said: Any) -> Written | None:
    if not is_object(said) or not isinstance(said.get("digest"), str):
        return None
    folders = said.get("folders")
    return Written(
        said["digest"],
        str(said.get("text") or ""),
        said.get("file") is True,
        folders if isinstance(folders, int) else 0,
        said.get("container") is True,
    )
