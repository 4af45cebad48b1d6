"""The audit log: what was dared, refused, approved, as lines that vouch for one another.

    {"seq":7,"prev":"…","time":"…","event":"destructive_run",…,"sum":"…"}
         │        └── the sum of line 6
         └── no number is left out

The sum is over all that stands before it, with a key of the user's where one can be kept. The
file `….head` holds the last number and sum: so lines that were cut off at the end are missed,
too. A line is one write under a lock. What a crash leaves of one stays there, is told by
`audit verify`, and the next line starts on a line of its own.

Who may read the key can write a log that looks whole: the log tells mistakes and tampering by
others, not by whoever it belongs to.
"""

from __future__ import annotations

import os
from time import gmtime, monotonic, sleep, strftime, time

from tooli.call.canonical import digest
from tooli.call.envelope import encode
from tooli.state.home import state_home
from tooli.state.keys import key_file

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.call.model import Call
    from tooli.errors import ToolError

LARGEST, KEPT = 8 << 20, 4
"""Bytes of a log before a new one is begun, and how many old ones are kept."""
LONGEST = 8192
"""Bytes of a line."""
PATIENCE = 5.0
"""Seconds to wait for others to finish their lines."""
SUM = b',"sum":"'
_NUMBER = b'{"seq":'
_SIZE = 16  # bytes of a sum
_KIND, _FILE = 0o170000, 0o100000  # of a mode: what it is of, and a plain file
_VALUE, _WORDS = 200, 500  # characters of an argument, and of what else is told
_HIDDEN = ("password", "passwd", "passphrase", "secret", "token", "api_key", "apikey", "credential")
_places: dict[str, str] = {}


def note(event: str, call: Call, *, must: bool = False, **facts: Any) -> bool:
    """Write down what happens to a call; whether that could be done.

    Where it cannot be written the call gets a warning; under the strict policy, where it `must`
    be, the call is refused with E4061. Under the policy "off" nothing is written.
    """
    if call.policy == "off":
        return True
    try:
        append(place_of(call.tool.app), {"event": event, **about(call), **facts})
    except Exception as failure:  # whatever it is: no outcome is lost for a line about it
        if must and call.policy == "strict":
            raise unwritable(failure) from None
        said = f"the audit log cannot be written: {_reason(failure)}"
        if said not in call.warnings:
            call.warnings.append(said)
        return False
    return True


def note_for(app: str, event: str, **facts: Any) -> bool:
    """The same without a call, as where a human grants what another process asked for."""
    try:
        append(place_of(app), {"event": event, "app": app, **facts, "caller": _process()})
    except OSError:
        return False
    return True


def _reason(failure: Exception) -> str:
    return str(getattr(failure, "strerror", None) or failure)


def unwritable(failure: Exception) -> ToolError:
    """The refusal of a call that may only run on record."""
    from tooli.errors import Suggestion, TemporaryError

    return TemporaryError(
        f"The audit log cannot be written ({_reason(failure)}), "
        "and the policy is strict: nothing was run.",
        code="E4061",
        suggestion=Suggestion(
            "ask_human", "Make room for it, or name another file in the setting audit_log."
        ),
    )


# ------------------------------------------------------------------ where, and what is told


def keep_at(app: str, path: str | None) -> None:
    """Keep an app's log where the configuration says."""
    if path:
        _places[app] = os.path.abspath(os.path.expanduser(path))


def place_of(app: str) -> str:
    """The file of an app's log."""
    said = _places.get(app)
    if said is not None:
        return said
    plain = app.isascii() and app.replace("-", "a").replace("_", "a").isalnum() and len(app) <= 60
    name = app if plain else f"by-{digest(app.encode('utf-8', 'surrogatepass'), 16).hex()}"
    return os.path.join(state_home(), "audit", f"{name}.jsonl")


def about(call: Call) -> dict[str, Any]:
    """What is told of a call: which, with what, by whom; never a secret."""
    from tooli.call.canonical import fingerprint

    tool, caller = call.tool, call.caller
    names = tool.names if tool.model is None else {tool.model[0]}
    shown = {name: _shown(name, call.arguments[name]) for name in call.arguments if name in names}
    told: dict[str, Any] = {"app": tool.app, "tool": tool.id}
    if tool.version is not None:
        told["version"] = tool.version
    who = {
        "surface": caller.surface,
        "name": caller.name,
        "principal": caller.principal,
        "session": caller.session,
    }
    said = {name: _short(value) for name, value in who.items() if value is not None}
    told |= {"call": fingerprint(call), "arguments": shown, "caller": {**said, **_process()}}
    return {**told, "policy": call.policy}


