"""Write generated documents in a project, and check whether they are current.

`generate-skill`, `generate-agents-md`, `docs llms`, `docs man` and `export` write documents with
`--out`. `docs check` reports the documents that differ from the code.
"""

from __future__ import annotations

import json
import os
import re
from functools import partial
from itertools import pairwise
from shlex import quote, split
from subprocess import DEVNULL, PIPE, TimeoutExpired, run
from time import gmtime, strftime

from tooli.core import Record
from tooli.core.command_words import command_words
from tooli.core.declared_capabilities import is_under_any
from tooli.describe.agent_documents import (
    BLOCKS,
    build_skill_files,
    render_agents_md_block,
    render_claude_md_block,
    render_document,
    render_llms_full,
    render_llms_txt,
    render_reference_page,
    render_skill_md,
)
from tooli.describe.calls import insert_flags
from tooli.describe.front_matter import skill_slug, with_choices_of, with_command_of_block
from tooli.describe.man import DEFAULT_DATE, build_man_pages
from tooli.describe.sections import collect_app_info, reference_path
from tooli.errors import NotFoundError, StateError, Suggestion
from tooli.export import CALLERS, EXPORT_MODES, export, is_unmodified
from tooli.export.export_spec import ExportSpec
from tooli.install.agent_install import project_root
from tooli.install.file_changes import (
    FileChange,
    InstallStep,
    format_diff,
    is_same_text,
    plan_and_apply,
    read_file,
    resolve_path,
    single_change,
)
from tooli.install.managed_files import add_markers, find_block, plan_block, plan_skill
from tooli.install.server_registration import program_argv
from tooli.text.jsonable import is_list, is_object
from tooli.text.sanitize import sanitize

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tooli.core.protocols import JsonObject, ToolSource
    from tooli.core.tool import Tool
    from tooli.describe.sections import AppInfo

_IGNORED_FOLDERS = frozenset(
    ("node_modules", "__pycache__", "dist", "build", "venv", "site-packages")
)
"""Folders that are not searched for documents."""


# ------------------------------------------------------------------ writing


def write_files(
    folder: str,
    files: Mapping[str, str],
    *,
    force: bool,
    dry_run: bool,
    is_hand_edited: bool = False,
) -> list[dict[str, str]]:
    """Write files into a folder; raise a ConflictError for a file that is not ours or is a link.

    By default, a file is ours if its first line equals the new first line. With `is_hand_edited`,
    for files that people edit, such as exports, a file is ours if its digest line is valid.
    """

    root = containing_root(folder)

    def plan() -> list[InstallStep]:
        return [
            _plan_file(os.path.join(folder, *path.split("/")), text, is_hand_edited, root)
            for path, text in files.items()
        ]

    return plan_and_apply(plan, force=force, dry_run=dry_run)


def write_document(
    app_info: AppInfo, document_format: str, folder: str, *, force: bool, dry_run: bool
) -> list[dict[str, str]]:
    """Write a skill into its own folder, or a managed block into AGENTS.md or CLAUDE.md."""
    name, root = app_info.name, containing_root(folder)

    def plan() -> list[InstallStep]:
        if document_format == "skill":
            skill_dir = os.path.abspath(os.path.join(folder, skill_slug(name)))
            return [plan_skill(skill_dir, "agents", name, build_skill_files(app_info), root)]
        file, render_block = BLOCKS[document_format]
        path = os.path.abspath(os.path.join(folder, file))
        return [plan_block(path, "agents", name, render_block(app_info), root)]

    return plan_and_apply(plan, force=force, dry_run=dry_run)


def render_marked_document(app_info: AppInfo, document_format: str) -> str:
    """Return the document as text, with the markers that `docs check` searches for."""
    return render_document(app_info, document_format, partial(add_markers, app_info.name))


def containing_root(folder: str) -> str:
    """Return the folder that no link may leave: the project, or a folder outside of it itself."""
    root, path = project_root(), os.path.abspath(folder)
    return root if is_under_any(path, (root,)) else path


