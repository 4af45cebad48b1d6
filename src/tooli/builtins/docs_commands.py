"""generate-skill, generate-agents-md, docs llms, docs man, docs check."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal, Optional, Union

from tooli.builtins.command_markers import returns_text
from tooli.describe.agent_documents import build_llms_files, render_llms_txt
from tooli.describe.app_info import collect_app_info
from tooli.describe.man import build_man_page, build_man_pages
from tooli.install.project_documents import (
    build_date,
    check_documents,
    render_marked_document,
    staleness_error,
    with_example_outputs,
    write_document,
    write_files,
)
from tooli.schema.param_info import Argument, Option

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.core.protocols import App

# Optional and Union, because these are evaluated at run time, on Python 3.10 as well.
DocumentFormat = Annotated[
    Literal["skill", "claude-md", "agents-md"], Option("--format", help="Document to generate.")
]
OutputDir = Annotated[
    Optional[str],  # noqa: UP045
    Option("--out", metavar="DIR", help="Directory to write to, instead of stdout."),
]
Force = Annotated[
    bool, Option("--force", help="Overwrite files that were not generated; a copy is kept as .bak.")
]
VerifyExamples = Annotated[
    bool,
    Option("--verify", help="Run the read-only examples and show their output."),
]
WriteResult = Union[str, list[dict[str, str]]]  # noqa: UP007


def add_generators(builtin_app: App, app: App) -> None:
    """Add `generate-skill` and `generate-agents-md`."""

    def generate(form: str, out: str | None, force: bool, verify: bool, dry: bool) -> WriteResult:
        app_info = collect_app_info(app)
        if verify:
            app_info = with_example_outputs(app_info)
        if out is None:
            return render_marked_document(app_info, form)
        return write_document(app_info, form, out, force=force, dry_run=dry)

    def generate_skill(
        form: DocumentFormat = "skill",
        out: OutputDir = None,
        force: Force = False,
        verify: VerifyExamples = False,
    ) -> WriteResult:
        """Generate SKILL.md with a page for each command, or CLAUDE.md or AGENTS.md."""
        return generate(form, out, force, verify, dry=False)

    def generate_agents_md(out: OutputDir = None, force: Force = False) -> WriteResult:
        """Generate AGENTS.md."""
        return generate("agents-md", out, force, verify=False, dry=False)

    _add_command(builtin_app, "generate-skill", generate_skill, partial(generate, dry=True))
    plan_agents_md = partial(generate, form="agents-md", verify=False, dry=True)
    _add_command(builtin_app, "generate-agents-md", generate_agents_md, plan_agents_md)


def add_docs(group: App, app: App) -> None:
    """Add `docs llms`, `docs man` and `docs check`."""
    _add_llms(group, app)
    _add_man(group, app)
    _add_check(group, app)


def _add_command(group: App, name: str, fn: Any, plan: Callable[..., Any]) -> None:
    """Add a command that returns text; its dry run returns what it would write."""
    fn.tooli_plan = plan
    group.command(name)(returns_text(fn))


def _add_llms(group: App, app: App) -> None:
    def make(out: str | None, force: bool, dry: bool) -> WriteResult:
        app_info = collect_app_info(app)
        if out is None:
            return render_llms_txt(app_info)
        return write_files(out, build_llms_files(app_info), force=force, dry_run=dry)

    def llms(out: OutputDir = None, force: Force = False) -> WriteResult:
        """Generate llms.txt; with --out also llms-full.txt and a page for each command."""
        return make(out, force, dry=False)

    _add_command(group, "llms", llms, partial(make, dry=True))


def _add_man(group: App, app: App) -> None:
    def make(command: list[str], out: str | None, force: bool, dry: bool) -> WriteResult:
        app_info, date = collect_app_info(app), build_date()
        if out is None:
            return build_man_page(app_info, command, date)
        return write_files(out, build_man_pages(app_info, date), force=force, dry_run=dry)

    def man(
        command: Annotated[list[str], Argument(help="Command to document. Default: the app.")] = [],  # noqa: B006  never modified
        out: OutputDir = None,
        force: Force = False,
    ) -> WriteResult:
        """Generate a manual page; with --out the pages of all commands."""
        return make(command, out, force, dry=False)

    _add_command(group, "man", man, partial(make, dry=True))


def _add_check(group: App, app: App) -> None:
    @returns_text
    def check(
        paths: Annotated[
            list[str], Argument(help="Documents or folders to check. Default: the current folder.")
        ] = [],  # noqa: B006  never modified
    ) -> list[dict[str, str]]:
        """Check that the documents of the app are up to date; print a diff if they are not."""
        found = check_documents(app, paths or ["."])
        error, diffs = staleness_error(found)
        if error is not None:
            print("".join(diffs), end="")
            raise error
        return [{"path": document.path, "state": "current"} for document in found]

    group.command("check")(check)
