"""Approvals: what a human was asked, and what they said. One sealed file for each, used once.

    refused call ─▶ MATCH.ID.pending ─┬ grant ▶ MATCH.ID.granted ─▶ the same call takes it: ID.used
                                      └ deny  ▶ MATCH.ID.denied ──▶ the same call is told, once

MATCH is a digest of all that a request is bound to: the tool, its arguments, the caller and what
the call would do. A file counts only with a seal of this user's key over all that it says, its
name included, and within its time, by the clock and by the time since the machine was started.
Of several processes that want the same file, one gets it: whoever creates what comes next. A call
that took a grant and did not run takes the mark away again.
"""

from __future__ import annotations

import os
import time
from errno import ELOOP, ENOENT, ENXIO

from tooli.call.canonical import digest
from tooli.contract.record import Record
from tooli.errors import AuthError, Suggestion
from tooli.state.marks import claim, release
from tooli.state.owners import this_process

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

LASTS = 15 * 60
"""Seconds for which a request waits, and then a human's word holds."""
MOST = 500
"""Requests that may wait at once: nobody reads more."""
_LARGEST = 1 << 18
_KEPT = 4 * LASTS  # seconds after which a file of ours is of no use to anybody
_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"  # none that is taken for another


class Request(Record):
    """One question to a human: may this call run?"""

    id: str
    match: str
    app: str
    tool: str
    arguments: Any  # as people are shown them
    plan: Any  # what the function says that it would do, where it says so
    effects: Any  # what it does to the world, as its author declares
    caller: str
    danger: str | None
    state: str  # "pending" | "granted" | "denied"
    created: float
    ticks: float
    boot: str
    nonce: str

    @property
    def expires(self) -> float:
        """When it is over, by the clock."""
        return self.created + LASTS


class Moment(Record):
    """Now: by the clock, which anybody may set, and since the machine was started."""

    clock: float
    ticks: float
    boot: str


def moment() -> Moment:
    """The present moment."""
    since = getattr(time, "CLOCK_BOOTTIME", None)
    ticks = time.monotonic() if since is None else time.clock_gettime(since)
    return Moment(time.time(), ticks, this_process().partition(":")[0])


def cannot(why: str) -> AuthError:
    """The refusal of a call that a human would have to approve, where that cannot be kept."""
    return AuthError(
        f"Approvals cannot be kept or checked here: {why}.",
        code="E2104",
        suggestion=Suggestion(
            "ask_human",
            "Point TOOLI_STATE_DIR at a folder of this user's that can be written, or run the "
            "command at a terminal.",
        ),
    )


