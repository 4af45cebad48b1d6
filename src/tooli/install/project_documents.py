"""Documents in a project: written where they belong, and held against the code later.

generate-skill --out skills   docs llms --out .   docs man --out man
docs check                    which of them no longer say what the code says
"""

from __future__ import annotations

import os

from tooli.core.record import Record
from tooli.errors import NotFoundError, StateError, Suggestion
from tooli.install.file_changes import (
    FileChange,
    InstallStep,
    format_diff,
    is_same_text,
    read_file,
    resolve_link,
)
from tooli.install.file_transaction import plan_and_apply
from tooli.install.managed_blocks import add_markers, find_block, plan_block
from tooli.install.skill_folders import plan_skill

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tooli.describe.app_info import AppInfo

_IGNORED_FOLDERS = frozenset(
    ("node_modules", "__pycache__", "dist", "build", "venv", "site-packages")
)
"""Folders in which nobody keeps documents."""


# ------------------------------------------------------------------ writing


def write_files(
    folder: str,
    files: Mapping[str, str],
    *,
    force: bool,
    dry_run: bool,
    is_hand_edited: bool = False,
) -> list[dict[str, str]]:
    """Put files into a folder; one that is there and seems to be somebody else's is refused.

    `by_hand`: people go on writing such files, so that any difference may be theirs, unless
    the file is signed.
    """

    def plan() -> list[InstallStep]:
        return [
            _plan_file(os.path.join(folder, *path.split("/")), text, is_hand_edited)
            for path, text in files.items()
        ]

    return plan_and_apply(plan, force=force, dry_run=dry_run)


def write_document(
    app_info: AppInfo, document_format: str, folder: str, *, force: bool, dry_run: bool
) -> list[dict[str, str]]:
    """Put a skill into its own folder below, or a marked block into AGENTS.md or CLAUDE.md."""
    from tooli.describe.skill import build_skill_files, skill_slug

    name = app_info.name

    def plan() -> list[InstallStep]:
        if document_format == "skill":
            skill_dir = os.path.abspath(os.path.join(folder, skill_slug(name)))
            return [plan_skill(skill_dir, "agents", name, build_skill_files(app_info))]
        file, body = _document_block(app_info, document_format)
        return [plan_block(os.path.abspath(os.path.join(folder, file)), "agents", name, body)]

    return plan_and_apply(plan, force=force, dry_run=dry_run)


def render_marked_document(app_info: AppInfo, document_format: str) -> str:
    """The same as a text, with the marks by which it is known again later."""
    from tooli.describe.markdown import join_blocks
    from tooli.describe.skill import render_skill_md

    if document_format == "skill":
        return render_skill_md(app_info)
    file, body = _document_block(app_info, document_format)
    return join_blocks(f"# {file}", add_markers(app_info.name, body))


def _document_block(app_info: AppInfo, document_format: str) -> tuple[str, str]:
    from tooli.describe.agents_md import render_agents_md_block
    from tooli.describe.claude_md import render_claude_md_block

    if document_format == "agents-md":
        return "AGENTS.md", render_agents_md_block(app_info)
    return "CLAUDE.md", render_claude_md_block(app_info)


def _plan_file(path: str, text: str, is_hand_edited: bool) -> InstallStep:
    file_path = resolve_link(os.path.abspath(path))
    before, after = read_file(file_path), text.encode()
    change = FileChange(file_path, before, after)
    if before is None:
        return InstallStep(path, "", "absent", "created", (change,))
    if is_same_text(before, after):
        return InstallStep(path, "", "current", "current")
    if (
        _is_unmodified_export(before)
        if is_hand_edited
        else _first_line(before) == _first_line(after)
    ):
        return InstallStep(path, "", "stale", "updated", (change,))
    return InstallStep(path, "", "edited", "updated", (change,), (change,))


def _is_unmodified_export(before: bytes) -> bool:
    from tooli.export import is_unmodified

    return is_unmodified(before.decode("utf-8", "replace"))


# ------------------------------------------------------------------ checking


class ProjectDocument(Record):
    """A document of the app's that stands in a project, as it is and as it should be."""

    path: str
    before: bytes
    after: bytes | None  # None: the app has no such page any more

    @property
    def is_current(self) -> bool:
        """Whether it says what the code says."""
        return self.after is not None and is_same_text(self.before, self.after)