def _process() -> dict[str, int]:
    uid = {"uid": os.getuid()} if hasattr(os, "getuid") else {}
    return {**uid, "pid": os.getpid()}


def _shown(name: str, value: Any) -> Any:
    kind = value.__class__
    if kind in (int, float, bool, type(None)):
        return value
    if hasattr(kind, "reveal") or any([word in name.lower() for word in _HIDDEN]):
        return "(hidden)"
    if hasattr(kind, "__next__") or hasattr(kind, "read"):
        return f"({kind.__name__})"
    from tooli.contract.jsonable import jsonable

    plain = jsonable(value, [])
    text = encode(plain, []).decode("utf-8", "replace")
    return plain if len(text) <= _VALUE else f"{text[:_VALUE]}… ({len(text)} characters)"


def _short(value: Any) -> Any:
    """A fact that is not longer than it has to be."""
    if isinstance(value, str) and len(value) > _WORDS:
        return f"{value[:_WORDS]}…"
    return value


# ------------------------------------------------------------------ writing


def append(path: str, facts: Mapping[str, Any]) -> None:
    """Add a line; an OSError where that cannot be done."""
    _prepare(path)
    key = key_file("audit") or b""
    with Head(path) as head:
        log = open_log(path)
        try:
            size = os.fstat(log).st_size
            last, torn = _last_line(log, size, key)
            seq, prev, after = _follow(head.read(key), last, size)
            line = sealed({"seq": seq, "prev": prev, **_dated(facts, after)}, key)
            if size and size + len(line) + 2 > LARGEST:
                os.close(log)
                log = -1
                _rotate(path)
                log, size, torn = open_log(path), 0, False
            _write(log, b"\n" + line if torn else line, size)
        finally:
            if log >= 0:
                os.close(log)
        head.write(seq, line[-2 * _SIZE - 3 : -3].decode(), key)


def _prepare(path: str) -> None:
    """Make the folder; refuse what is there and no file, before anything is put beside it."""
    try:
        if os.lstat(path).st_mode & _KIND == _FILE:
            return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return
    raise OSError(22, "it is not a file")


