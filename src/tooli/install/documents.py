"""Documents in a project: written where they belong, and held against the code later.

generate-skill --out skills   docs llms --out .   docs man --out man
docs check                    which of them no longer say what the code says
"""

from __future__ import annotations

import os

from tooli.contract.record import Record
from tooli.errors import NotFoundError, StateError, Suggestion
from tooli.install.blocks import find_block, marked, plan_block
from tooli.install.plan import Change, Step, read, same, target, unified
from tooli.install.skills import plan_skill
from tooli.install.writing import perform

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tooli.views.portrait import Portrait

_OTHERS = frozenset(("node_modules", "__pycache__", "dist", "build", "venv", "site-packages"))
"""Folders in which nobody keeps documents."""


# ------------------------------------------------------------------ writing


def write_files(
    folder: str, files: Mapping[str, str], *, force: bool, dry: bool, by_hand: bool = False
) -> list[dict[str, str]]:
    """Put files into a folder; one that is there and seems to be somebody else's is refused.

    `by_hand`: people go on writing such files, so that any difference may be theirs, unless
    the file is signed.
    """

    def plan() -> list[Step]:
        return [
            _plan_file(os.path.join(folder, *path.split("/")), text, by_hand)
            for path, text in files.items()
        ]

    return perform(plan, force=force, dry=dry)


def write_document(
    portrait: Portrait, form: str, folder: str, *, force: bool, dry: bool
) -> list[dict[str, str]]:
    """Put a skill into its own folder below, or a marked block into AGENTS.md or CLAUDE.md."""
    from tooli.views.skill import skill_files, skill_slug

    name = portrait.name

    def plan() -> list[Step]:
        if form == "skill":
            home = os.path.abspath(os.path.join(folder, skill_slug(name)))
            return [plan_skill(home, "agents", name, skill_files(portrait))]
        file, body = _block_of(portrait, form)
        return [plan_block(os.path.abspath(os.path.join(folder, file)), "agents", name, body)]

    return perform(plan, force=force, dry=dry)


def print_document(portrait: Portrait, form: str) -> str:
    """The same as a text, with the marks by which it is known again later."""
    from tooli.views.markdown import page
    from tooli.views.skill import write_skill

    if form == "skill":
        return write_skill(portrait)
    file, body = _block_of(portrait, form)
    return page(f"# {file}", marked(portrait.name, body))


def _block_of(portrait: Portrait, form: str) -> tuple[str, str]:
    from tooli.views.agents_md import agents_block
    from tooli.views.claude_md import claude_block

    if form == "agents-md":
        return "AGENTS.md", agents_block(portrait)
    return "CLAUDE.md", claude_block(portrait)


def _plan_file(path: str, text: str, by_hand: bool) -> Step:
    at = target(os.path.abspath(path))
    before, after = read(at), text.encode()
    change = Change(at, before, after)
    if before is None:
        return Step(path, "", "absent", "created", (change,))
    if same(before, after):
        return Step(path, "", "current", "current")
    if _is_untouched(before) if by_hand else _head(before) == _head(after):
        return Step(path, "", "stale", "updated", (change,))
    return Step(path, "", "edited", "updated", (change,), (change,))


def _is_untouched(before: bytes) -> bool:
    from tooli.views.export import is_untouched

    return is_untouched(before.decode("utf-8", "replace"))


# ------------------------------------------------------------------ checking


class Found(Record):
    """A document of the app's that stands in a project, as it is and as it should be."""

    path: str
    before: bytes
    after: bytes | None  # None: the app has no such page any more

    @property
    def current(self) -> bool:
        """Whether it says what the code says."""
        return self.after is not None and same(self.before, self.after)


def check_documents(app: Any, paths: list[str]) -> list[Found]:
    """Every document of the app's at or below the paths; none at all is an error."""
    from tooli.views.portrait import portray

    desk = _Desk(portray(app))
    found = [one for path in paths for file in _walk(path) for one in desk.look(file)]
    if not found:
        raise NotFoundError(
            f"There is no document of {desk.portrait.name} in {', '.join(paths)}.",
            suggestion=Suggestion(
                "retry_with_modified_input",
                "Name the files or folders, or write some first: generate-skill --out DIR.",
            ),
        )
    return found


def stale(found: list[Found]) -> tuple[StateError | None, list[str]]:
    """The error for documents that are not current, and the diffs; None where all of them are."""
    old = [one for one in found if not one.current]
    if not old:
        return None, []
    diffs = [unified(Change(os.path.abspath(one.path), one.before, one.after)) for one in old]
    told = [{"path": one.path, "diff": diff} for one, diff in zip(old, diffs, strict=True)]
    error = StateError(
        f"Not current: {', '.join([one.path for one in old])}.",
        suggestion=Suggestion("fix", "Write them again with the command that made them."),
        details={"stale": told},
    )
    return error, diffs


