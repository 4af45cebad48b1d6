"""Plan to write, update or remove skill folders, and managed blocks in Markdown files.

`.tooli.json` beside SKILL.md lists the files that we wrote with their digests, and how many parent
folders we created. An edited file is recognized even if the folder is copied to another machine.

A managed block is the part of a Markdown file that tooli owns:

    <!-- tooli:file-tools begin sha256=… -->
    …
    <!-- tooli:file-tools end -->

The digest covers the text between the markers. The rest of the file belongs to a person. One
newline is added before the block and one after it, so that removing the block restores the original
bytes. A file that starts with the block was created for it, and is deleted if nothing else remains.
"""

from __future__ import annotations

import json
import os
import re

from tooli.core import Record
from tooli.describe.agent_documents import build_skill_files
from tooli.describe.front_matter import with_choices_of, with_command_of_block
from tooli.describe.sections import AppInfo, collect_app_info
from tooli.errors import ConflictError, Suggestion
from tooli.install.file_changes import (
    FileChange,
    InstallStep,
    digest,
    display_path,
    is_same_text,
    parent_folders,
    read_file,
    resolve_path,
    single_change,
)
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tooli.core.protocols import JsonObject, ToolSource

# ------------------------------------------------------------------ skill folders


MANIFEST = ".tooli.json"

SKILL_FOLDER = "_skill"
"""Folder of the skill in the top-level package of the app."""


def top_level_package(module: str) -> str:
    """Return the outermost package of a module."""
    return module.partition(".")[0]


def read_packaged_skill(app: ToolSource) -> dict[str, str] | None:
    """Return the skill files that the app's package was built with, or None."""
    module_globals: JsonObject = app._state.module_globals
    package = top_level_package(str(module_globals.get("__package__") or ""))
    if not package:
        return None
    depth = str(module_globals["__package__"]).count(".") + 1
    package_dir = str(module_globals.get("__file__") or "")
    for _ in range(depth):
        package_dir = os.path.dirname(package_dir)
    folder = os.path.join(package_dir, SKILL_FOLDER)
    files: dict[str, str] = {}
    for directory, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, encoding="utf-8", newline="") as text:
                files[os.path.relpath(path, folder).replace(os.sep, "/")] = text.read()
    return dict(sorted(files.items(), key=lambda item: (item[0] != "SKILL.md", item[0]))) or None


def app_skill_files(app: ToolSource, command: Sequence[str] = ()) -> dict[str, str]:
    """Return the files of an app's skill by path, from its package if that contains them.

    With `command`, they are generated: the command lines in them start with it.
    """
    packaged = None if command else read_packaged_skill(app)
    if packaged is not None:
        return packaged
    return build_skill_files(collect_app_info(app).with_command(command))


def installed_command(app: ToolSource, folder: str) -> tuple[str, ...]:
    """Return the command that starts the program in an installed skill; () if it is its name."""
    text = read_file(os.path.join(os.path.realpath(folder), "SKILL.md")) or b""
    return with_choices_of(AppInfo(app._state.name, ()), text.decode("utf-8", "replace")).command


def command_of_block(app: ToolSource, path: str) -> tuple[str, ...]:
    """Return the command that starts the program in the app's block of a document; () if none."""
    app_info = AppInfo(app._state.name, ())
    text = (read_file(os.path.realpath(path)) or b"").decode("utf-8", "replace")
    block = find_block(text.replace("\r\n", "\n"), app_info.name, path)
    return () if block is None else with_command_of_block(app_info, block.body).command


