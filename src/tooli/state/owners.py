"""Owners: which process does something, told so that another one can see whether it still lives.

On Linux an owner is known for certain: a number is given to another process only after the
first one's end, and that one has started later. Elsewhere its number is all there is, so a
second opinion is needed there: how long ago it was.
"""

from __future__ import annotations

import os

_known: dict[int, str] = {}


def this_process() -> str:
    """The running process: `boot:namespace:number:start`, with nothing where nobody can tell."""
    number = os.getpid()
    if number not in _known:
        _known.clear()  # a fork: the parent's name is not ours
        started = f"{boot().replace('-', '')}:{_namespace()}"
        _known[number] = f"{started}:{number}:{_start_of(number)[1]}"
    return _known[number]


def is_alive(owner: str) -> bool | None:
    """Whether a process still runs; None where that cannot be seen from here."""
    ours = this_process()
    if owner == ours:
        return True
    boot, namespace, number, start = _parts(owner)
    here = _parts(ours)
    if not number.isdigit() or (boot, namespace) != here[:2]:
        return None
    if start:
        state, found = _start_of(int(number))
        return found == start and state not in ("Z", "X")
    return _answers(int(number))


def is_of_this_boot(owner: str) -> bool:
    """Whether it was started since this machine was; only then can it run here."""
    return _parts(owner)[0] == _parts(this_process())[0]


def is_of_some_boot(owner: str) -> bool:
    """Whether it is told on which machine it runs: elsewhere its number may be anybody's."""
    return bool(_parts(owner)[0])


def is_certain(owner: str) -> bool:
    """Whether `is_alive` knows of it by more than a number, which others are given later."""
    return owner == this_process() or bool(_parts(owner)[3])


def _parts(owner: str) -> tuple[str, str, str, str]:
    boot, namespace, number, start = [*owner.split(":"), "", "", "", ""][:4]
    return boot, namespace, number, start


def boot() -> str:
    """What tells one start of this machine from another, and from other machines; else empty."""
    return _text("/proc/sys/kernel/random/boot_id").strip()


def _namespace() -> str:
    """Containers of one machine count their processes apart."""
    try:
        return "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))
    except OSError:
        return ""


def _start_of(number: int) -> tuple[str, str]:
    """The state of a process, and when it was started; two empty texts where there is none."""
    said = _text(f"/proc/{number}/stat")
    fields = said[said.rfind(")") + 2 :].split()  # a name may hold anything, brackets as well
    return (fields[0], fields[19]) if len(fields) > 19 else ("", "")


def _text(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(descriptor, 4096).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def _answers(number: int) -> bool | None:
    if os.name == "nt":  # there a signal of 0 is Ctrl-C
        return None
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # somebody else's
    return True
