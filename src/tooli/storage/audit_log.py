"""The audit log: runs, refusals and approvals as lines that are chained and signed.

    {"seq":7,"prev":"…","time":"…","event":"destructive_run",…,"sum":"…"}
         │        └── the sum of line 6
         └── numbered without gaps

The sum is a signature of the rest of the line. Its key is in a file of the user; the key is empty
if that file can be neither read nor created. The file `….head` contains the first and the last link
of the chain, so that the removal of lines at either end is detected as well. The head is written
before the first line. So a log without a valid head has been tampered with.

Each line is written with one system call while a lock is held. A crash can leave a partial line. It
stays in the file, `audit verify` reports it, and the next record starts on a new line.

A user who can read the key can write a valid log. So the log detects mistakes and tampering by
other users, but not by its owner.
"""

from __future__ import annotations

import os
from errno import EACCES, EAGAIN, EINVAL, ENOSPC
from time import gmtime, monotonic, sleep, strftime, time

from tooli.core.call_fingerprint import ValueEncoder, digest, fingerprint, make_keyed_digest
from tooli.core.event_loop import is_in_event_loop
from tooli.errors import Suggestion, TemporaryError
from tooli.storage.signing import load_or_create_key, sign_hex, verify_hex
from tooli.storage.state_files import (
    check_private_folder,
    get_state_dir,
    make_private_folder,
    set_file_lock,
)
from tooli.text.json_encoder import encode
from tooli.text.redact import RecordRedactor

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, TypeAlias

    from tooli.core.call import Call
    from tooli.core.protocols import JsonObject
    from tooli.errors import ToolError

    ChainLink: TypeAlias = tuple[int, str]
    """A line number and a sum.

    The last link of a log contains the number and the sum of the last line. The first link contains
    the number of the first line, and the sum of the line before it.
    """

MAX_LOG_BYTES, MAX_ROTATED_FILES = 8 << 20, 4
"""Size at which the log is rotated, and the number of older files that are kept."""
MAX_LINE_BYTES = 8192
_MAX_BODY_BYTES = MAX_LINE_BYTES - 64
LOCK_TIMEOUT_SECONDS, EVENT_LOOP_LOCK_TIMEOUT_SECONDS = 5.0, 0.5
"""Seconds to wait for other writers. On an event loop the wait is short, as it blocks the loop."""
SUM_FIELD = b',"sum":"'
FIRST_LINK = (1, "")
"""The first link of a log that is complete from its start."""
_NO_LINE = (0, "")
"""The last link of a log that has no line yet."""
_SEQ_PREFIX = b'{"seq":'
_SUM_BYTES = 16
_EMPTY_SUM = "-" * 2 * _SUM_BYTES  # as long as a sum, because a head is overwritten in place
# A link is not followed, a child process does not inherit the file, and a pipe does not block.
_SAFE_OPEN_FLAGS = (
    getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
)
_FILE_TYPE_MASK, _REGULAR_FILE = 0o170000, 0o100000
_MAX_ARGUMENT_BYTES, _MAX_FACT_BYTES = 200, 500
_SHORTER_ARGUMENT_BYTES, _SHORTER_FACT_BYTES = (100, 20), 100
"""Limits in bytes of JSON. The shorter ones apply to lines that would be too long."""
_MAX_BYTES_PER_CHAR = 6  # a JSON escape
_WRITE_FAILED_PREFIX = "the audit log cannot be written: "
_OWN_FACTS = ("code", "ms", "not_logged", "ok", "override", "phase", "request")
_configured_paths: dict[str, str] = {}


# ------------------------------------------------------------------ events


def log_event(
    event: str,
    call: Call,
    *,
    required: bool = False,
    description: CallDescription | None = None,
    **facts: object,
) -> bool:
    """Log an event of a call; return False if the log cannot be written.

    If it cannot be written, the call gets a warning. With `required=True` and the strict policy
    the call is refused with E4061 instead. With the policy "off" nothing is logged. Several events
    of a call can have one `description`, because large arguments take time to describe.
    """
    if call.policy == "off":
        return True
    try:
        redactor = RecordRedactor(call)
        record = {"event": event, **(description or CallDescription(call)).read(redactor)}
        record |= _redact_facts(facts, redactor)
        append_line(get_log_path(call.tool.app), record, _lock_timeout_for(call))
    except Exception as failure:  # a problem with the log must not hide the outcome
        if required and call.policy == "strict":
            raise make_unwritable_error(failure) from None
        warning = UnwrittenLogWarning(f"{_WRITE_FAILED_PREFIX}{_error_text(failure)}")
        if warning not in call.warnings:
            call.warnings.append(warning)
        return False
    return True


