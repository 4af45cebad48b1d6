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

from tooli.core.call_fingerprint import digest, fingerprint
from tooli.core.event_loop import is_in_event_loop
from tooli.storage.audit_head import (
    EVENT_LOOP_LOCK_TIMEOUT_SECONDS,
    FIRST_LINK,
    LOCK_TIMEOUT_SECONDS,
    AuditHead,
    read_at,
)
from tooli.storage.signing import load_or_create_key
from tooli.storage.state_files import get_state_dir
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.core.call import Call
    from tooli.errors import ToolError
    from tooli.storage.audit_head import ChainLink

MAX_LOG_BYTES, MAX_ROTATED_FILES = 8 << 20, 4
"""Bytes of a log before a new one is begun, and how many old ones are kept."""
MAX_LINE_BYTES = 8192
"""Bytes of a line."""
SUM_FIELD = b',"sum":"'
_SEQ_PREFIX = b'{"seq":'
_SUM_BYTES = 16  # bytes of a sum
_FILE_TYPE_MASK, _REGULAR_FILE = 0o170000, 0o100000  # of a mode: what it is of, and a plain file
_MAX_ARGUMENT_CHARS, _MAX_FACT_CHARS = (
    200,
    500,
)  # characters of an argument, and of what else is told
_SECRET_WORDS = (
    *("password", "passwd", "passphrase", "secret", "token", "credential"),
    *("apikey", "privatekey", "authorization"),
)
_REDACTED = "(hidden)"
_WRITE_FAILED_PREFIX = "the audit log cannot be written: "
_configured_paths: dict[str, str] = {}


def log_event(event: str, call: Call, *, required: bool = False, **facts: Any) -> bool:
    """Write down what happens to a call; whether that could be done.

    Where it cannot be written the call gets a warning; under the strict policy, where it `must`
    be, the call is refused with E4061. Under the policy "off" nothing is written.
    """
    if call.policy == "off":
        return True
    try:
        record = {"event": event, **describe_call(call), **facts}
        append_line(get_log_path(call.tool.app), record, _lock_timeout_for(call))
    except Exception as failure:  # whatever it is: no outcome is lost for a line about it
        if required and call.policy == "strict":
            raise make_unwritable_error(failure) from None
        warning = f"{_WRITE_FAILED_PREFIX}{_error_text(failure)}"
        if warning not in call.warnings:
            call.warnings.append(warning)
        return False
    return True


def log_app_event(app: str, event: str, policy: str, **facts: Any) -> str | None:
    """The same without a call, as where a human grants what another process asked for.

    What is wrong, where it cannot be written; under the strict policy that is a refusal.
    """
    if policy == "off":
        return None
    try:
        append_line(
            get_log_path(app), {"event": event, "app": app, **facts, "caller": _process_info()}
        )
    except OSError as failure:
        if policy == "strict":
            raise make_unwritable_error(failure) from None
        return f"{_WRITE_FAILED_PREFIX}{_error_text(failure)}"
    return None


def _lock_timeout_for(call: Call) -> float:
    """How long a call waits for others to finish their lines; where it has in vain, not again."""
    if any([warning.startswith(_WRITE_FAILED_PREFIX) for warning in call.warnings]):
        return 0.0
    return EVENT_LOOP_LOCK_TIMEOUT_SECONDS if is_in_event_loop() else LOCK_TIMEOUT_SECONDS


def _error_text(failure: Exception) -> str:
    return str(getattr(failure, "strerror", None) or failure)


def make_unwritable_error(failure: Exception) -> ToolError:
    """The refusal of a call that may only run on record."""
    from tooli.errors import Suggestion, TemporaryError

    return TemporaryError(
        f"The audit log cannot be written ({_error_text(failure)}), "
        "and the policy is strict: nothing was done.",
        code="E4061",
        suggestion=Suggestion(
            "ask_human", "Make room for it, or name another file in the setting audit_log."
        ),
    )


# ------------------------------------------------------------------ where, and what is told


def set_log_path(app: str, path: str | None) -> None:
    """Keep an app's log where the configuration says."""
    if path:
        _configured_paths[app] = os.path.abspath(os.path.expanduser(path))


def get_log_path(app: str) -> str:
    """The file of an app's log."""
    configured = _configured_paths.get(app)
    if configured is not None:
        return configured
    is_safe_name = (
        app.isascii() and app.replace("-", "a").replace("_", "a").isalnum() and len(app) <= 60
    )
    name = app if is_safe_name else f"by-{digest(app.encode('utf-8', 'surrogatepass'), 16).hex()}"
    return os.path.join(get_state_dir(), "audit", f"{name}.jsonl")