def check_documents(app: Any, paths: list[str]) -> list[ProjectDocument]:
    """Every document of the app's at or below the paths; none at all is an error."""
    from tooli.describe.app_info import collect_app_info

    finder = _DocumentFinder(collect_app_info(app))
    found = [
        one for path in paths for file in _walk_files(path) for one in finder.find_documents(file)
    ]
    if not found:
        raise NotFoundError(
            f"There is no document of {finder.app_info.name} in {', '.join(paths)}.",
            suggestion=Suggestion(
                "retry_with_modified_input",
                "Name the files or folders, or write some first: generate-skill --out DIR.",
            ),
        )
    return found


def staleness_error(documents: list[ProjectDocument]) -> tuple[StateError | None, list[str]]:
    """The error for documents that are not current, and the diffs; None where all of them are."""
    outdated = [one for one in documents if not one.is_current]
    if not outdated:
        return None, []
    diffs = [
        format_diff(FileChange(os.path.abspath(one.path), one.before, one.after))
        for one in outdated
    ]
    details = [{"path": one.path, "diff": diff} for one, diff in zip(outdated, diffs, strict=True)]
    error = StateError(
        f"Not current: {', '.join([one.path for one in outdated])}.",
        suggestion=Suggestion("fix", "Write them again with the command that made them."),
        details={"stale": details},
    )
    return error, diffs


def _walk_files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        if not os.path.exists(path):
            raise NotFoundError(f"There is no {path}.", field="paths")
        yield path
        return
    for place, folders, names in os.walk(path):
        folders[:] = sorted(
            [
                name
                for name in folders
                if name not in _IGNORED_FOLDERS and not _is_hidden(place, name)
            ]
        )
        yield from [os.path.normpath(os.path.join(place, name)) for name in sorted(names)]


def _is_hidden(folder: str, name: str) -> bool:
    """Whether a folder is nobody's to look into: hidden, but for those that agents read."""
    return name[:1] == "." and not os.path.isdir(os.path.join(folder, name, "skills"))


