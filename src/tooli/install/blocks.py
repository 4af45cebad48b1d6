"""Blocks: a marked part of a Markdown file that is ours; the rest is a person's.

    <!-- tooli:file-tools begin sha256=… -->
    …
    <!-- tooli:file-tools end -->

The digest is that of the text between the lines. One newline is added before the block and one
after it, whatever stands there, so that taking the block out gives back the very bytes that
were there before; a file that begins with the block was made for it, and goes with it.
"""

from __future__ import annotations

from tooli.contract.record import Record
from tooli.errors import ConflictError, Suggestion
from tooli.install.places import shown
from tooli.install.plan import Change, Step, digest, read, target

_BEGIN = "<!-- tooli:{} begin sha256="
_END = "<!-- tooli:{} end -->"


class Block(Record):
    """A block that was found in a text."""

    start: int
    stop: int  # behind the end marker
    body: str
    digest: str


def plan_block(path: str, agent: str, app: str, body: str) -> Step:
    """What has to be done for the file to hold our block with this text."""
    at = target(path)
    before = read(at)
    text = _decode(before)
    found = find_block(text, app, path)
    newline = "\r\n" if "\r\n" in text else "\n"
    written = marked(app, body).replace("\n", newline)
    if found is None:
        after = written + newline if before is None else text + newline + written + newline
        action = "created" if before is None else "updated"
        return Step(path, agent, "absent", action, (Change(at, before, _encode(after)),))
    change = Change(at, before, _encode(text[: found.start] + written + text[found.stop :]))
    if change.before == change.after:
        return Step(path, agent, "current", "current")
    if _is_ours(found) or _trim(found.body) == _trim(body):
        return Step(path, agent, "stale", "updated", (change,))
    return Step(path, agent, "edited", "updated", (change,), (change,))


def plan_block_removal(path: str, agent: str, app: str, body: str) -> Step:
    """What has to be done for the file to hold no block of ours."""
    at = target(path)
    before = read(at)
    text = _decode(before)
    found = find_block(text, app, path)
    if found is None:
        return Step(path, agent, "absent", "absent")
    after = _encode(_without(text, found))
    change = Change(at, before, after if found.start or after else None)
    if not _is_ours(found):
        return Step(path, agent, "edited", "removed", (change,), (change,))
    state = "current" if _trim(found.body) == _trim(body) else "stale"
    return Step(path, agent, state, "removed", (change,))


def has_block(path: str, app: str) -> bool:
    """Whether a file holds the app's block."""
    return find_block(_decode(read(path)), app, path) is not None


def find_block(text: str, app: str, path: str = "the file") -> Block | None:
    """The app's block in a text; markers that do not make a block are refused."""
    name = marker_name(app)
    begin, end = _BEGIN.format(name), _END.format(name)
    begins, ends = text.count(begin), text.count(end)
    if not begins and not ends:
        return None
    start, stop = text.find(begin), text.find(end)
    head = text.find("-->", start)
    if begins != 1 or ends != 1 or not -1 < head < stop:
        line = text.count("\n", 0, max(min(start, stop), 0)) + 1
        raise ConflictError(
            f"{shown(path)}, line {line}: the markers of {app}'s block are damaged.",
            suggestion=Suggestion(
                "ask_human",
                f"Each must stand there once, in this order: {begin}… --> and {end}; "
                "or take out what is left of the block.",
            ),
        )
    written = text[start + len(begin) : head].strip()
    return Block(start, stop + len(end), text[head + 3 : stop], written)


def marker_name(app: str) -> str:
    """The app's name as a comment of HTML can hold it."""
    name = " ".join(app.split())
    while "--" in name:
        name = name.replace("--", "-")
    return name.replace(">", "").replace("<", "") or "app"


def marked(app: str, body: str) -> str:
    """A text between its markers."""
    name, inside = marker_name(app), _trim(body)
    begin = f"{_BEGIN.format(name)}{digest(inside.encode())} -->"
    return f"{begin}\n{inside}\n{_END.format(name)}"


def _trim(body: str) -> str:
    """What stands between the markers; one in an author's text must not end the block."""
    return body.replace("\r\n", "\n").strip("\n").replace("<!-- tooli:", "<!-- tooli ")


def _is_ours(found: Block) -> bool:
    return digest(_encode(_trim(found.body))) == found.digest


def _without(text: str, found: Block) -> str:
    head, tail = text[: found.start], text[found.stop :]
    if tail.startswith(("\n", "\r\n")):
        tail = tail.partition("\n")[2]
    if not head and tail.lstrip("\r\n").startswith("<!-- tooli:"):
        return tail.lstrip("\r\n")  # the file was made for us, and now it is another app's
    before = head[:-1].removesuffix("\r") if head.endswith("\n") else head
    joined = before and tail and not before.endswith("\n")
    return (head if joined else before) + tail


def _decode(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "surrogateescape")


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