def describe_call(call: Call) -> dict[str, Any]:
    """What is told of a call: which, with what, by whom; never a secret."""
    tool, caller = call.tool, call.caller
    names = tool.param_names if tool.input_model is None else {tool.input_model[0]}
    arguments = {
        name: _redact_argument(name, call.arguments[name])
        for name in call.arguments
        if name in names
    }
    record: dict[str, Any] = {"app": tool.app, "tool": tool.id}
    if tool.version is not None:
        record["version"] = tool.version
    identity = {
        "surface": caller.surface,
        "name": caller.name,
        "principal": caller.principal,
        "session": caller.session,
    }
    caller_fields = {name: _shorten(value) for name, value in identity.items() if value is not None}
    key = load_or_create_key("audit")
    if key is not None:  # without one, what is short or likely could be found out by trying
        record["call"] = digest(fingerprint(call).encode(), _SUM_BYTES, key).hex()
    record |= {"arguments": arguments, "caller": {**caller_fields, **_process_info()}}
    return {**record, "policy": call.policy}


def _process_info() -> dict[str, int]:
    uid = {"uid": os.getuid()} if hasattr(os, "getuid") else {}
    return {**uid, "pid": os.getpid()}


def _redact_argument(name: str, value: Any) -> Any:
    """An argument as it is told."""
    kind = value.__class__
    if kind in (bool, type(None)):
        return value
    if hasattr(kind, "reveal") or _is_secret_name(name):
        return _REDACTED
    if hasattr(kind, "__next__") or hasattr(kind, "read"):
        return f"({kind.__name__})"
    from tooli.text.jsonable import to_jsonable

    redacted = _redact_secrets(to_jsonable(value, []))
    text = encode(redacted, []).decode("utf-8", "replace")
    return (
        redacted
        if len(text) <= _MAX_ARGUMENT_CHARS
        else f"{text[:_MAX_ARGUMENT_CHARS]}… ({len(text)} characters)"
    )


def _redact_secrets(value: Any) -> Any:
    """A value of JSON's own types without whatever has the name of a secret, however deep."""
    if is_object(value):
        return {
            name: _REDACTED if item is not None and _is_secret_name(name) else _redact_secrets(item)
            for name, item in value.items()
        }
    return [_redact_secrets(item) for item in value] if is_list(value) else value


def _is_secret_name(name: str) -> bool:
    normalized = name.lower().replace("_", "").replace("-", "")
    return any([word in normalized for word in _SECRET_WORDS])


def _shorten(value: Any) -> Any:
    """A fact that is not longer than it has to be."""
    if isinstance(value, str) and len(value) > _MAX_FACT_CHARS:
        return f"{value[:_MAX_FACT_CHARS]}…"
    return value


# ------------------------------------------------------------------ writing


def append_line(
    path: str, facts: Mapping[str, Any], lock_timeout: float = LOCK_TIMEOUT_SECONDS
) -> None:
    """Add a line; an OSError where that cannot be done."""
    _prepare_path(path)
    key = load_or_create_key("audit") or b""
    with AuditHead(path, lock_timeout) as head:
        log = open_log(path)
        try:
            size = os.fstat(log).st_size
            last, has_partial_line = _last_line(log, size, key)
            head_links = head.read(key)
            first = head_links[1] if head_links is not None else _find_oldest_link(path, key)
            seq, prev, after = _next_link(head_links and head_links[0], last, size)
            line = encode_line({"seq": seq, "prev": prev, **_add_timestamp(facts, after)}, key)
            if size and size + len(line) + 2 > MAX_LOG_BYTES:
                os.close(log)
                log = -1
                first = _oldest_link_after_rotation(path, first, key)
                head.write((seq - 1, prev), first, key)  # before: a crash may come in between
                _rotate(path)
                log, size, has_partial_line = open_log(path), 0, False
            _write_line(log, b"\n" + line if has_partial_line else line, size)
        finally:
            if log >= 0:
                os.close(log)
        head.write((seq, line[-2 * _SUM_BYTES - 3 : -3].decode()), first, key)


def _prepare_path(path: str) -> None:
    """Make the folder; refuse what is there and no file, before anything is put beside it."""
    try:
        if os.lstat(path).st_mode & _FILE_TYPE_MASK == _REGULAR_FILE:
            return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return
    raise OSError(22, "it is not a file")


