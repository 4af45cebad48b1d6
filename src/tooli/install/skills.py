"""Skills: a folder of files that agents read, written, kept current and taken away again.

Beside SKILL.md stands `.tooli.json`: which files we wrote, with their digests, and how many
of the folders above were made for them. So a file that a person has changed is known on any
machine that the folder is copied to.
"""

from __future__ import annotations

import json
import os

from tooli.contract.jsonable import is_object
from tooli.install.plan import Change, Step, digest, read, same, target

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MANIFEST = ".tooli.json"


def skill_of(app: Any) -> dict[str, str]:
    """The files of an app's skill, by their paths in its folder: the packaged one comes first."""
    from tooli.install.packaged import packaged_skill

    packaged = packaged_skill(app)
    if packaged is not None:
        return packaged
    from tooli.views.portrait import portray
    from tooli.views.skill import skill_files

    return skill_files(portray(app))


def plan_skill(folder: str, agent: str, app: str, files: Mapping[str, str]) -> Step:
    """What has to be done for the folder to hold exactly these files of ours."""
    known, made = _manifest(folder)
    wanted = {path: text.encode() for path, text in files.items()}
    changes: list[Change] = []
    edited: list[Change] = []
    found = False
    for path, after in wanted.items():
        at = target(os.path.join(folder, *path.split("/")))
        before = read(at)
        found = found or before is not None
        if before is not None and same(before, after):
            continue
        change = Change(at, before, after)
        changes.append(change)
        if before is not None and digest(before) != known.get(path):
            edited.append(change)
    for path in known.keys() - wanted.keys():
        at = os.path.join(folder, *path.split("/"))
        before = read(at)
        if before is not None and digest(before) == known[path]:
            changes.append(Change(at, before, None))  # an edited one is the person's from now on
    if made is None:
        made = _folders_to_make(folder)
    changes += _noted(folder, app, {path: digest(text) for path, text in wanted.items()}, made)
    if not found:
        return Step(folder, agent, "absent", "created", tuple(changes))
    if not changes:
        return Step(folder, agent, "current", "current")
    state = "edited" if edited else "stale"
    return Step(folder, agent, state, "updated", tuple(changes), tuple(edited))


def plan_removal(folder: str, agent: str, files: Mapping[str, str]) -> Step:
    """What has to be done for the folder to hold nothing of ours."""
    known, made = _manifest(folder)
    if made is None:  # nobody wrote down what is ours: what we would write now is
        known = {path: digest(text.encode()) for path, text in files.items()}
    changes: list[Change] = []
    edited: list[Change] = []
    for path, written in sorted(known.items()):
        at = os.path.join(folder, *path.split("/"))
        before = read(at)
        if before is None or (made is None and digest(before) != written):
            continue
        change = Change(at, before, None)
        changes.append(change)
        if digest(before) != written:
            edited.append(change)
    manifest = os.path.join(folder, MANIFEST)
    noted = read(manifest) if made is not None else None
    if noted is not None:
        changes.append(Change(manifest, noted, None))
    if not changes:
        return Step(folder, agent, "absent", "absent")
    state = "edited" if edited else _state(known, files)
    prune = _emptied(folder, known, made or 0)
    return Step(folder, agent, state, "removed", tuple(changes), tuple(edited), prune)


def _state(known: Mapping[str, str], files: Mapping[str, str]) -> str:
    now = {path: digest(text.encode()) for path, text in files.items()}
    return "current" if known == now else "stale"


def _emptied(folder: str, known: Mapping[str, str], made: int) -> tuple[str, ...]:
    """The folders that may be left empty, innermost first."""
    inner = {os.path.dirname(os.path.join(folder, *path.split("/"))) for path in known}
    inner.discard(folder)
    above: list[str] = []
    at = folder
    for _ in range(made):
        at = os.path.dirname(at)
        above.append(at)
    return (*sorted(inner, key=len, reverse=True), folder, *above)


# ------------------------------------------------------------------ what we wrote


def _manifest(folder: str) -> tuple[dict[str, str], int | None]:
    """The digests of the files that we wrote, and how many folders above them we made.

    No number: there is no manifest, or none that can be read.
    """
    try:
        said = json.loads(read(os.path.join(folder, MANIFEST)) or b"")
    except ValueError:
        return {}, None
    files = said.get("files") if is_object(said) else None
    if not is_object(files):
        return {}, None
    made = said.get("folders")
    inside = {
        path: value for path, value in files.items() if isinstance(value, str) and _below(path)
    }
    return inside, made if isinstance(made, int) and 0 <= made <= 2 else 0


def _below(path: str) -> bool:
    """Whether a path leads nowhere but into the folder: a manifest is a file that anybody edits."""
    parts = path.replace("\\", "/").split("/")
    return not os.path.splitdrive(path)[0] and not {"", ".", ".."} & {*parts}


def _noted(folder: str, app: str, digests: dict[str, str], made: int) -> list[Change]:
    """The manifest, where it has to change."""
    at = os.path.join(folder, MANIFEST)
    said = {"app": app, "folders": made, "files": digests}
    after = (json.dumps(said, indent=2, ensure_ascii=False) + "\n").encode()
    before = read(at)
    return [] if before is not None and same(before, after) else [Change(at, before, after)]


def _folders_to_make(folder: str) -> int:
    """How many folders above this one are ours: missing ones, and what another app made."""
    above = os.path.dirname(folder)
    if not os.path.isdir(above):
        return 1 + (not os.path.isdir(os.path.dirname(above)))
    siblings = [os.path.join(above, name) for name in sorted(os.listdir(above))]
    return max([_manifest(path)[1] or 0 for path in siblings if os.path.isdir(path)], default=0)