def plan_skill(path: str, agent: str, app: str, files: Mapping[str, str], root: str) -> InstallStep:
    """Plan to write these files into the folder, and to delete other files that we wrote.

    The folder must be below `root`. A file in it that is a link is a conflict.
    """
    folder = resolve_path(path, root)
    digests, folders_created = _read_manifest(folder, files)
    wanted = {path: text.encode() for path, text in files.items()}
    changes: list[FileChange] = []
    edited: list[FileChange] = []
    found = False
    for name, after in wanted.items():
        file_path = os.path.join(folder, *name.split("/"))
        before = read_file(file_path)
        found = found or before is not None
        if before is not None and is_same_text(before, after):
            continue
        change = FileChange(file_path, before, after)
        changes.append(change)
        if before is not None and digest(before) != digests.get(name):
            edited.append(change)
    for name in digests.keys() - wanted.keys():
        file_path = os.path.join(folder, *name.split("/"))
        before = read_file(file_path)
        if before is not None and digest(before) == digests[name]:
            changes.append(FileChange(file_path, before, None))  # an edited file stays
    if folders_created is None:
        folders_created = _count_created_folders(folder)
    changes += _manifest_changes(
        folder, app, {name: digest(text) for name, text in wanted.items()}, folders_created
    )
    if not found:
        return InstallStep(path, agent, "absent", "created", tuple(changes))
    if not changes:
        return InstallStep(path, agent, "current", "current")
    state = "edited" if edited else "stale"
    return InstallStep(path, agent, state, "updated", tuple(changes), tuple(edited))


def plan_skill_removal(path: str, agent: str, files: Mapping[str, str], root: str) -> InstallStep:
    """Plan to remove our files from the folder, which must be below `root`."""
    folder = resolve_path(path, root)
    digests, folders_created = _read_manifest(folder, files)
    if folders_created is None:  # no manifest: only files equal to what we would write are ours
        digests = {name: digest(text.encode()) for name, text in files.items()}
    changes: list[FileChange] = []
    edited: list[FileChange] = []
    for name, recorded_digest in sorted(digests.items()):
        file_path = os.path.join(folder, *name.split("/"))
        before = read_file(file_path)
        if before is None or (folders_created is None and digest(before) != recorded_digest):
            continue
        change = FileChange(file_path, before, None)
        changes.append(change)
        if digest(before) != recorded_digest:
            edited.append(change)
    manifest = os.path.join(folder, MANIFEST)
    manifest_data = read_file(manifest) if folders_created is not None else None
    if manifest_data is not None:
        changes.append(FileChange(manifest, manifest_data, None))
    if not changes:
        return InstallStep(path, agent, "absent", "absent")
    state = "edited" if edited else _removal_state(digests, files)
    prune = _prune_candidates(folder, digests, folders_created or 0)
    return InstallStep(path, agent, state, "removed", tuple(changes), tuple(edited), prune)


def _removal_state(digests: Mapping[str, str], files: Mapping[str, str]) -> str:
    now = {path: digest(text.encode()) for path, text in files.items()}
    return "current" if digests == now else "stale"


def _prune_candidates(
    folder: str, digests: Mapping[str, str], folders_created: int
) -> tuple[str, ...]:
    """Return the folders that may be left empty, innermost first."""
    inner = {os.path.dirname(os.path.join(folder, *path.split("/"))) for path in digests}
    inner.discard(folder)
    above = parent_folders(folder, folders_created)
    return (*sorted(inner, key=len, reverse=True), folder, *above)


# ------------------------------------------------------------------ manifest


def _read_manifest(folder: str, wanted: Collection[str] = ()) -> tuple[dict[str, str], int | None]:
    """Return the digests of the files that we wrote, and how many parent folders we created.

    The number is None if there is no readable manifest. A manifest is not trusted, since anybody
    can edit it. Only names that tooli generates count.
    """
    try:
        data = json.loads(read_file(os.path.join(folder, MANIFEST)) or b"")
    except (ValueError, RecursionError):
        return {}, None
    files = data.get("files") if is_object(data) else None
    if not is_object(files):
        return {}, None
    folders_created = data.get("folders")
    digests = {
        name: value
        for name, value in files.items()
        if isinstance(value, str) and (name in wanted or _GENERATED_NAME.fullmatch(name))
    }
    is_valid = isinstance(folders_created, int) and 0 <= folders_created <= 2
    return digests, folders_created if is_valid else 0