def _plan_file(path: str, text: str, is_hand_edited: bool, root: str) -> InstallStep:
    file_path = resolve_path(path, root)
    before, after = read_file(file_path), text.encode()
    change = FileChange(file_path, before, after)
    if before is None:
        return single_change(path, "", "absent", "created", change)
    if is_same_text(before, after):
        return InstallStep(path, "", "current", "current")
    is_ours = (
        _is_unmodified_export(before)
        if is_hand_edited
        else _first_line(before) == _first_line(after)
    )
    return single_change(path, "", "stale" if is_ours else "edited", "updated", change)


def _is_unmodified_export(before: bytes) -> bool:
    return is_unmodified(before.decode("utf-8", "replace"))


# ------------------------------------------------------------------ checking


class ProjectDocument(Record):
    """A document of the app in a project, with its present and its expected content."""

    path: str
    before: bytes
    after: bytes | None  # None if the app no longer has such a page

    @property
    def is_current(self) -> bool:
        """True if it matches the code."""
        return self.after is not None and is_same_text(self.before, self.after)


def check_documents(app: ToolSource, paths: list[str]) -> list[ProjectDocument]:
    """Return the documents of the app at or below the paths; raise NotFoundError if none exist."""
    finder = _DocumentFinder(collect_app_info(app))
    found = [
        document
        for path in paths
        for file in _walk_files(path)
        for document in finder.find_documents(file)
    ]
    if not found:
        raise NotFoundError(
            f"No document of {finder.app_info.name} was found in {', '.join(map(repr, paths))}.",
            suggestion=Suggestion(
                "retry_with_modified_input",
                "Pass other files or folders, or write a document first: generate-skill --out DIR.",
            ),
        )
    return found


def staleness_error(documents: list[ProjectDocument]) -> tuple[StateError | None, list[str]]:
    """Return the error for outdated documents and their diffs; (None, []) if all are current."""
    outdated = [document for document in documents if not document.is_current]
    if not outdated:
        return None, []
    diffs = [
        format_diff(FileChange(os.path.abspath(document.path), document.before, document.after))
        for document in outdated
    ]
    details = [
        {"path": document.path, "diff": diff}
        for document, diff in zip(outdated, diffs, strict=True)
    ]
    error = StateError(
        f"Outdated: {', '.join([document.path for document in outdated])}.",
        suggestion=Suggestion("fix", "Regenerate them with the command that wrote them."),
        details={"stale": details},
    )
    return error, diffs


def _walk_files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        if not os.path.exists(path):
            raise NotFoundError(f"{path} does not exist.", field="paths")
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(
            [
                name
                for name in folders
                if name not in _IGNORED_FOLDERS and not _is_hidden(folder, name)
            ]
        )
        yield from [os.path.normpath(os.path.join(folder, name)) for name in sorted(names)]


def _is_hidden(folder: str, name: str) -> bool:
    """True if a folder is hidden and has no subfolder `skills`, which agents read."""
    return name[:1] == "." and not os.path.isdir(os.path.join(folder, name, "skills"))


def _read(path: str) -> bytes:
    return read_file(os.path.realpath(path)) or b""


