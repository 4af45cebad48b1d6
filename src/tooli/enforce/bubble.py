"""Bubble: bubblewrap, where there is no Landlock: a fresh interpreter that sees what is declared.

    the process of a call ──exec──▶ bwrap ──▶ enforce/inside.py: loads the app, runs the tool
                                                │
    caller ◀──────────── the same frames ◀──────┘

What is not bound into its file system is not there, names and sizes included. The app must be
found again from its file or module, and the arguments must be picklable.
"""

from __future__ import annotations

import os
import sys

from tooli.call.model import Runner
from tooli.contract.record import Record
from tooli.enforce import provisions
from tooli.enforce.kernel import NoWalls
from tooli.enforce.landlock import is_below

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tooli.call.model import Call
    from tooli.contract.tool import Tool
    from tooli.enforce.walls import Walls

FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin", "/run/wrappers/bin", "/run/current-system/sw/bin")
"""Where the program is looked for: what the caller puts in its PATH holds nobody."""


class Entry(Record):
    """Where an app is to be found again: a file or a module, and its name in there."""

    file: str | None
    module: str | None
    attribute: str


def find_bubblewrap() -> str | None:
    """The program, where there is one; whether it works is seen where it is needed."""
    for folder in FOLDERS:
        program = os.path.join(folder, "bwrap")
        if os.access(program, os.X_OK):
            return program
    return None


def _try(program: str) -> None:
    """Raise NoWalls where the program does not work: containers often forbid what it needs.

    This is the process of a call: nobody else waits meanwhile.
    """
    words = [program, "--ro-bind", "/", "/", "--unshare-all", "--", "/bin/true"]
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    _, status = os.waitpid(os.posix_spawn(program, words, {}, file_actions=quiet), 0)
    if status:
        raise NoWalls("bubblewrap (bwrap) is there, but does not work")


def entry_of(house: Any, tool: Tool) -> Entry:
    """How the app of a tool is loaded again; raises NoWalls where that cannot be."""
    if tool.handles:
        raise NoWalls("inputs and outputs that the caller names take Landlock")
    if hasattr(tool.fn, "tooli_stands_in"):  # the app that is loaded anew has the function itself
        raise NoWalls("a plan, made or applied, takes Landlock")
    made_in: dict[str, Any] = house.root.made_in
    names = [n for n, v in made_in.items() if getattr(v, "_house", None) is house.root]
    if not names:
        raise NoWalls("bubblewrap loads the app anew, and it is no name of its module")
    spec = made_in.get("__spec__")
    if spec is not None and made_in.get("__name__") != "__main__":
        return Entry(None, spec.name, names[0])
    file = made_in.get("__file__")
    if not file or not os.path.isfile(file):
        raise NoWalls("bubblewrap loads the app anew, and it is in no file")
    return Entry(os.path.abspath(file), None, names[0])


