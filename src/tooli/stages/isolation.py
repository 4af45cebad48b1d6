"""Commands that the kernel holds: in a process of their own, behind walls."""

from __future__ import annotations

import os

from tooli.contract.capabilities import Allowance
from tooli.enforce.allowances import bounds_of, declared_for, meet
from tooli.enforce.kernel import NoWalls, machine
from tooli.enforce.walls import Walls, look_for_means, refusal

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from tooli.call.model import Call, Outcome, Runner, Stage
    from tooli.contract.tool import Tool


def isolate(house: Any, required: bool) -> Stage:
    """The stage for an app's commands: where isolation is required, it is that or nothing."""

    def isolated(call: Call) -> Generator[Call, Outcome, Outcome]:
        """Put walls around the function: what it declares is let in, and nothing else."""
        means = look_for_means()
        missing, bubble = list(means.missing), None
        if missing and not means.nested:
            bubble = _find_bubble(call.tool, house, missing)
        if missing and bubble is None:
            if required:
                raise refusal(call.tool.name, missing)
            call.warnings.append(f"not isolated as wanted: {'; '.join(missing)}")
            if means.level == "none" or means.nested:
                return (yield call)
        if not house.governed:  # calls from behind the walls cannot look it up
            from tooli.config.policy import tighten

            tighten(house)
        allowance = held_to(call.tool, house)
        ground = Ground(allowance)
        try:
            walls = Walls(call.runner, allowance, required=required, room=ground.room)
            runner = walls if bubble is None else bubble(walls, means.seccomp)
            return (yield call.replace(runner=runner))
        finally:
            ground.clear()

    return isolated


def _find_bubble(
    tool: Tool, house: Any, missing: list[str]
) -> Callable[[Walls, bool], Runner] | None:
    """bubblewrap in Landlock's place, and how it finds the app; or one more reason why not."""
    from tooli.enforce.bubble import Bubble, entry_of, find_bubblewrap

    try:
        machine()
        program = find_bubblewrap()
        if program is not None:
            entry = entry_of(house, tool)
            return lambda walls, filters: Bubble(program, entry, walls, filters)
        missing.append("there is no bubblewrap (bwrap)")
    except NoWalls as reason:
        if str(reason) not in missing:
            missing.append(str(reason))
    return None


def held_to(tool: Tool, house: Any) -> Allowance:
    """What a command may touch; one that declares nothing may do nothing but compute.

    What the owner of the machine denies is denied to both: Python's own needs end there, too.
    """
    declared, bounds = declared_for(tool, house) or Allowance(), bounds_of(house)
    return declared if bounds is None else meet(declared, bounds)


# ------------------------------------------------------------------ what it finds there

_ROOM = "tooli-room-"
_swept: set[str] = set()  # folders that were looked through for rooms of the dead


class Ground:
    """What an isolated call needs to find: a folder for what is temporary, and places to write.

    The kernel gives rights on what exists. A declared place that does not is made first, a file
    where its name has an ending, else a folder. It stays, even empty: another call may be about to
    write there, and its right is on this very file.
    """

    def __init__(self, allowance: Allowance) -> None:
        self.room, self._lock = _make_room()
        for place in allowance.writes or ():
            _make(place)

    def clear(self) -> None:
        """Take the room away."""
        _remove(self.room)
        os.close(self._lock)


def _make(place: str) -> None:
    if os.path.lexists(place):
        return
    try:
        if os.path.splitext(place)[1]:
            os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        else:
            os.makedirs(place, exist_ok=True)
    except OSError:  # then nobody can write there, and the command will say so
        pass


def _make_room() -> tuple[str, int]:
    """A new folder that nobody else can look into, and a lock on it that ends with this process.

    `tempfile` would take longer to load.
    """
    said = os.environ.get("TMPDIR")
    wrong = ""
    for home in (*([said] if said else []), "/tmp", "/var/tmp"):
        home = os.path.realpath(home)
        _sweep(home)
        room = os.path.join(home, f"{_ROOM}{os.urandom(8).hex()}")
        try:
            os.mkdir(room, 0o700)
            return room, _lock(room)
        except OSError as failure:
            wrong = failure.strerror or str(failure)
    from tooli.errors import Suggestion, TemporaryError

    raise TemporaryError(
        f"There is no room for temporary files: {wrong}.",
        suggestion=Suggestion("ask_human", "Let TMPDIR name a folder that can be written to."),
    )


def _lock(room: str) -> int:
    """Show that somebody is in; whoever sweeps between the two lines finds a room for nobody.

    Raises OSError where that has happened.
    """
    from fcntl import LOCK_NB, LOCK_SH, flock

    place = os.open(room, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        flock(place, LOCK_SH | LOCK_NB)
    except BlockingIOError:
        os.close(place)
        raise
    except OSError:  # no locks here: then nobody sweeps, either
        pass
    if os.fstat(place).st_nlink == 0 or not os.path.isdir(room):
        os.close(place)
        raise FileNotFoundError(0, "it was swept away", room)
    return place


def _sweep(home: str) -> None:
    """Remove what calls have left that were killed: once in the life of a process."""
    if home in _swept:
        return
    _swept.add(home)
    try:
        names = [name for name in os.listdir(home) if name.startswith(_ROOM)]
    except OSError:
        return
    from fcntl import LOCK_EX, LOCK_NB, flock

    for name in names:
        room = os.path.join(home, name)
        try:
            place = os.open(room, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if os.fstat(place).st_uid == os.geteuid():
                flock(place, LOCK_EX | LOCK_NB)
                _remove(room)
        except OSError:  # somebody is in
            pass
        finally:
            os.close(place)


def _remove(room: str) -> None:
    try:
        os.rmdir(room)
    except OSError:
        from shutil import rmtree

        rmtree(room, ignore_errors=True)