class _DocumentFinder:
    """Recognizes the documents of an app among other files."""

    def __init__(self, app_info: AppInfo) -> None:
        self.app_info = app_info
        self._slug = skill_slug(app_info.name)
        self._named_pages: dict[str, str] | None = None

    def find_documents(self, path: str) -> Iterator[ProjectDocument]:
        """Yield the document in a file, and nothing if the file is not a document of the app."""
        name = os.path.basename(path)
        if name == "SKILL.md":
            yield from self._find_skill(path)
        elif name in ("AGENTS.md", "CLAUDE.md"):
            yield from self._find_block(path, name)
        elif name in self._pages_by_name():
            before = _read(path)
            after = _keep_date(before, self._pages_by_name()[name])
            if _first_line(before) == _first_line(after):
                yield ProjectDocument(path, before, after)
        elif name.endswith(".py"):
            yield from self._find_export(path)
        elif os.path.basename(os.path.dirname(os.path.abspath(path))) == "references":
            yield from self._find_reference_page(path)

    def _find_skill(self, path: str) -> Iterator[ProjectDocument]:
        before = _read(path)
        if f"\nname: {self._slug}\n".encode() not in _normalize_newlines(before):
            return
        skill_dir = os.path.dirname(path)
        has_pages = os.path.isdir(os.path.join(skill_dir, "references"))
        text = render_skill_md(self._info_of_skill(skill_dir), linked=has_pages)
        yield ProjectDocument(path, before, _keep_example_outputs(before, text))
        if has_pages:
            yield from self._missing_files(skill_dir)

    def _info_of_skill(self, skill_dir: str) -> AppInfo:
        """Return the app's info with the target and the command of the skill in a folder."""
        text = _read(os.path.join(skill_dir, "SKILL.md")).decode("utf-8", "replace")
        return with_choices_of(self.app_info, text)

    def _missing_files(self, skill_dir: str) -> Iterator[ProjectDocument]:
        """Yield the files of the skill that are missing in its folder."""
        for relative_path, text in build_skill_files(self._info_of_skill(skill_dir)).items():
            file = os.path.join(skill_dir, *relative_path.split("/"))
            if not os.path.exists(file):
                yield ProjectDocument(file, b"", text.encode())

    def _find_reference_page(self, path: str) -> Iterator[ProjectDocument]:
        """Yield the page of a command, including a command that no longer exists."""
        before = _read(path)
        if before.startswith(f"# {self.app_info.name} ".encode()):
            after = self._render_page(path)
            yield ProjectDocument(
                path, before, None if after is None else _keep_example_outputs(before, after)
            )

    def _render_page(self, path: str) -> str | None:
        """Return the page of a command as it should be; None if there is no such command."""
        app_info = self._info_of_skill(os.path.dirname(os.path.dirname(os.path.abspath(path))))
        for tool in app_info.tools:
            if reference_path(tool) == f"references/{os.path.basename(path)}":
                return render_reference_page(app_info, tool)
        return None

    def _find_block(self, path: str, name: str) -> Iterator[ProjectDocument]:
        text = _read(path).decode("utf-8", "replace").replace("\r\n", "\n")
        block = find_block(text, self.app_info.name, path)
        if block is None:
            return
        app_info = with_command_of_block(self.app_info, block.body)
        if name == "AGENTS.md":
            body = render_agents_md_block(app_info)
        else:
            refers = "@AGENTS.md" in block.body
            body = render_claude_md_block(app_info, refer_to_agents_md=refers)
        yield ProjectDocument(path, block.body.strip("\n").encode(), body.strip("\n").encode())

    def _find_export(self, path: str) -> Iterator[ProjectDocument]:
        before = _read(path)
        line_start = f"\n    {quote(self.app_info.name)} export "
        for command_line in before[:4096].decode("utf-8", "replace").split(line_start)[1:]:
            files = _regenerate_export(self.app_info, command_line.partition("\n")[0])
            if files is not None:
                name = os.path.basename(path)
                texts = [text for key, text in files.items() if key.rpartition("/")[2] == name]
                yield ProjectDocument(path, before, texts[0].encode() if texts else None)
                return

    def _pages_by_name(self) -> dict[str, str]:
        """Return the documents that are recognized by their file names."""
        if self._named_pages is None:
            self._named_pages = {
                "llms.txt": render_llms_txt(self.app_info),
                "llms-full.txt": render_llms_full(self.app_info),
                **build_man_pages(self.app_info),
            }
        return self._named_pages


def _regenerate_export(app_info: AppInfo, arguments: str) -> dict[str, str] | None:
    """Return the files of an export from the command line in its docstring.

    Return None if the line is not an export command.
    """
    try:
        argv = split(arguments)
    except ValueError:  # unbalanced quotes
        return None
    options = {flag[2:]: value for flag, value in pairwise(argv) if flag[:2] == "--"}
    target, mode = options.get("target"), options.get("mode")
    if target not in CALLERS or mode not in EXPORT_MODES:
        return None
    command, app, model = [options.get(name) for name in ("command", "app", "model")]
    with_tests = "--with-tests" in argv
    return export(ExportSpec(app_info, target, mode, command, app, model, with_tests))


def _first_line(data: bytes) -> bytes:
    return data.partition(b"\n")[0].rstrip()