class _DocumentFinder:
    """Where the documents of an app are told from all other files."""

    def __init__(self, app_info: AppInfo) -> None:
        from tooli.describe.skill import build_skill_files, skill_slug

        self.app_info = app_info
        self._slug = skill_slug(app_info.name)
        self._skill_files = build_skill_files(app_info)
        self._named_pages: dict[str, str] | None = None

    def find_documents(self, path: str) -> Iterator[ProjectDocument]:
        """The document that a file is; nothing where it is none of ours."""
        name = os.path.basename(path)
        if name == "SKILL.md":
            yield from self._find_skill(path)
        elif name in ("AGENTS.md", "CLAUDE.md"):
            yield from self._find_block(path, name)
        elif name in self._pages_by_name():
            before = read_file(path) or b""
            after = _keep_date(before, self._pages_by_name()[name])
            if _first_line(before) == _first_line(after):
                yield ProjectDocument(path, before, after)
        elif name.endswith(".py"):
            yield from self._find_export(path)
        elif os.path.basename(os.path.dirname(os.path.abspath(path))) == "references":
            yield from self._find_reference_page(path)

    def _find_skill(self, path: str) -> Iterator[ProjectDocument]:
        from tooli.describe.skill import render_skill_md

        before = read_file(path) or b""
        if f"\nname: {self._slug}\n".encode() not in _normalize_newlines(before):
            return
        skill_dir = os.path.dirname(path)
        if not os.path.isdir(os.path.join(skill_dir, "references")):
            yield ProjectDocument(
                path, before, _keep_example_outputs(before, render_skill_md(self.app_info))
            )
            return
        yield ProjectDocument(
            path, before, _keep_example_outputs(before, self._skill_files["SKILL.md"])
        )
        yield from self._missing_files(skill_dir)

    def _missing_files(self, skill_dir: str) -> Iterator[ProjectDocument]:
        """The pages of commands that should stand beside a document, and do not."""
        for place, text in self._skill_files.items():
            file = os.path.join(skill_dir, *place.split("/"))
            if not os.path.exists(file):
                yield ProjectDocument(file, b"", text.encode())

    def _find_reference_page(self, path: str) -> Iterator[ProjectDocument]:
        """The page of a command; of one that is no more as well."""
        before = read_file(path) or b""
        if before.startswith(f"# {self.app_info.name} ".encode()):
            text = self._skill_files.get(f"references/{os.path.basename(path)}")
            yield ProjectDocument(
                path, before, None if text is None else _keep_example_outputs(before, text)
            )

    def _find_block(self, path: str, name: str) -> Iterator[ProjectDocument]:
        from tooli.describe.claude_md import render_claude_md_block

        text = (read_file(path) or b"").decode("utf-8", "replace").replace("\r\n", "\n")
        block = find_block(text, self.app_info.name, path)
        if block is None:
            return
        body = _document_block(self.app_info, "agents-md" if name == "AGENTS.md" else "claude-md")[
            1
        ]
        if name == "CLAUDE.md" and "@AGENTS.md" in block.body:
            body = render_claude_md_block(self.app_info, refer_to_agents_md=True)
        yield ProjectDocument(path, block.body.strip("\n").encode(), body.strip("\n").encode())

    def _find_export(self, path: str) -> Iterator[ProjectDocument]:
        from shlex import quote

        before = read_file(path) or b""
        mark = f"\n    {quote(self.app_info.name)} export ".encode()
        at = before[:4096].find(mark)
        if at >= 0:
            command_line = before[at:].decode("utf-8", "replace").strip().partition("\n")[0]
            files = _regenerate_export(self.app_info, command_line)
            name = os.path.basename(path)
            texts = [text for place, text in files.items() if place.rpartition("/")[2] == name]
            yield ProjectDocument(path, before, texts[0].encode() if texts else None)

    def _pages_by_name(self) -> dict[str, str]:
        """The documents that are known by their names."""
        if self._named_pages is None:
            from tooli.describe.llms_txt import render_llms_full, render_llms_txt
            from tooli.describe.man import build_man_pages

            self._named_pages = {
                "llms.txt": render_llms_txt(self.app_info),
                "llms-full.txt": render_llms_full(self.app_info),
                **build_man_pages(self.app_info),
            }
        return self._named_pages


def _regenerate_export(app_info: AppInfo, line: str) -> dict[str, str]:
    """The files of an export that says itself how it was made."""
    from itertools import pairwise
    from shlex import split

    from tooli.export import export

    argv = split(line)[2:]
    options = {flag[2:]: value for flag, value in pairwise(argv) if flag[:2] == "--"}
    return export(
        app_info,
        options["target"],
        options["mode"],
        command=options.get("command"),
        app=options.get("app"),
        model=options.get("model"),
        with_tests="--with-tests" in argv,
    )


def _first_line(data: bytes) -> bytes:
    return data.partition(b"\n")[0].rstrip()


def _normalize_newlines(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n")


def build_date() -> str:
    """The date that a page is given: that of the build, where somebody says it."""
    from tooli.describe.man import DEFAULT_DATE

    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not epoch.isdecimal():
        return DEFAULT_DATE
    from time import gmtime, strftime

    return strftime("%Y-%m-%d", gmtime(int(epoch)))


def _keep_date(before: bytes, text: str) -> bytes:
    """What we would write, with the date that a manual page was given before."""
    from re import search

    from tooli.describe.man import DEFAULT_DATE

    documents = search(rb'\n\.TH "[^"\n]*" 1 "(\d{4}-\d\d-\d\d)"', before)
    return (
        text.encode()
        if documents is None
        else text.replace(DEFAULT_DATE, documents[1].decode(), 1).encode()
    )


def _keep_example_outputs(before: bytes, text: str) -> bytes:
    """What we would write, with the outputs of examples that somebody has run before."""
    from re import finditer

    for ran in finditer(
        rb"(```bash\n[^\n]*\n```\n)(\n```json\n.*?\n```\n)", _normalize_newlines(before)
    ):
        call, output = ran.group(1).decode(), ran.group(2).decode("utf-8", "replace")
        if call + output not in text:
            text = text.replace(call, call + output, 1)
    return text.encode()