class CallDescription:
    """The fields that describe a call in the log. They are made when the first event is logged."""

    __slots__ = ("_call", "_fields", "_secret_count")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._fields: JsonObject | None = None
        self._secret_count = 0

    def read(self, redactor: RecordRedactor) -> JsonObject:
        """Return the fields. They are made again if a secret was loaded since."""
        if self._fields is None or self._secret_count != redactor.loaded_secret_count:
            self._secret_count = redactor.loaded_secret_count
            self._fields = _describe_call(self._call, redactor)
        return self._fields


class UnwrittenLogWarning(str):
    """The warning of a call whose event could not be logged.

    The class marks the warnings of log_event(). A command can warn with the same text, but its
    warnings are plain texts.
    """

    __slots__ = ()


def log_app_event(app: str, event: str, policy: str, **facts: object) -> str | None:
    """Log an event outside a call, for example a grant; return a warning if that fails.

    With the strict policy a failure raises E4061. With the policy "off" nothing is logged.
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
    """Return the seconds that a call waits for other writers; 0 after a failed write."""
    if any([isinstance(warning, UnwrittenLogWarning) for warning in call.warnings]):
        return 0.0
    return EVENT_LOOP_LOCK_TIMEOUT_SECONDS if is_in_event_loop() else LOCK_TIMEOUT_SECONDS


def _error_text(failure: Exception) -> str:
    return str(getattr(failure, "strerror", None) or failure)


def make_unwritable_error(failure: Exception) -> ToolError:
    """Return the error (E4061) for a call that must be logged, if the log cannot be written."""
    return TemporaryError(
        f"The audit log cannot be written ({_error_text(failure)}), and the policy is strict. "
        "Nothing was done.",
        code="E4061",
        suggestion=Suggestion(
            "ask_human", "Free disk space, or set audit_log to a file that can be written."
        ),
    )


def set_log_path(app: str, path: str | None) -> None:
    """Set the path of an app's log, if the configuration has one."""
    if path:
        _configured_paths[app] = os.path.abspath(os.path.expanduser(path))


def get_log_path(app: str) -> str:
    """Return the path of an app's log."""
    configured = _configured_paths.get(app)
    if configured is not None:
        return configured
    is_safe_name = (
        app.isascii() and app.replace("-", "a").replace("_", "a").isalnum() and len(app) <= 60
    )
    name = app if is_safe_name else f"by-{digest(app.encode('utf-8', 'surrogatepass'), 16).hex()}"
    return os.path.join(get_state_dir(), "audit", f"{name}.jsonl")


def _redact_facts(facts: Mapping[str, object], redactor: RecordRedactor) -> JsonObject:
    """Return facts without secrets. Facts that tooli itself writes are not searched for them."""
    return {
        name: value if name in _OWN_FACTS else redactor.redact(value)
        for name, value in facts.items()
    }


def _describe_call(call: Call, redactor: RecordRedactor) -> JsonObject:
    """Return the fields that describe a call in the log, without secrets.

    `masked` has a keyed digest of each argument in which a secret is masked. A caller chooses the
    secrets, so it could mask any argument; the digest shows whether two values are equal.
    """
    tool, caller = call.tool, call.caller
    names = tool.param_names if tool.input_model is None else {tool.input_model[0]}
    key = load_or_create_key("audit")
    arguments: JsonObject = {}
    masked: JsonObject = {}
    for name, value in call.arguments.items():
        if name in names:
            count = redactor.masked_count
            redacted = redactor.redact_argument(name, value)
            arguments[name] = _shorten(redacted, _MAX_ARGUMENT_BYTES)
            if redactor.masked_count > count:
                masked[name] = "" if key is None else _digest_value(value, key)
    record: JsonObject = {"app": tool.app, "tool": tool.id}
    if call.request is not None:
        record["request_id"] = call.request.id
    if tool.version is not None:
        record["version"] = tool.version
    identity = {
        "surface": caller.surface,
        "name": caller.name,
        "principal": caller.principal,
        "session": caller.session,
    }
    caller_fields = {name: _shorten(value) for name, value in identity.items() if value is not None}
    if key is not None:  # without a key, short arguments could be guessed from the digest
        call_fingerprint = fingerprint(call, digest_secret=make_keyed_digest(key))
        record["call"] = digest(call_fingerprint.encode(), _SUM_BYTES, key).hex()
    record |= {"arguments": arguments, "caller": {**caller_fields, **_process_info()}}
    if masked:
        record["masked"] = masked
    return {**record, "policy": call.policy}