def _normalize_newlines(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n")


def build_date() -> str:
    """Return the date for man pages, from SOURCE_DATE_EPOCH or a fixed default."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not epoch.isdecimal():
        return DEFAULT_DATE
    return strftime("%Y-%m-%d", gmtime(int(epoch)))


def _keep_date(before: bytes, text: str) -> bytes:
    """Return the new text with the date of the existing man page."""
    header = re.search(rb'\n\.TH "[^"\n]*" 1 "(\d{4}-\d\d-\d\d)"', before)
    return (
        text.encode()
        if header is None
        else text.replace(DEFAULT_DATE, header[1].decode(), 1).encode()
    )


def _keep_example_outputs(before: bytes, text: str) -> bytes:
    """Return the new text with the example outputs of the existing document."""
    for match in re.finditer(
        rb"(```bash\n[^\n]*\n```\n)(\n```json\n.*?\n```\n)", _normalize_newlines(before)
    ):
        call, output = match.group(1).decode(), match.group(2).decode("utf-8", "replace")
        if call + output not in text:
            text = text.replace(call, call + output, 1)
    return text.encode()


# ------------------------------------------------------------------ outputs of examples

_EXAMPLE_TIMEOUT = 60.0  # seconds
_MAX_ITEMS, _MAX_CHARACTERS = 2, 100  # limits for a list and a string in an output


def with_example_outputs(app_info: AppInfo) -> AppInfo:
    """Run the examples of read-only tools and return the app's info with their outputs.

    Raises a StateError if an example fails.
    """
    program = program_argv(app_info.name)
    outputs: dict[tuple[str, int], str] = {}
    failures: list[JsonObject] = []
    for tool, number, argv in _runnable_examples(app_info):
        envelope = _run_example([*program, *command_words(tool, argv)], tool)
        if envelope.get("ok"):
            shortened_envelope = {"ok": True, "result": shorten(envelope.get("result"))}
            outputs[tool.key, number] = json.dumps(shortened_envelope, ensure_ascii=False)
        else:
            failures.append({"command": tool.key, "args": argv, "error": envelope.get("error")})
    if failures:
        names = ", ".join([" ".join([row["command"], *row["args"]]) for row in failures])
        raise StateError(
            f"These examples fail: {names}.",
            suggestion=Suggestion("fix", "Fix them, or run this in the folder with their files."),
            details={"failures": failures},
        )
    return app_info.replace(example_outputs=outputs)


def _runnable_examples(app_info: AppInfo) -> Iterator[tuple[Tool, int, list[str]]]:
    """Yield the examples that change nothing and need no approval."""
    for tool in app_info.tools:
        guard = tool.guard
        if tool.behavior.read_only and tool.effects.read_only and not guard.may_need_approval:
            for number, example in enumerate(tool.guidance.examples):
                yield tool, number, [str(token) for token in example.get("args", ())]


def _run_example(argv: list[str], tool: Tool) -> JsonObject:
    """Run one example and return its envelope, or an error in the same form."""
    try:
        completed = run(
            insert_flags(argv, ["--json"]),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=DEVNULL,
            timeout=_EXAMPLE_TIMEOUT,
            check=False,
        )
        envelope: object = json.loads(completed.stdout)
    except TimeoutExpired:
        return {"error": {"message": f"{tool.key} took more than {_EXAMPLE_TIMEOUT:g} s"}}
    except (OSError, ValueError) as failure:
        return {"error": {"message": str(failure)}}
    return envelope if is_object(envelope) else {"error": {"message": "not an envelope"}}


def shorten(value: object) -> object:
    """Return a value with its lists and strings shortened and control characters removed."""
    if isinstance(value, str):
        value = sanitize(value)[0]
        return value if len(value) <= _MAX_CHARACTERS else f"{value[:_MAX_CHARACTERS]}…"
    if is_list(value):
        first_items = [shorten(item) for item in value[:_MAX_ITEMS]]
        return (
            [*first_items, f"… {len(value) - _MAX_ITEMS} more"]
            if len(value) > _MAX_ITEMS
            else first_items
        )
    if is_object(value):
        return {sanitize(key)[0]: shorten(item) for key, item in value.items()}
    return value
