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
    from tooli.contract.capabilities import Allowance
    from tooli.contract.tool import Tool

_found: dict[str, str | None] = {}


class Entry(Record):
    """Where an app is to be found again: a file or a module, and its name in there."""

    file: str | None
    module: str | None
    attribute: str


def find_bubblewrap() -> str | None:
    """The program, where there is one that works here; asked once for each PATH."""
    path = os.environ.get("PATH", os.defpath)
    if path not in _found:
        _found[path] = _try(path)
    return _found[path]


def _try(path: str) -> str | None:
    from shutil import which
    from subprocess import DEVNULL, SubprocessError, run

    program = which("bwrap", path=path)
    if program is None:
        return None
    words = [program, "--ro-bind", "/", "/", "--unshare-all", "--", "/bin/true"]
    try:
        done = run(words, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, timeout=10, check=False)
    except (OSError, ValueError, SubprocessError):
        return None
    return program if done.returncode == 0 else None


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

    def __init__(
        self, program: str, entry: Entry, allowance: Allowance, room: str, filters: bool
    ) -> None:
        super().__init__(None)
        self.program = program
        self.entry = entry
        self.allowance = allowance
        self.room = room
        self.filters = filters  # whether system calls are filtered inside, too
        self._made_in = os.getpid()

    def run(self, call: Call) -> Any:
        """Never comes back: what the function gives is sent by who takes this process's place."""
        if os.getpid() == self._made_in:
            raise RuntimeError("a bubble takes the place of a call's own process, not of the app's")
        from tooli.enforce.walls import kept_variables, refusal

        try:
            letter = self._letter(call)
            for number in [int(name) for name in os.listdir("/proc/self/fd")]:
                _pass_on(number, number in (0, 1, 2, letter, *self.keeps))
            left = kept_variables(self.allowance, self.room)  # bwrap itself is seen inside
            os.execve(self.program, self._words(letter), left)
        except (NoWalls, OSError, ValueError) as broken:
            raise refusal(call.tool.name, (str(broken),)) from None

    def _words(self, letter: int) -> list[str]:
        start = "from tooli.enforce.inside import main; main()"
        return [self.program, *self._binds(), "--", sys.executable, "-c", start, str(letter)]

    async def arun(self, call: Call) -> Any:
        """The same: a process of its own has no loop yet."""
        return self.run(call)

    def _letter(self, call: Call) -> int:
        """What the interpreter inside has to know, in a file that only it has."""
        from tooli.call.context import Context
        from tooli.enforce.frames import dumps

        injected = [name for name, value in call.arguments.items() if isinstance(value, Context)]
        arguments = {n: v for n, v in call.arguments.items() if n not in injected}
        said = {
            "path": [os.path.abspath(entry) for entry in sys.path],
            "entry": self.entry,
            "tool": call.tool.key,
            "call": (arguments, call.caller, call.options, call.policy, call.approved),
            "meta": None if call.meta is None else dict(call.meta),
            "context": injected,
            "peer": call.peer is not None,
            "sent": [n for n in ("stdout", "stderr") if type(getattr(sys, n)).__name__ == "Sent"],
            "keeps": self.keeps,
            "room": self.room,
            "allowance": self.allowance,
            "filters": self.filters,
        }
        try:
            data = dumps(said)
        except Exception as failure:
            raise NoWalls(f"the arguments cannot be sent into a bubble: {failure}") from None
        letter = os.memfd_create("tooli")
        os.write(letter, data)
        os.lseek(letter, 0, 0)
        return letter

    def _binds(self) -> list[str]:
        """The file system inside, and the rest of what is told to bwrap."""
        allowance = self.allowance
        shown: dict[str, str] = {}
        for place in (*provisions.readable(allowance.net), *_interpreter(self.entry)):
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
            below = any([is_below(place, one) and place != one for one in open_ones])
            if not below and not place.startswith(("/proc", "/dev", "/sys/")):
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
        yield os.path.dirname(place)
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