def _digest_value(value: object, key: bytes) -> str:
    encoded = ValueEncoder(make_keyed_digest(key)).encode(value)
    return digest(encoded, _SUM_BYTES, key).hex()


def _process_info() -> dict[str, int]:
    uid = {"uid": os.getuid()} if hasattr(os, "getuid") else {}
    return {**uid, "pid": os.getpid()}


def _shorten(value: object, max_bytes: int = _MAX_FACT_BYTES) -> object:
    """Return a value whose JSON has few bytes: the value, or the beginning of its text."""
    if isinstance(value, str) and len(value) * _MAX_BYTES_PER_CHAR + 2 <= max_bytes:
        return value
    data = encode(value, [])
    if len(data) <= max_bytes:
        return value
    text = value if isinstance(value, str) else data.decode("utf-8", "replace")
    end, size = len(text), len(encode(text, []))
    while size > max_bytes:
        end = end * max_bytes // size
        size = len(encode(text[:end], []))
    return f"{text[:end]}… ({len(data)} bytes)"


def _shorten_each(values: Mapping[str, object], max_bytes: int = _MAX_FACT_BYTES) -> JsonObject:
    return {name: _shorten(value, max_bytes) for name, value in values.items()}


# ------------------------------------------------------------------ writing


def append_line(
    path: str, facts: Mapping[str, object], lock_timeout: float = LOCK_TIMEOUT_SECONDS
) -> None:
    """Append a line to a log; raise OSError if that fails."""
    _prepare_path(path)
    key = load_or_create_key("audit") or b""
    if not key and os.path.isdir(get_state_dir()):
        check_private_folder(get_state_dir())  # an unsafe folder is a reason to report
    with AuditHead(path, lock_timeout) as head:
        head_links = head.read(key)
        if head_links is None and head.is_empty() and not find_log_files(path):
            head_links = (_NO_LINE, FIRST_LINK)
            head.write(*head_links, key)
        log = open_log(path)
        try:
            size = os.fstat(log).st_size
            last, has_partial_line = _last_line(log, size, key)
            first = head_links[1] if head_links is not None else _find_oldest_link(path, key)
            seq, prev, after = _next_link(head_links and head_links[0], last, size)
            line = encode_line({"seq": seq, "prev": prev, **_add_timestamp(facts, after)}, key)
            if size and size + len(line) + 2 > MAX_LOG_BYTES:
                os.close(log)
                log = -1
                first = _oldest_link_after_rotation(path, first, key)
                # Written before _rotate(), because a crash can interrupt the rotation.
                head.write((seq - 1, prev), first, key)
                _rotate(path)
                log, size, has_partial_line = open_log(path), 0, False
            _write_line(log, b"\n" + line if has_partial_line else line, size)
        finally:
            if log >= 0:
                os.close(log)
        head.write((seq, line[-2 * _SUM_BYTES - 3 : -3].decode()), first, key)


def _prepare_path(path: str) -> None:
    """Create the folder; raise OSError if the path exists and is not a regular file."""
    try:
        if os.lstat(path).st_mode & _FILE_TYPE_MASK == _REGULAR_FILE:
            return
    except FileNotFoundError:
        make_private_folder(os.path.dirname(path))
        return
    raise OSError(EINVAL, "it is not a file")