_GENERATED_NAME = re.compile(r"SKILL\.md|references/[\w-][\w.-]*\.md")
"""The names of the files in a skill, of this or an earlier version of the app."""


def _manifest_changes(
    folder: str, app: str, digests: dict[str, str], folders_created: int
) -> list[FileChange]:
    """Return the change of the manifest, if it changes."""
    manifest_path = os.path.join(folder, MANIFEST)
    manifest = {"app": app, "folders": folders_created, "files": digests}
    after = (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode()
    before = read_file(manifest_path)
    return (
        []
        if before is not None and is_same_text(before, after)
        else [FileChange(manifest_path, before, after)]
    )


def _count_created_folders(folder: str) -> int:
    """Return how many parent folders tooli creates now, or created earlier for another app."""
    above = os.path.dirname(folder)
    if not os.path.isdir(above):
        return 1 + (not os.path.isdir(os.path.dirname(above)))
    siblings = [os.path.join(above, name) for name in sorted(os.listdir(above))]
    return max([_folders_created(path) for path in siblings if os.path.isdir(path)], default=0)


def _folders_created(folder: str) -> int:
    """Return the number in the manifest of a skill; 0 if it has no usable manifest."""
    try:
        return _read_manifest(folder)[1] or 0
    except (ConflictError, OSError):  # the folder or the manifest is a link
        return 0


# ------------------------------------------------------------------ managed blocks


_BEGIN_MARKER = "<!-- tooli:{} begin sha256="
_END_MARKER = "<!-- tooli:{} end -->"


class ManagedBlock(Record):
    """A block in a text."""

    start: int
    stop: int  # after the end marker
    body: str
    digest: str


def plan_block(path: str, agent: str, app: str, body: str, root: str) -> InstallStep:
    """Plan to write our block with this text into the file, which must be below `root`."""
    file_path = resolve_path(path, root)
    before = read_file(file_path)
    text = _decode(before)
    found = find_block(text, app, path)
    newline = "\r\n" if "\r\n" in text else "\n"
    block_text = add_markers(app, body).replace("\n", newline)
    if found is None:
        after = block_text + newline if before is None else text + newline + block_text + newline
        action = "created" if before is None else "updated"
        change = FileChange(file_path, before, _encode(after))
        return single_change(path, agent, "absent", action, change)
    change = FileChange(
        file_path, before, _encode(text[: found.start] + block_text + text[found.stop :])
    )
    if change.before == change.after:
        return InstallStep(path, agent, "current", "current")
    is_ours = _is_unmodified(found) or _normalize_body(found.body) == _normalize_body(body)
    return single_change(path, agent, "stale" if is_ours else "edited", "updated", change)


def plan_block_removal(path: str, agent: str, app: str, body: str, root: str) -> InstallStep:
    """Plan to remove our block from the file, which must be below `root`."""
    file_path = resolve_path(path, root)
    before = read_file(file_path)
    text = _decode(before)
    found = find_block(text, app, path)
    if found is None:
        return InstallStep(path, agent, "absent", "absent")
    after = _encode(_remove_block(text, found))
    change = FileChange(file_path, before, after if found.start or after else None)
    if not _is_unmodified(found):
        state = "edited"
    else:
        state = "current" if _normalize_body(found.body) == _normalize_body(body) else "stale"
    return single_change(path, agent, state, "removed", change)


def has_block(path: str, app: str, root: str) -> bool:
    """True if a file below `root` contains the app's block."""
    return find_block(_decode(read_file(resolve_path(path, root))), app, path) is not None


def find_block(text: str, app: str, path: str = "the file") -> ManagedBlock | None:
    """Return the app's block in a text, or None; raise ConflictError if its markers are damaged."""
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