def _add_timestamp(facts: Mapping[str, Any], after: str | None) -> dict[str, Any]:
    now = time()
    stamp = strftime("%Y-%m-%dT%H:%M:%S", gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
    record = {"time": stamp, **{name: _shorten(value) for name, value in facts.items()}}
    return record if after is None else {**record, "after": after}


def encode_line(record: dict[str, Any], key: bytes) -> bytes:
    """A line with its sum; one that is too long goes without its arguments."""
    body = encode(record, [])[:-1]
    if len(body) > MAX_LINE_BYTES - 64:
        essential = {name: value for name, value in record.items() if name in _ESSENTIAL_FIELDS}
        body = encode({**essential, "cut": True}, [])[:-1]
    return body + SUM_FIELD + digest(body, _SUM_BYTES, key).hex().encode() + b'"}\n'


_ESSENTIAL_FIELDS = (
    "seq",
    "prev",
    "time",
    "event",
    "app",
    "tool",
    "call",
    "policy",
    "phase",
    "code",
    "after",
)


def verify_line(line: bytes, key: bytes) -> ChainLink | None:
    """The number and the sum of a line, if it is as it was written. Nothing is parsed for it."""
    body, _, end = line.rpartition(SUM_FIELD)
    digits, comma, _ = body[len(_SEQ_PREFIX) :].partition(b",")
    if not (body.startswith(_SEQ_PREFIX) and comma and digits.isdigit()):
        return None
    if end != digest(body, _SUM_BYTES, key).hex().encode() + b'"}':
        return None
    return int(digits), end[:-2].decode()


def _last_line(log: int, size: int, key: bytes) -> tuple[ChainLink | None, bool]:
    """The last line that is whole, and whether there is half a one after it."""
    if not size:
        return None, False
    length = min(size, 2 * MAX_LINE_BYTES)
    tail = read_at(log, length, size - length)
    lines = tail.split(b"\n")
    for line in reversed(lines):  # of the last one only its newline may be missing
        found = verify_line(line, key)
        if found is not None:
            return found, bool(lines[-1])
    return None, bool(lines[-1])


def _next_link(
    head: ChainLink | None, last: ChainLink | None, size: int
) -> tuple[int, str, str | None]:
    """The next number, what it follows, and what is wrong with that: it is told for good."""
    if last is None:
        newest = head or (0, "")
        return newest[0] + 1, newest[1], "the last line was not readable" if size else None
    if head is None:
        is_head_lost = last[0] > 1  # of the very first line a crash may have kept the head back
        return last[0] + 1, last[1], "the head is missing" if is_head_lost else None
    if last in (head, (head[0] + 1, last[1])):  # or a crash came between a line and its head
        return last[0] + 1, last[1], None
    missing = head[0] >= last[0]
    newest = head if missing else last
    return newest[0] + 1, newest[1], "lines are missing" if missing else "the head is an older one"


def _write_line(log: int, data: bytes, size: int) -> None:
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


def _find_oldest_link(path: str, key: bytes) -> ChainLink:
    """How the oldest file of a log begins, where no head says so."""
    existing = [name for name in list_log_files(path) if os.path.exists(name)]
    return (_read_first_link(existing[0], key) if existing else None) or FIRST_LINK


def _oldest_link_after_rotation(path: str, first: ChainLink, key: bytes) -> ChainLink:
    """How a log begins once its oldest file was dropped.

    The next one counts only if it goes on where that one ends: otherwise lines were removed, and
    that is to be seen for good.
    """
    oldest, following = list_log_files(path)[:2]
    if not (os.path.exists(oldest) and os.path.exists(following)):
        return first
    file = os.open(oldest, os.O_RDONLY)
    try:
        last, _ = _last_line(file, os.fstat(file).st_size, key)
    finally:
        os.close(file)
    following_link = _read_first_link(following, key)
    is_contiguous = last is not None and following_link == (last[0] + 1, last[1])
    return following_link if is_contiguous and following_link is not None else first


def _read_first_link(path: str, key: bytes) -> ChainLink | None:
    """The number of a file's first line, and the sum of the one before it."""
    from json import loads

    file = os.open(path, os.O_RDONLY)
    try:
        lines = read_at(file, 2 * MAX_LINE_BYTES, 0).split(b"\n")
    finally:
        os.close(file)
    for line in lines:
        found = verify_line(line, key)
        if found is not None:
            return found[0], loads(line)["prev"]
    return None


def list_log_files(path: str) -> list[str]:
    """The files that a log may consist of, oldest first."""
    return [*[f"{path}.{number}" for number in range(MAX_ROTATED_FILES, 0, -1)], path]


def _rotate(path: str) -> None:
    for number in range(MAX_ROTATED_FILES - 1, 0, -1):
        if os.path.exists(f"{path}.{number}"):
            os.replace(f"{path}.{number}", f"{path}.{number + 1}")
    os.replace(path, f"{path}.1")


def open_log(path: str) -> int:
    """The log, for adding to it and nothing else; it must be a plain file."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    log = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0), 0o600)
    if os.fstat(log).st_mode & _FILE_TYPE_MASK != _REGULAR_FILE:
        os.close(log)
        raise OSError(22, "it is not a file")
    return log