def _add_timestamp(facts: Mapping[str, object], after: str | None) -> JsonObject:
    now = time()
    stamp = strftime("%Y-%m-%dT%H:%M:%S", gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
    # The values of arguments and of the caller are shortened one by one in _describe_call().
    shortened = {
        name: value if name in ("arguments", "caller") else _shorten(value)
        for name, value in facts.items()
    }
    record = {"time": stamp, **shortened}
    return record if after is None else {**record, "after": after}


def encode_line(record: JsonObject, key: bytes) -> bytes:
    """Return a signed line. If it is too long, its values are shortened, arguments first."""
    body = encode(record, [])[:-1]
    for shorter_record in _shorter_records(record) if len(body) > _MAX_BODY_BYTES else ():
        body = encode({**shorter_record, "cut": True}, [])[:-1]
        if len(body) <= _MAX_BODY_BYTES:
            break
    return body + SUM_FIELD + sign_hex(body, key, _SUM_BYTES) + b'"}\n'


def _shorter_records(record: JsonObject) -> Iterator[JsonObject]:
    """Yield shorter and shorter forms of a record. The last one has all fields, but no arguments.

    A caller chooses the arguments. They must not displace the caller or the outcome.
    """
    arguments: Any = record.get("arguments")
    if arguments.__class__ is dict:
        for limit in _SHORTER_ARGUMENT_BYTES:
            yield {**record, "arguments": _shorten_each(arguments, limit)}
        record = {**record, "arguments": f"({len(arguments)} arguments)"}
        yield record
    caller: Any = record.get("caller")
    shorter = _shorten_each(record, _SHORTER_FACT_BYTES)
    if caller.__class__ is dict:
        shorter["caller"] = _shorten_each(caller, _SHORTER_FACT_BYTES)
    yield shorter


def verify_line(line: bytes, key: bytes) -> ChainLink | None:
    """Return the number and the sum of a line; None if its sum is wrong. Does not parse JSON."""
    body, _, end = line.rpartition(SUM_FIELD)
    digits, comma, _ = body[len(_SEQ_PREFIX) :].partition(b",")
    if not (body.startswith(_SEQ_PREFIX) and comma and digits.isdigit()):
        return None
    if end[-2:] != b'"}' or not verify_hex(body, end[:-2], key, _SUM_BYTES):
        return None
    return int(digits), end[:-2].decode()


def _last_line(log: int, size: int, key: bytes) -> tuple[ChainLink | None, bool]:
    """Return the link of the last valid line, and whether a partial line follows it."""
    if not size:
        return None, False
    length = min(size, 2 * MAX_LINE_BYTES)
    tail = read_at(log, length, size - length)
    lines = tail.split(b"\n")
    for line in reversed(lines):  # the last line may lack its newline
        found = verify_line(line, key)
        if found is not None:
            return found, bool(lines[-1])
    return None, bool(lines[-1])


def _next_link(
    head: ChainLink | None, last: ChainLink | None, size: int
) -> tuple[int, str, str | None]:
    """Return the number of the next line, the sum of the line before it, and a problem or None.

    The next line records the problem in its field "after".
    """
    if head is None:
        seq, line_sum = last or _NO_LINE
        return seq + 1, line_sum, "the head is missing"
    if last is None:
        # A crash can leave a partial first line.
        is_lost = size and head != _NO_LINE
        return head[0] + 1, head[1], "the last line was not readable" if is_lost else None
    # The last line is one ahead of the head if a crash came between the two writes.
    if last in (head, (head[0] + 1, last[1])):
        return last[0] + 1, last[1], None
    missing = head[0] >= last[0]
    newest = head if missing else last
    return (
        newest[0] + 1,
        newest[1],
        "lines are missing" if missing else "the head is older than the log",
    )


def _write_line(log: int, data: bytes, size: int) -> None:
    """Write a line with one system call; remove the partial line if that fails."""
    try:
        if os.write(log, data) != len(data):
            raise OSError(ENOSPC, "No space left for a whole line")
    except OSError:
        os.ftruncate(log, size)
        raise


def _find_oldest_link(path: str, key: bytes) -> ChainLink:
    """Return the first link of the oldest file, for a log without a head."""
    existing = find_log_files(path)
    return (_read_first_link(existing[0], key) if existing else None) or FIRST_LINK


def _oldest_link_after_rotation(path: str, first: ChainLink, key: bytes) -> ChainLink:
    """Return the first link that a log has after rotation drops its oldest file.

    If the following file does not continue the oldest one, lines were removed. Then the link stays
    the same, so that verify_log() still finds the gap.
    """
    oldest, following = list_log_files(path)[:2]
    if not (os.path.exists(oldest) and os.path.exists(following)):
        return first
    with open(oldest, "rb") as file:
        last, _ = _last_line(file.fileno(), os.fstat(file.fileno()).st_size, key)
    following_link = _read_first_link(following, key)
    is_contiguous = last is not None and following_link == (last[0] + 1, last[1])
    return following_link if is_contiguous and following_link is not None else first


def _read_first_link(path: str, key: bytes) -> ChainLink | None:
    """Return the number of a file's first line, and the sum of the line before it."""
    from json import loads  # slow to import, and rarely needed

    with open(path, "rb") as file:
        lines = file.read(2 * MAX_LINE_BYTES).split(b"\n")
    for line in lines:
        found = verify_line(line, key)
        if found is not None:
            return found[0], loads(line)["prev"]
    return None


def list_log_files(path: str) -> list[str]:
    """Return the paths of a log's files, oldest first. They need not exist."""
    return [*[f"{path}.{number}" for number in range(MAX_ROTATED_FILES, 0, -1)], path]


def find_log_files(path: str) -> list[str]:
    """Return the paths of a log's files that exist, oldest first."""
    return [name for name in list_log_files(path) if os.path.lexists(name)]


def _rotate(path: str) -> None:
    for number in range(MAX_ROTATED_FILES - 1, 0, -1):
        if os.path.exists(f"{path}.{number}"):
            os.replace(f"{path}.{number}", f"{path}.{number + 1}")
    os.replace(path, f"{path}.1")


def open_log(path: str) -> int:
    """Open a log for appending; raise OSError if it is not a private regular file."""
    log = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _SAFE_OPEN_FLAGS, 0o600)
    try:
        _check_file(log, path)
    except OSError:
        os.close(log)
        raise
    return log