def _dated(facts: Mapping[str, Any], after: str | None) -> dict[str, Any]:
    now = time()
    stamp = strftime("%Y-%m-%dT%H:%M:%S", gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
    told = {"time": stamp, **{name: _short(value) for name, value in facts.items()}}
    return told if after is None else {**told, "after": after}


def sealed(record: dict[str, Any], key: bytes) -> bytes:
    """A line with its sum; one that is too long goes without its arguments."""
    body = encode(record, [])[:-1]
    if len(body) > LONGEST - 64:
        kept = {name: value for name, value in record.items() if name in _BASIC}
        body = encode({**kept, "cut": True}, [])[:-1]
    return body + SUM + digest(body, _SIZE, key).hex().encode() + b'"}\n'


_BASIC = ("seq", "prev", "time", "event", "app", "tool", "call", "policy", "phase", "code", "after")


def unsealed(line: bytes, key: bytes) -> tuple[int, str] | None:
    """The number and the sum of a line, if it is as it was written. Nothing is parsed for it."""
    body, _, end = line.rpartition(SUM)
    digits, comma, _ = body[len(_NUMBER) :].partition(b",")
    if not (body.startswith(_NUMBER) and comma and digits.isdigit()):
        return None
    if end != digest(body, _SIZE, key).hex().encode() + b'"}':
        return None
    return int(digits), end[:-2].decode()


def _last_line(log: int, size: int, key: bytes) -> tuple[tuple[int, str] | None, bool]:
    """The last line that is whole, and whether there is half a one after it."""
    if not size:
        return None, False
    length = min(size, 2 * LONGEST)
    tail = _read_at(log, length, size - length)
    lines = tail.split(b"\n")
    for line in reversed(lines):  # of the last one only its newline may be missing
        found = unsealed(line, key)
        if found is not None:
            return found, bool(lines[-1])
    return None, bool(lines[-1])


def _follow(
    head: tuple[int, str] | None, last: tuple[int, str] | None, size: int
) -> tuple[int, str, str | None]:
    """The next number, what it follows, and what is wrong with that: it is told for good."""
    if last is None:
        known = head or (0, "")
        return known[0] + 1, known[1], "the last line was not readable" if size else None
    if head is None:
        lost = last[0] > 1  # of the very first line a crash may have kept the head back
        return last[0] + 1, last[1], "the head is missing" if lost else None
    if last in (head, (head[0] + 1, last[1])):  # or a crash came between a line and its head
        return last[0] + 1, last[1], None
    missing = head[0] >= last[0]
    known = head if missing else last
    return known[0] + 1, known[1], "lines are missing" if missing else "the head is an older one"


def _write(log: int, data: bytes, size: int) -> None:
    """One line in one piece; half of it is taken back."""
    try:
        written = os.write(log, data)
        if written == len(data):
            return
    except OSError:
        os.ftruncate(log, size)
        raise
    os.ftruncate(log, size)
    raise OSError(28, "No space left for a whole line")


def _rotate(path: str) -> None:
    for number in range(KEPT - 1, 0, -1):
        if os.path.exists(f"{path}.{number}"):
            os.replace(f"{path}.{number}", f"{path}.{number + 1}")
    os.replace(path, f"{path}.1")


def open_log(path: str) -> int:
    """The log, for adding to it and nothing else; it must be a plain file."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    log = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0), 0o600)
    if os.fstat(log).st_mode & _KIND != _FILE:
        os.close(log)
        raise OSError(22, "it is not a file")
    return log


def _read_at(file: int, length: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(file, length, offset)
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, length)


# ------------------------------------------------------------------ the head, and the lock on it


class Head:
    """The number and the sum of the last line, in a file of its own; locked while it is open."""

    def __init__(self, path: str, *, reading: bool = False) -> None:
        self._path = f"{path}.head"
        self._file = -1  # there is none
        self._flags = os.O_RDONLY if reading else os.O_RDWR | os.O_CREAT
        self._flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

    def __enter__(self) -> Head:
        try:
            self._file = os.open(self._path, self._flags, 0o600)
        except FileNotFoundError:
            if self._flags & os.O_CREAT:
                raise
            return self
        try:
            _lock(self._file)
        except OSError:
            os.close(self._file)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file < 0:
            return
        _unlock(self._file)  # said, not left to closing: a forked child has the file open, too
        os.close(self._file)

    def read(self, key: bytes) -> tuple[int, str] | None:
        """The last number and sum; None where there are none that can be trusted."""
        words = _read_at(self._file, 200, 0).split() if self._file >= 0 else []
        if len(words) != 3 or digest(b" ".join(words[:2]), _SIZE, key).hex().encode() != words[2]:
            return None
        return int(words[0]), words[1].decode()

    def write(self, seq: int, total: str, key: bytes) -> None:
        """Go on to the next line."""
        body = f"{seq:020d} {total}".encode()
        data = body + b" " + digest(body, _SIZE, key).hex().encode() + b"\n"
        os.lseek(self._file, 0, os.SEEK_SET)
        if os.write(self._file, data) != len(data):
            raise OSError(28, "No space left for the head")


def _lock(file: int) -> None:
    """Wait for the lock, but not for ever: a stopped process may hold it."""
    until = monotonic() + PATIENCE
    while True:
        try:
            return _try_lock(file)
        except (BlockingIOError, PermissionError):
            if monotonic() > until:
                raise OSError(11, "another process keeps it locked") from None
            sleep(0.001)


def _try_lock(file: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: a byte far behind the end is locked instead of the file
        import msvcrt

        os.lseek(file, 4096, os.SEEK_SET)
        getattr(msvcrt, "locking")(file, getattr(msvcrt, "LK_NBLCK"), 1)  # noqa: B009
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _unlock(file: int) -> None:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        os.lseek(file, 4096, os.SEEK_SET)
        getattr(msvcrt, "locking")(file, getattr(msvcrt, "LK_UNLCK"), 1)  # noqa: B009
        return
    fcntl.flock(file, fcntl.LOCK_UN)
