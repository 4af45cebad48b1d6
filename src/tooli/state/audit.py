"""The audit log: what was dared, refused, approved, as lines that vouch for one another.

    {"seq":7,"prev":"…","time":"…","event":"destructive_run",…,"sum":"…"}
         │        └── the sum of line 6
         └── no number is left out

The sum is over all that stands before it, with a key of the user's where one can be kept. The
file `….head` holds the last number and sum, and how the oldest line begins: so lines that were cut
off at either end are missed, too. A line is one write under a lock. What a crash leaves of one
stays there, is told by `audit verify`, and the next line starts on a line of its own.

Who may read the key can write a log that looks whole: the log tells mistakes and tampering by
others, not by whoever it belongs to.
"""

from __future__ import annotations

import os
from time import gmtime, strftime, time

from tooli.call.canonical import digest
from tooli.call.envelope import encode
from tooli.contract.jsonable import is_list, is_object
from tooli.state.heads import PATIENCE, PATIENCE_ON_A_LOOP, START, Head, read_at
from tooli.state.home import state_home
from tooli.state.keys import key_file

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.call.model import Call
    from tooli.errors import ToolError
    from tooli.state.heads import Link

LARGEST, KEPT = 8 << 20, 4
"""Bytes of a log before a new one is begun, and how many old ones are kept."""
LONGEST = 8192
"""Bytes of a line."""
SUM = b',"sum":"'
_NUMBER = b'{"seq":'
_SIZE = 16  # bytes of a sum
_KIND, _FILE = 0o170000, 0o100000  # of a mode: what it is of, and a plain file
_VALUE, _WORDS = 200, 500  # characters of an argument, and of what else is told
_SECRET = (
    *("password", "passwd", "passphrase", "secret", "token", "credential"),
    *("apikey", "privatekey", "authorization"),
)
_HIDDEN = "(hidden)"
_UNWRITTEN = "the audit log cannot be written: "
_places: dict[str, str] = {}


def note(event: str, call: Call, *, must: bool = False, **facts: Any) -> bool:
    """Write down what happens to a call; whether that could be done.

    Where it cannot be written the call gets a warning; under the strict policy, where it `must`
    be, the call is refused with E4061. Under the policy "off" nothing is written.
    """
    if call.policy == "off":
        return True
    try:
        told = {"event": event, **about(call), **facts}
        append(place_of(call.tool.app), told, _patience_of(call))
    except Exception as failure:  # whatever it is: no outcome is lost for a line about it
        if must and call.policy == "strict":
            raise unwritable(failure) from None
        said = f"{_UNWRITTEN}{_reason(failure)}"
        if said not in call.warnings:
            call.warnings.append(said)
        return False
    return True


def note_for(app: str, event: str, policy: str, **facts: Any) -> str | None:
    """The same without a call, as where a human grants what another process asked for.

    What is wrong, where it cannot be written; under the strict policy that is a refusal.
    """
    if policy == "off":
        return None
    try:
        append(place_of(app), {"event": event, "app": app, **facts, "caller": _process()})
    except OSError as failure:
        if policy == "strict":
            raise unwritable(failure) from None
        return f"{_UNWRITTEN}{_reason(failure)}"
    return None


def _patience_of(call: Call) -> float:
    """How long a call waits for others to finish their lines; where it has in vain, not again."""
    from tooli.call.shown import is_on_a_loop

    if any([said.startswith(_UNWRITTEN) for said in call.warnings]):
        return 0.0
    return PATIENCE_ON_A_LOOP if is_on_a_loop() else PATIENCE


def _reason(failure: Exception) -> str:
    return str(getattr(failure, "strerror", None) or failure)