class Approvals:
    """The requests of one user, in a folder that nobody else enters.

    Every method raises E2104 where files or the key fail: what cannot be checked is not granted.
    """

    def __init__(self) -> None:
        from tooli.state.home import state_home
        from tooli.state.keys import key_file

        home = state_home()
        self._folder = os.path.join(home, "approvals")
        try:
            os.makedirs(home, mode=0o700, exist_ok=True)
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            for folder in (home, self._folder):
                _check_alone(folder)
        except OSError as failure:
            raise cannot(_reason(failure)) from None
        key = key_file("approvals")
        if key is None:
            raise cannot("there is no key to seal them with")
        self._key = key

    def bind(self, *parts: Any) -> str:
        """What a request is bound to, as a text that tells nothing."""
        from tooli.call.envelope import encode

        return digest(encode(list(parts), []), 16, self._key).hex()

    def hide(self, secret: Any) -> str:
        """What tells a secret from another one, and nothing to whoever has no key."""
        return digest(repr(secret).encode("utf-8", "surrogatepass"), 16, self._key).hex()

    # -------------------------------------------------------------- for a call

    def take(self, match: str) -> Request | None:
        """A grant for that call, which nobody else gets from now on; of two racers one does.

        A mark says that it is taken. Only what is marked has been used, or is being used: a file
        that somebody puts back changes nothing.
        """
        for request in self._all("granted", match):
            try:
                if claim(self._folder, _mark(request), _KEPT):
                    return request
            except OSError as failure:
                raise cannot(_reason(failure)) from None
        return None

    def use_up(self, request: Request) -> None:
        """The call has run; the mark stays for as long as the grant could be put back."""
        release(self._folder, self._name(request))

    def give_back(self, request: Request) -> None:
        """The call has not run: the grant is there again, for as long as it would have been."""
        release(self._folder, _mark(request))

    def take_denial(self, match: str) -> Request | None:
        """A human's no to that call, told once."""
        for request in self._all("denied", match):
            if self._remove(self._name(request)):
                return request
        return None

    def ask(self, match: str, **facts: Any) -> Request:
        """The request that waits for a human; a new one where none does."""
        waiting = min(self._all("pending", match), key=_age, default=None)
        if waiting is not None:
            return waiting
        self._clear()
        now = moment()
        request = Request(
            match=match,
            id=f"{new_code(4)}-{new_code(4)}",
            state="pending",
            created=now.clock,
            ticks=now.ticks,
            boot=now.boot,
            nonce=os.urandom(16).hex(),
            **facts,
        )
        self._put(self._draft(request), request)
        first = min(self._all("pending", match), key=_age, default=request)
        if first.id != request.id:  # the same call, at the same moment
            self._remove(self._name(request))
        return first

    # -------------------------------------------------------------- for a human

    def waiting(self, app: str | None = None) -> list[Request]:
        """What waits for a human's word, the oldest first: an app's, or all of them."""
        return sorted([one for one in self._all("pending") if app in (None, one.app)], key=_age)

    def settle(self, request: Request, state: str) -> bool:
        """Write a human's word down; False where somebody else was faster."""
        now = moment()
        said = request.replace(state=state, created=now.clock, ticks=now.ticks, boot=now.boot)
        draft = self._draft(said)  # before the request is gone: the disk may be full
        if not self._remove(self._name(request)):
            self._remove(draft)
            return False
        self._put(draft, said)
        return True

    # -------------------------------------------------------------- files

    def _name(self, request: Request) -> str:
        return f"{request.match}.{request.id}.{request.state}"

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._folder)
        except OSError as failure:
            raise cannot(_reason(failure)) from None

    def _all(self, state: str, match: str | None = None) -> Iterator[Request]:
        """The requests in that state that are what they say they are, and whose time it is."""
        now = moment()
        for name in self._names():
            head, _, rest = name.partition(".")
            if rest.endswith(f".{state}") and match in (None, head):
                found = self._read(name)
                if found is not None and _is_current(found, now):
                    yield found

    def _read(self, name: str) -> Request | None:
        """A request, if a file is one; what was not sealed by us is none."""
        from hmac import compare_digest

        try:
            file = os.open(os.path.join(self._folder, name), os.O_RDONLY | _ONLY_FILES)
        except OSError as failure:
            if failure.errno in _NO_FILE:
                return None
            raise cannot(_reason(failure)) from None
        try:
            whole = os.fstat(file).st_mode & 0o170000 == 0o100000
            data = os.read(file, _LARGEST) if whole else b""
        except OSError as failure:
            raise cannot(_reason(failure)) from None
        finally:
            os.close(file)
        body, _, seal = data.rpartition(b"\n")
        if not compare_digest(self._seal(body), seal):
            return None
        from json import loads

        try:
            request = Request(**loads(body))
        except TypeError:  # written by another version of ours
            return None
        return request if self._name(request) == name else None

    def _draft(self, request: Request) -> str:
        """A file with the request in it that is not in its place yet: nobody sees the half of one.

        Arguments that are too large to be read are not shown; the seal is over what they are.
        """
        from tooli.call.envelope import encode

        fields = {name: getattr(request, name) for name in Request.__match_args__}
        body = encode(fields, [])
        if len(body) > _LARGEST // 2:
            shown = f"({len(body)} bytes: too much to be shown)"
            body = encode({**fields, "arguments": shown, "plan": None}, [])
        data = body + b"\n" + self._seal(body)
        draft = f"{os.urandom(8).hex()}.draft"
        try:
            path = os.path.join(self._folder, draft)
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _BINARY, 0o600)
            try:
                while data:
                    data = data[os.write(file, data) :]
            finally:
                os.close(file)
        except OSError as failure:
            self._remove(draft)
            raise cannot(_reason(failure)) from None
        return draft

    def _put(self, draft: str, request: Request) -> None:
        place = os.path.join(self._folder, self._name(request))
        try:
            os.rename(os.path.join(self._folder, draft), place)
        except OSError as failure:
            raise cannot(_reason(failure)) from None

    def _remove(self, name: str) -> bool:
        """Whether it was this process that removed the file."""
        try:
            os.unlink(os.path.join(self._folder, name))
        except FileNotFoundError:
            return False
        except OSError as failure:
            raise cannot(_reason(failure)) from None
        return True

    def _clear(self) -> None:
        """Remove what is of no use any more; refuse where more waits than anybody reads."""
        now = time.time()
        waiting = 0
        for name in self._names():
            path = os.path.join(self._folder, name)
            try:
                age = now - os.stat(path).st_mtime
                if age > _KEPT:
                    os.unlink(path)
                elif name.endswith(".pending") and age < LASTS:
                    waiting += 1
            except OSError:
                continue
        if waiting >= MOST:
            raise cannot(f"{waiting} requests wait already: a human has to look at them first")

    def _seal(self, body: bytes) -> bytes:
        return digest(body, 32, self._key).hex().encode()


_BINARY = getattr(os, "O_BINARY", 0)
_ONLY_FILES = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | _BINARY
_NO_FILE = (ENOENT, ELOOP, ENXIO)  # it has gone; a link, a socket: nothing that we made


def _check_alone(folder: str) -> None:
    """Refuse a folder into which others could put something."""
    if not hasattr(os, "getuid"):
        return
    found = os.stat(folder)
    if found.st_uid != os.getuid():
        raise cannot(f"{folder} belongs to another user")
    if found.st_mode & 0o022:
        raise cannot(f"others may write to {folder}: chmod go-w")


def _mark(request: Request) -> str:
    return f"{request.id}.used"


def _age(request: Request) -> tuple[float, str]:
    return request.created, request.id


def _is_current(request: Request, now: Moment) -> bool:
    """Whether it is time for it: not before it was made, not after its end, by either clock."""
    if request.boot != now.boot:
        return False
    by_clock = 0 <= now.clock - request.created < LASTS
    return by_clock and 0 <= now.ticks - request.ticks < LASTS


def new_code(length: int) -> str:
    """Letters that are easy to type and hard to guess."""
    return "".join([_LETTERS[byte & 31] for byte in os.urandom(length)])


def _reason(failure: OSError) -> str:
    place = f"{failure.filename}: " if failure.filename else ""
    return f"{place}{(failure.strerror or 'it failed').lower()}"
