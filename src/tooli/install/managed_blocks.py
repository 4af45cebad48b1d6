"""Write and remove managed blocks, the marked parts of Markdown files that tooli owns.

    <!-- tooli:file-tools begin sha256=… -->
    …
    <!-- tooli:file-tools end -->

The digest covers the text between the markers. The rest of the file belongs to a person. One
newline is added before the block and one after it, so that removing the block restores the original
bytes. A file that starts with the block was created for it, and is deleted if nothing else remains.
"""

from __future__ import annotations

from tooli.core.record import Record
from tooli.errors import ConflictError, Suggestion
from tooli.install.agent_paths import display_path
from tooli.install.file_changes import FileChange, InstallStep, digest, read_file, resolve_link

_BEGIN_MARKER = "<!-- tooli:{} begin sha256="
_END_MARKER = "<!-- tooli:{} end -->"


class ManagedBlock(Record):
    """A block in a text."""

    start: int
    stop: int  # after the end marker
    body: str
    digest: str


def plan_block(path: str, agent: str, app: str, body: str) -> InstallStep:
    """Plan to write our block with this text into the file."""
    file_path = resolve_link(path)
    before = read_file(file_path)
    text = _decode(before)
    found = find_block(text, app, path)
    newline = "\r\n" if "\r\n" in text else "\n"
    block_text = add_markers(app, body).replace("\n", newline)
    if found is None:
        after = block_text + newline if before is None else text + newline + block_text + newline
        action = "created" if before is None else "updated"
        return InstallStep(
            path, agent, "absent", action, (FileChange(file_path, before, _encode(after)),)
        )
    change = FileChange(
        file_path, before, _encode(text[: found.start] + block_text + text[found.stop :])
    )
    if change.before == change.after:
        return InstallStep(path, agent, "current", "current")
    if _is_unmodified(found) or _normalize_body(found.body) == _normalize_body(body):
        return InstallStep(path, agent, "stale", "updated", (change,))
    return InstallStep(path, agent, "edited", "updated", (change,), (change,))


def plan_block_removal(path: str, agent: str, app: str, body: str) -> InstallStep:
    """Plan to remove our block from the file."""
    file_path = resolve_link(path)
    before = read_file(file_path)
    text = _decode(before)
    found = find_block(text, app, path)
    if found is None:
        return InstallStep(path, agent, "absent", "absent")
    after = _encode(_remove_block(text, found))
    change = FileChange(file_path, before, after if found.start or after else None)
    if not _is_unmodified(found):
        return InstallStep(path, agent, "edited", "removed", (change,), (change,))
    state = "current" if _normalize_body(found.body) == _normalize_body(body) else "stale"
    return InstallStep(path, agent, state, "removed", (change,))


def has_block(path: str, app: str) -> bool:
    """True if a file contains the app's block."""
    return find_block(_decode(read_file(path)), app, path) is not None


def find_block(text: str, app: str, path: str = "the file") -> ManagedBlock | None:
    """Return the app's block in a text, or None; raise a ConflictError if a marker is missing."""
    name = marker_name(app)
    begin, end = _BEGIN_MARKER.format(name), _END_MARKER.format(name)
    begins, ends = text.count(begin), text.count(end)
    if not begins and not ends:
        return None
    start, stop = text.find(begin), text.find(end)
    head = text.find("-->", start)
    if begins != 1 or ends != 1 or not -1 < head < stop:
        line = text.count("\n", 0, max(min(start, stop), 0)) + 1
        raise ConflictError(
            f"{display_path(path)}, line {line}: the markers of {app}'s block are damaged.",
            suggestion=Suggestion(
                "ask_human",
                f"Each marker must occur once, in this order: {begin}… --> and {end}. "
                "Restore them, or remove the rest of the block.",
            ),
        )
    recorded_digest = text[start + len(begin) : head].strip()
    return ManagedBlock(start, stop + len(end), text[head + 3 : stop], recorded_digest)


def marker_name(app: str) -> str:
    """Return the app's name without characters that an HTML comment cannot contain."""
    name = " ".join(app.split())
    while "--" in name:
        name = name.replace("--", "-")
    return name.replace(">", "").replace("<", "") or "app"


def add_markers(app: str, body: str) -> str:
    """Return the text of a block, enclosed in its markers."""
    name, inside = marker_name(app), _normalize_body(body)
    begin = f"{_BEGIN_MARKER.format(name)}{digest(inside.encode())} -->"
    return f"{begin}\n{inside}\n{_END_MARKER.format(name)}"


def _normalize_body(body: str) -> str:
    """Return the body with normalized newlines. Markers inside it are changed to plain comments."""
    return body.replace("\r\n", "\n").strip("\n").replace("<!-- tooli:", "<!-- tooli ")


def _is_unmodified(block: ManagedBlock) -> bool:
    return digest(_encode(_normalize_body(block.body))) == block.digest


def _remove_block(text: str, block: ManagedBlock) -> str:
    head, tail = text[: block.start], text[block.stop :]
    if tail.startswith(("\n", "\r\n")):
        tail = tail.partition("\n")[2]
    if not head and tail.lstrip("\r\n").startswith("<!-- tooli:"):
        # The file was created for this block. A block of another app follows.
        return tail.lstrip("\r\n")
    before = head[:-1].removesuffix("\r") if head.endswith("\n") else head
    joined = before and tail and not before.endswith("\n")
    return (head if joined else before) + tail


def _decode(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "surrogateescape")


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