class Bubble(Runner):
    """Runs a function in a bubble: the process of the call becomes that."""

    alone = True

    def __init__(self, program: str, entry: Entry, walls: Walls, filters: bool) -> None:
        super().__init__(walls)
        assert walls.room is not None
        self.program = program
        self.entry = entry
        self.walls = walls  # what there is without bubblewrap, where that is better than nothing
        self.allowance = walls.allowance
        self.room = walls.room
        self.filters = filters  # whether system calls are filtered inside, too
        self._made_in = os.getpid()

    def run(self, call: Call) -> Any:
        """Comes back only where there is no bubble, and that is no matter: else who takes this
        process's place sends what the function gives."""
        self._enter(call)
        return self.walls.run(call)

    async def arun(self, call: Call) -> Any:
        """The same: a process of its own has no loop yet."""
        self._enter(call)
        return await self.walls.arun(call)

    def _enter(self, call: Call) -> None:
        if os.getpid() == self._made_in:
            raise RuntimeError("a bubble takes the place of a call's own process, not of the app's")
        from tooli.enforce.walls import kept_variables, refusal

        try:
            letter = self._letter(call)
            _try(self.program)
            for number in [int(name) for name in os.listdir("/proc/self/fd")]:
                _pass_on(number, number in (0, 1, 2, letter, *self.keeps))
            left = kept_variables(self.allowance, self.room)  # bwrap itself is seen inside
            os.execve(self.program, self._words(letter), left)
        except (NoWalls, OSError, ValueError) as broken:
            if self.walls.required:
                raise refusal(call.tool.name, (str(broken),)) from None
            call.warnings.append(f"not isolated as wanted: {broken}")
            self.walls.keeps = self.keeps

    def _words(self, letter: int) -> list[str]:
        start = "from tooli.enforce.inside import main; main()"
        return [self.program, *self._binds(), "--", sys.executable, "-c", start, str(letter)]

    def _letter(self, call: Call) -> int:
        """What the interpreter inside has to know, in a file that only it has.

        The arguments are a letter in the letter: their classes may be the app's own, and can be
        read only when that is loaded.
        """
        from tooli.call.context import Context
        from tooli.enforce.frames import dumps

        injected = [name for name, value in call.arguments.items() if isinstance(value, Context)]
        arguments = {n: v for n, v in call.arguments.items() if n not in injected}
        try:
            given = dumps((arguments, call.caller, call.options, call.policy, call.approved))
        except Exception as failure:
            raise NoWalls(f"the arguments cannot be sent into a bubble: {failure}") from None
        data = dumps(
            {
                "path": [os.path.abspath(entry) for entry in sys.path],
                "entry": self.entry,
                "tool": call.tool.key,
                "call": given,
                "meta": None if call.meta is None else dict(call.meta),
                "context": injected,
                "peer": call.peer is not None,
                "sent": [
                    n for n in ("stdout", "stderr") if type(getattr(sys, n)).__name__ == "Sent"
                ],
                "keeps": self.keeps,
                "room": self.room,
                "allowance": self.allowance,
                "filters": self.filters,
            }
        )
        letter = os.memfd_create("tooli")
        os.write(letter, data)
        os.lseek(letter, 0, 0)
        return letter

    def _binds(self) -> list[str]:
        """The file system inside, and the rest of what is told to bwrap."""
        allowance = self.allowance
        shown: dict[str, str] = {}
        for place in (*provisions.readable(allowance.net)[0], *_interpreter(self.entry)):
            shown[os.path.abspath(place)] = "--ro-bind-try"
        for place in provisions.programs() if allowance.spawns else ():
            shown[os.path.abspath(place)] = "--ro-bind-try"
        for place in ("/",) if allowance.reads is None else allowance.reads:
            shown[place] = "--ro-bind-try"
        for places in (allowance.writes, allowance.deletes):
            for place in ("/",) if places is None else places:
                shown[place] = "--bind-try"
        words = ["--unshare-all", "--die-with-parent", "--new-session"]
        words += ["--share-net"] * allowance.net
        open_ones = [place for place, how in shown.items() if how == "--bind-try"]
        for place in sorted(shown, key=len):  # what is further up first: it would cover the rest
            above = open_ones if shown[place] == "--bind-try" else shown
            if any([is_below(place, one) for one in above if one != place]):
                continue  # it is there already, and may be a link, which nothing can be put on
            if not place.startswith(("/proc/", "/dev/", "/sys/")):
                words += [shown[place], place, place]
        words += ["--proc", "/proc", "--dev", "/dev", "--bind", self.room, self.room]
        for place in allowance.denied:
            if os.path.isdir(place):
                words += ["--tmpfs", place]
            elif os.path.exists(place):
                words += ["--ro-bind", os.devnull, place]
        return [*words, "--chdir", self._folder(shown)]

    def _folder(self, shown: Iterable[str]) -> str:
        here = os.getcwd()
        return here if any([is_below(here, place) for place in shown]) else self.room


def _pass_on(number: int, whether: bool) -> None:
    """Let a descriptor be inherited, or not: what bwrap has open can be reached from inside."""
    try:
        os.set_inheritable(number, whether)
    except OSError:  # the one that listed them
        pass


def _interpreter(entry: Entry) -> Iterable[str]:
    """The program that runs Python, by every link on the way to it; and the file of the app."""
    place = sys.executable
    for _ in range(20):
        yield place
        if not os.path.islink(place):
            break
        place = os.path.normpath(os.path.join(os.path.dirname(place), os.readlink(place)))
    libraries = os.path.join(sys.base_prefix, "lib")
    try:
        for name in os.listdir(libraries):
            if name.startswith("libpython"):
                yield os.path.join(libraries, name)
    except OSError:
        pass
    if entry.file is not None:
        yield entry.file
