"""Inside a bubble: a fresh interpreter loads the app again and runs one tool of it.

The letter that it finds says which; what becomes of it is told in the frames of any process of a
call (enforce/offspring.py).
"""

from __future__ import annotations

import os
import sys

from tooli.call.model import Call, Runner

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.contract.capabilities import Allowance
    from tooli.enforce.bubble import Entry

LEVEL = "bwrap"


class Filtered(Runner):
    """Runs the function once the process is as clean as any that is isolated."""

    alone = True

    def __init__(self, allowance: Allowance, room: str, filters: bool) -> None:
        super().__init__()
        self.allowance = allowance
        self.room = room
        self.filters = filters

    def run(self, call: Call) -> Any:
        """What the function gives."""
        from tooli.call.pipeline import invoke
        from tooli.enforce.walls import Means, raise_walls

        raise_walls(self.allowance, Means(0, self.filters), self.keeps, self.room)
        if call.meta is not None:
            call.meta["enforcement"] = LEVEL
        return invoke(call.replace(runner=None))


def main() -> None:
    """Read the letter, run the tool, and end."""
    from tooli.enforce.frames import loads
    from tooli.enforce.offspring import Offspring, Sent

    letter = int(sys.argv[1])
    with os.fdopen(letter, "rb") as file:
        data = file.read()
    head: dict[str, Any] = loads(data)
    sys.path[:] = head["path"]
    data_end, answers = head["keeps"]
    runner = Filtered(head["allowance"], head["room"], head["filters"])
    offspring: Any = None
    try:
        call = _open(head)
        offspring = Offspring(call, runner, data_end, answers, None)
        for name in head["sent"]:
            setattr(sys, name, Sent(name, offspring.send))
        offspring._work()
    except BaseException as failure:
        _tell(data_end, offspring, failure)
    finally:
        os._exit(0)


def _open(head: dict[str, Any]) -> Call:
    """The call that the letter describes."""
    from tooli.call.context import Context
    from tooli.call.peer import Peer

    app = getattr(load(head["entry"]), head["entry"].attribute)
    tool = app.find(head["tool"])
    arguments, caller, options, policy, approved = _read(head["call"], tool.name)
    call = Call(
        tool,
        arguments,
        caller,
        [],
        options,
        policy,
        approved,
        meta=head["meta"],
        peer=Peer() if head["peer"] else None,
    )
    for name in head["context"]:
        arguments[name] = Context(call)
    return call


def _read(given: bytes, name: str) -> Any:
    """The arguments, now that classes of the app's own are there."""
    from tooli.enforce.frames import loads
    from tooli.enforce.walls import refusal

    try:
        return loads(given)
    except Exception as failure:
        reason = f"the arguments cannot be read in a bubble: {failure}"
        raise refusal(name, (reason,)) from None


def load(entry: Entry) -> Any:
    """The module of the app; a script is what it was to those who name it: `__main__`."""
    import importlib
    from importlib.util import module_from_spec, spec_from_file_location

    if entry.module is not None:
        return importlib.import_module(entry.module)
    assert entry.file is not None
    spec = spec_from_file_location("__tooli_main__", entry.file)
    assert spec is not None and spec.loader is not None
    module = sys.modules["__tooli_main__"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["__main__"] = module
    return module


def _tell(data: int, offspring: Any, failure: BaseException) -> None:
    from tooli.enforce.frames import Sender, expect_distrust, pack_error

    if offspring is None:
        expect_distrust()
    Sender(data).send("error", pack_error(failure))
