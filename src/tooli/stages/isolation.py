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
            if bubble is not None:
                runner = bubble(allowance, ground.room, means.seccomp)
            else:
                runner = Walls(call.runner, allowance, required=required, room=ground.room)
            return (yield call.replace(runner=runner))
        finally:
            ground.clear()

    return isolated


def _find_bubble(
    tool: Tool, house: Any, missing: list[str]
) -> Callable[[Allowance, str, bool], Runner] | None:
    """bubblewrap in Landlock's place, and how it finds the app; or one more reason why not."""
    from tooli.enforce.bubble import Bubble, entry_of, find_bubblewrap

    try:
        machine()
        program = find_bubblewrap()
        if program is not None:
            entry = entry_of(house, tool)
            return lambda allowance, room, filters: Bubble(program, entry, allowance, room, filters)
        missing.append("there is no bubblewrap (bwrap) that works")
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


class Ground:
    """What an isolated call needs to find: a folder for what is temporary, and places to write.

    The kernel gives rights on what exists. A declared place that does not is made first, a file
    where its name has an ending, else a folder; and it goes again if it stays empty.
    """

    def __init__(self, allowance: Allowance) -> None:
        self._made: list[str] = []
        self.room = _make_room()
        for place in allowance.writes or ():
            self._make(place)

    def _make(self, place: str) -> None:
        if os.path.lexists(place):
            return
        try:
            if os.path.splitext(place)[1]:
                os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            else:
                os.makedirs(place)
            self._made.append(place)
        except OSError:  # then nobody can write there, and the command will say so
            pass

    def clear(self) -> None:
        """Leave nothing behind that the command has not written."""
        try:
            os.rmdir(self.room)
        except OSError:
            from shutil import rmtree

            rmtree(self.room, ignore_errors=True)
        for place in self._made:
            try:
                if not os.path.isdir(place):
                    if os.path.getsize(place) == 0:
                        os.unlink(place)
                else:
                    os.rmdir(place)
            except OSError:  # it is full, or gone
                pass


def _make_room() -> str:
    """A new folder that nobody else can look into; `tempfile` would take longer to load."""
    said = os.environ.get("TMPDIR")
    wrong = ""
    for home in (*([said] if said else []), "/tmp", "/var/tmp"):
        room = os.path.join(os.path.realpath(home), f"tooli-{os.urandom(8).hex()}")
        try:
            os.mkdir(room, 0o700)
            return room
        except OSError as failure:
            wrong = failure.strerror or str(failure)
    from tooli.errors import Suggestion, TemporaryError

    raise TemporaryError(
        f"There is no room for temporary files: {wrong}.",
        suggestion=Suggestion("ask_human", "Let TMPDIR name a folder that can be written to."),
    )