def _check_file(file: int, path: str, *, read_only: bool = False) -> None:
    """Raise OSError if an open file is not a regular file, or if other users can write to it.

    Another user may have created the file to read the log or to hold its lock. On Windows, owners
    and modes are not checked.
    """
    found = os.fstat(file)
    if found.st_mode & _FILE_TYPE_MASK != _REGULAR_FILE:
        raise OSError(EINVAL, "it is not a file")
    if read_only or not hasattr(os, "getuid"):
        return
    if found.st_uid not in (os.getuid(), 0):
        raise PermissionError(EACCES, f"{path} belongs to another user")
    if found.st_mode & 0o022:
        raise PermissionError(EACCES, f"other users can write to {path}; run: chmod go-w {path}")
    if found.st_nlink > 1:
        raise PermissionError(EACCES, f"{path} has a second name (a hard link)")


def read_at(file: int, length: int, offset: int) -> bytes:
    """Return up to `length` bytes of a file from an offset."""
    if hasattr(os, "pread"):
        return os.pread(file, length, offset)
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, length)


# ------------------------------------------------------------------ the head


class AuditHead:
    """The file with the first and the last link of a log. The file is locked while it is open.

    SEQ SUM SEQ PREV SIGNATURE
    └ last ┘└ first ─┘
    """

    def __init__(
        self, path: str, lock_timeout: float = LOCK_TIMEOUT_SECONDS, *, read_only: bool = False
    ) -> None:
        self._path = f"{path}.head"
        self._lock_timeout = lock_timeout
        self._file = -1
        self._read_only = read_only

    def __enter__(self) -> AuditHead:
        try:
            flags = os.O_RDONLY if self._read_only else os.O_RDWR | os.O_CREAT
            self._file = os.open(self._path, flags | _SAFE_OPEN_FLAGS, 0o600)
        except (FileNotFoundError, NotADirectoryError):
            if not self._read_only:
                raise
            return self
        try:
            _check_file(self._file, self._path, read_only=self._read_only)
            _lock(self._file, self._lock_timeout)
        except OSError:
            os.close(self._file)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file < 0:
            return
        # Closing the file does not release the lock if a forked child has the file open.
        set_file_lock(self._file, locked=False)
        os.close(self._file)

    def read(self, key: bytes) -> tuple[ChainLink, ChainLink] | None:
        """Return the last and the first link; None if there is no valid head."""
        fields = read_at(self._file, 200, 0).split() if self._file >= 0 else []
        if len(fields) != 5:
            return None
        if not verify_hex(b" ".join(fields[:4]), fields[4], key, _SUM_BYTES):
            return None
        last, last_sum, first, prev = [
            "" if field == _EMPTY_SUM.encode() else field.decode() for field in fields[:4]
        ]
        return (int(last), last_sum), (int(first), prev)

    def exists(self) -> bool:
        """True if there is a head file, valid or not."""
        return self._file >= 0

    def is_empty(self) -> bool:
        """True if the head file is new. A crash can leave it empty before there is a log."""
        return not os.fstat(self._file).st_size

    def write(self, last: ChainLink, first: ChainLink, key: bytes) -> None:
        """Write the last and the first link."""
        links = [f"{seq:020d} {link_sum or _EMPTY_SUM}" for seq, link_sum in (last, first)]
        body = " ".join(links).encode()
        data = body + b" " + sign_hex(body, key, _SUM_BYTES) + b"\n"
        os.lseek(self._file, 0, os.SEEK_SET)
        if os.write(self._file, data) != len(data):
            raise OSError(ENOSPC, "No space left for the head")


def _lock(file: int, timeout: float) -> None:
    """Wait for the lock, but no longer than the timeout, because a stopped process may hold it."""
    deadline = monotonic() + timeout
    while True:
        try:
            return set_file_lock(file, locked=True)
        except (BlockingIOError, PermissionError):
            if monotonic() >= deadline:
                raise OSError(EAGAIN, "another process holds the lock") from None
            sleep(0.001)