def unwritable(failure: Exception) -> ToolError:
    """The refusal of a call that may only run on record."""
    from tooli.errors import Suggestion, TemporaryError

    return TemporaryError(
        f"The audit log cannot be written ({_reason(failure)}), "
        "and the policy is strict: nothing was done.",
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
    key = key_file("audit")
    if key is not None:  # without one, what is short or likely could be found out by trying
        told["call"] = digest(fingerprint(call).encode(), _SIZE, key).hex()
    told |= {"arguments": shown, "caller": {**said, **_process()}}
    return {**told, "policy": call.policy}


def _process() -> dict[str, int]:
    uid = {"uid": os.getuid()} if hasattr(os, "getuid") else {}
    return {**uid, "pid": os.getpid()}


def _shown(name: str, value: Any) -> Any:
    """An argument as it is told."""
    kind = value.__class__
    if kind in (bool, type(None)):
        return value
    if hasattr(kind, "reveal") or _is_secret(name):
        return _HIDDEN
    if hasattr(kind, "__next__") or hasattr(kind, "read"):
        return f"({kind.__name__})"
    from tooli.contract.jsonable import jsonable

    plain = _without_secrets(jsonable(value, []))
    text = encode(plain, []).decode("utf-8", "replace")
    return plain if len(text) <= _VALUE else f"{text[:_VALUE]}… ({len(text)} characters)"


def _without_secrets(value: Any) -> Any:
    """A value of JSON's own types without whatever has the name of a secret, however deep."""
    if is_object(value):
        return {
            name: _HIDDEN if item is not None and _is_secret(name) else _without_secrets(item)
            for name, item in value.items()
        }
    return [_without_secrets(item) for item in value] if is_list(value) else value


def _is_secret(name: str) -> bool:
    plain = name.lower().replace("_", "").replace("-", "")
    return any([word in plain for word in _SECRET])


def _short(value: Any) -> Any:
    """A fact that is not longer than it has to be."""
    if isinstance(value, str) and len(value) > _WORDS:
        return f"{value[:_WORDS]}…"
    return value


# ------------------------------------------------------------------ writing


def append(path: str, facts: Mapping[str, Any], patience: float = PATIENCE) -> None:
    """Add a line; an OSError where that cannot be done."""
    _prepare(path)
    key = key_file("audit") or b""
    with Head(path, patience) as head:
        log = open_log(path)
        try:
            size = os.fstat(log).st_size
            last, torn = _last_line(log, size, key)
            known = head.read(key)
            first = known[1] if known is not None else _first_of(path, key)
            seq, prev, after = _follow(known and known[0], last, size)
            line = sealed({"seq": seq, "prev": prev, **_dated(facts, after)}, key)
            if size and size + len(line) + 2 > LARGEST:
                os.close(log)
                log = -1
                first = _first_after(path, first, key)
                head.write((seq - 1, prev), first, key)  # before: a crash may come in between
                _rotate(path)
                log, size, torn = open_log(path), 0, False
            _write(log, b"\n" + line if torn else line, size)
        finally:
            if log >= 0:
                os.close(log)
        head.write((seq, line[-2 * _SIZE - 3 : -3].decode()), first, key)


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


def unsealed(line: bytes, key: bytes) -> Link | None:
    """The number and the sum of a line, if it is as it was written. Nothing is parsed for it."""
    body, _, end = line.rpartition(SUM)
    digits, comma, _ = body[len(_NUMBER) :].partition(b",")
    if not (body.startswith(_NUMBER) and comma and digits.isdigit()):
        return None
    if end != digest(body, _SIZE, key).hex().encode() + b'"}':
        return None
    return int(digits), end[:-2].decode()


def _last_line(log: int, size: int, key: bytes) -> tuple[Link | None, bool]:
    """The last line that is whole, and whether there is half a one after it."""
    if not size:
        return None, False
    length = min(size, 2 * LONGEST)
    tail = read_at(log, length, size - length)
    lines = tail.split(b"\n")
    for line in reversed(lines):  # of the last one only its newline may be missing
        found = unsealed(line, key)
        if found is not None:
            return found, bool(lines[-1])
    return None, bool(lines[-1])


def _follow(head: Link | None, last: Link | None, size: int) -> tuple[int, str, str | None]:
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


def _first_of(path: str, key: bytes) -> Link:
    """How the oldest file of a log begins, where no head says so."""
    kept = [name for name in files_of(path) if os.path.exists(name)]
    return (_first_line(kept[0], key) if kept else None) or START


def _first_after(path: str, first: Link, key: bytes) -> Link:
    """How a log begins once its oldest file was dropped.

    The next one counts only if it goes on where that one ends: otherwise lines were removed, and
    that is to be seen for good.
    """
    oldest, following = files_of(path)[:2]
    if not (os.path.exists(oldest) and os.path.exists(following)):
        return first
    file = os.open(oldest, os.O_RDONLY)
    try:
        last, _ = _last_line(file, os.fstat(file).st_size, key)
    finally:
        os.close(file)
    begins = _first_line(following, key)
    goes_on = last is not None and begins == (last[0] + 1, last[1])
    return begins if goes_on and begins is not None else first


def _first_line(path: str, key: bytes) -> Link | None:
    """The number of a file's first line, and the sum of the one before it."""
    from json import loads

    file = os.open(path, os.O_RDONLY)
    try:
        lines = read_at(file, 2 * LONGEST, 0).split(b"\n")
    finally:
        os.close(file)
    for line in lines:
        found = unsealed(line, key)
        if found is not None:
            return found[0], loads(line)["prev"]
    return None


def files_of(path: str) -> list[str]:
    """The files that a log may consist of, oldest first."""
    return [*[f"{path}.{number}" for number in range(KEPT, 0, -1)], path]


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