def _walk(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        if not os.path.exists(path):
            raise NotFoundError(f"There is no {path}.", field="paths")
        yield path
        return
    for place, folders, names in os.walk(path):
        folders[:] = sorted(
            [name for name in folders if name not in _OTHERS and not _is_hidden(place, name)]
        )
        yield from [os.path.normpath(os.path.join(place, name)) for name in sorted(names)]


def _is_hidden(place: str, name: str) -> bool:
    """Whether a folder is nobody's to look into: hidden, but for those that agents read."""
    return name[:1] == "." and not os.path.isdir(os.path.join(place, name, "skills"))


class _Desk:
    """Where the documents of an app are told from all other files."""

    def __init__(self, portrait: Portrait) -> None:
        from tooli.views.skill import skill_files, skill_slug

        self.portrait = portrait
        self._slug = skill_slug(portrait.name)
        self._skill = skill_files(portrait)
        self._named: dict[str, str] | None = None

    def look(self, path: str) -> Iterator[Found]:
        """The document that a file is; nothing where it is none of ours."""
        name = os.path.basename(path)
        if name == "SKILL.md":
            yield from self._look_at_skill(path)
        elif name in ("AGENTS.md", "CLAUDE.md"):
            yield from self._look_at_block(path, name)
        elif name in self._pages():
            before = read(path) or b""
            after = _as_dated(before, self._pages()[name])
            if _head(before) == _head(after):
                yield Found(path, before, after)
        elif name.endswith(".py"):
            yield from self._look_at_code(path)
        elif os.path.basename(os.path.dirname(os.path.abspath(path))) == "references":
            yield from self._look_at_page(path)

    def _look_at_skill(self, path: str) -> Iterator[Found]:
        from tooli.views.skill import write_skill

        before = read(path) or b""
        if f"\nname: {self._slug}\n".encode() not in _unix(before):
            return
        home = os.path.dirname(path)
        if not os.path.isdir(os.path.join(home, "references")):
            yield Found(path, before, _as_kept(before, write_skill(self.portrait)))
            return
        yield Found(path, before, _as_kept(before, self._skill["SKILL.md"]))
        yield from self._missing(home)

    def _missing(self, home: str) -> Iterator[Found]:
        """The pages of commands that should stand beside a document, and do not."""
        for place, text in self._skill.items():
            file = os.path.join(home, *place.split("/"))
            if not os.path.exists(file):
                yield Found(file, b"", text.encode())

    def _look_at_page(self, path: str) -> Iterator[Found]:
        """The page of a command; of one that is no more as well."""
        before = read(path) or b""
        if before.startswith(f"# {self.portrait.name} ".encode()):
            text = self._skill.get(f"references/{os.path.basename(path)}")
            yield Found(path, before, None if text is None else _as_kept(before, text))

    def _look_at_block(self, path: str, name: str) -> Iterator[Found]:
        from tooli.views.claude_md import claude_block

        text = (read(path) or b"").decode("utf-8", "replace").replace("\r\n", "\n")
        block = find_block(text, self.portrait.name, path)
        if block is None:
            return
        body = _block_of(self.portrait, "agents-md" if name == "AGENTS.md" else "claude-md")[1]
        if name == "CLAUDE.md" and "@AGENTS.md" in block.body:
            body = claude_block(self.portrait, thin=True)
        yield Found(path, block.body.strip("\n").encode(), body.strip("\n").encode())

    def _look_at_code(self, path: str) -> Iterator[Found]:
        from shlex import quote

        before = read(path) or b""
        mark = f"\n    {quote(self.portrait.name)} export ".encode()
        at = before[:4096].find(mark)
        if at >= 0:
            words = before[at:].decode("utf-8", "replace").strip().partition("\n")[0]
            files = _exported(self.portrait, words)
            name = os.path.basename(path)
            texts = [text for place, text in files.items() if place.rpartition("/")[2] == name]
            yield Found(path, before, texts[0].encode() if texts else None)

    def _pages(self) -> dict[str, str]:
        """The documents that are known by their names."""
        if self._named is None:
            from tooli.views.llms_txt import llms_full, llms_txt
            from tooli.views.man import man_pages

            self._named = {
                "llms.txt": llms_txt(self.portrait),
                "llms-full.txt": llms_full(self.portrait),
                **man_pages(self.portrait),
            }
        return self._named


def _exported(portrait: Portrait, line: str) -> dict[str, str]:
    """The files of an export that says itself how it was made."""
    from itertools import pairwise
    from shlex import split

    from tooli.views.export import export

    words = split(line)[2:]
    said = {flag[2:]: value for flag, value in pairwise(words) if flag[:2] == "--"}
    return export(
        portrait,
        said["target"],
        said["mode"],
        command=said.get("command"),
        app=said.get("app"),
        model=said.get("model"),
        with_tests="--with-tests" in words,
    )


def _head(data: bytes) -> bytes:
    return data.partition(b"\n")[0].rstrip()


def _unix(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n")


def date_of_build() -> str:
    """The date that a page is given: that of the build, where somebody says it."""
    from tooli.views.man import UNDATED

    said = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not said.isdecimal():
        return UNDATED
    from time import gmtime, strftime

    return strftime("%Y-%m-%d", gmtime(int(said)))


def _as_dated(before: bytes, text: str) -> bytes:
    """What we would write, with the date that a manual page was given before."""
    from re import search

    from tooli.views.man import UNDATED

    found = search(rb'\n\.TH "[^"\n]*" 1 "(\d{4}-\d\d-\d\d)"', before)
    return text.encode() if found is None else text.replace(UNDATED, found[1].decode(), 1).encode()


def _as_kept(before: bytes, text: str) -> bytes:
    """What we would write, with the outputs of examples that somebody has run before."""
    from re import finditer

    for ran in finditer(rb"(```bash\n[^\n]*\n```\n)(\n```json\n.*?\n```\n)", _unix(before)):
        call, output = ran.group(1).decode(), ran.group(2).decode("utf-8", "replace")
        if call + output not in text:
            text = text.replace(call, call + output, 1)
    return text.encode()
