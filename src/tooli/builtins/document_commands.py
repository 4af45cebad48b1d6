"""generate-skill, generate-agents-md, docs llms, docs man, docs check, export."""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated, Literal

from tooli.builtins import returns_text, with_plan
from tooli.core.agent_hosts import AGENT_HOSTS, RULE_HOSTS
from tooli.describe.agent_documents import (
    FULL_FILE_NAME,
    build_llms_files,
    render_llms_full,
    render_llms_txt,
)
from tooli.describe.man import build_man_page, build_man_pages
from tooli.describe.sections import collect_app_info
from tooli.errors import InputError, Suggestion
from tooli.export import export as render_export
from tooli.export.export_spec import ExportSpec
from tooli.export.permissions import render_rules
from tooli.install.project_documents import (
    build_date,
    check_documents,
    render_marked_document,
    staleness_error,
    with_example_outputs,
    write_document,
    write_files,
)
from tooli.install.rule_files import write_rules
from tooli.install.server_registration import split_command
from tooli.pipeline.context import Context  # noqa: TC001  the annotation is evaluated
from tooli.policy.allowed_access import resolve_bounds
from tooli.schema.param_info import Argument, Option
from tooli.stages.path_rules import check_path
from tooli.text.escapes import escape_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.core.protocols import App
    from tooli.describe.sections import AppInfo

# These annotations are evaluated when the module is imported.
DocumentFormat = Annotated[
    Literal["skill", "claude-md", "agents-md"], Option("--format", help="Document to generate.")
]
SkillTarget = Annotated[
    Literal["generic-skill", "claude-skill", "claude-code"],
    Option("--target", help="Who reads SKILL.md: any agent, an agent of Claude, or Claude Code."),
]
OutputDir = Annotated[
    str | None,
    Option("--out", metavar="DIR", help="Directory to write to, instead of stdout."),
]
Force = Annotated[
    bool, Option("--force", help="Overwrite files that were not generated; a copy is kept as .bak.")
]
VerifyExamples = Annotated[
    bool,
    Option("--verify", help="Run the read-only examples and show their output."),
]
LlmsFile = Annotated[
    Literal["both", "short", "full"],
    Option("--print", help="Print llms.txt (short), llms-full.txt (full), or both."),
]
Target = Annotated[
    Literal[
        "openai",
        "langchain",
        "adk",
        "claude",
        "copilot",
        "pydantic-ai",
        "crewai",
        "llamaindex",
        "agent-framework",
        "python",
        "permissions",
    ],
    Option(help="Framework to export for, or permissions for a coding agent."),
]
Mode = Annotated[
    Literal["subprocess", "import"],
    Option(help="Run tools as a program (subprocess) or in the process of the agent (import)."),
]
WithTests = Annotated[bool, Option("--with-tests", help="Also generate tests of the export.")]
SkillCommand = Annotated[
    str | None,
    Option(help="Command that starts the program in the document, such as 'uvx mytool'."),
]
Command = Annotated[
    str | None,
    Option(help="Command that starts the program, such as 'python -m file_tools'."),
]
AppLocation = Annotated[
    str | None,
    Option("--app", help="Where to import the app from: 'package.module:name'."),
]
Model = Annotated[
    str | None,
    Option(help="Model of the ADK agent."),
]
if TYPE_CHECKING:
    RuleHost = str
else:
    RuleHost = Literal[RULE_HOSTS]
Host = Annotated[RuleHost | None, Option(help="Coding agent to generate permissions for.")]
RemoveRules = Annotated[
    bool, Option("--remove", help="Remove the permissions that were written to --out.")
]
ForceExport = Annotated[
    bool, Option("--force", help="Overwrite changed files; a copy is kept as .bak.")
]
WriteResult = str | list[dict[str, str]]


def add_generators(builtin_app: App, app: App) -> None:
    """Add `generate-skill` and `generate-agents-md`."""

    def generate(
        form: str,
        out: str | None,
        force: bool,
        verify: bool,
        dry: bool,
        target: str = "generic-skill",
        command: str | None = None,
        ctx: Context | None = None,
    ) -> WriteResult:
        words = tuple(split_command(command)) if command is not None else ()
        app_info = _collect(ctx, app).replace(skill_target=target).with_command(words)
        if verify:
            app_info = with_example_outputs(app_info)
        if out is None:
            return render_marked_document(app_info, form)
        return write_document(
            app_info, form, _check_path(app, "out", out), force=force, dry_run=dry
        )

    def generate_skill(
        ctx: Context,
        form: DocumentFormat = "skill",
        out: OutputDir = None,
        force: Force = False,
        verify: VerifyExamples = False,
        target: SkillTarget = "generic-skill",
        command: SkillCommand = None,
    ) -> WriteResult:
        """Generate SKILL.md with a page for each command, or CLAUDE.md or AGENTS.md."""
        return generate(form, out, force, verify, False, target, command, ctx)

    def generate_agents_md(
        ctx: Context, out: OutputDir = None, force: Force = False
    ) -> WriteResult:
        """Generate AGENTS.md."""
        return generate("agents-md", out, force, verify=False, dry=False, ctx=ctx)

    _add_command(builtin_app, "generate-skill", generate_skill, partial(generate, dry=True))
    plan_agents_md = partial(generate, form="agents-md", verify=False, dry=True)
    _add_command(builtin_app, "generate-agents-md", generate_agents_md, plan_agents_md)


def add_docs(group: App, app: App) -> None:
    """Add `docs llms`, `docs man` and `docs check`."""
    _add_llms(group, app)
    _add_man(group, app)
    _add_check(group, app)


def _add_command(
    group: App, name: str, fn: Callable[..., WriteResult], plan: Callable[..., WriteResult]
) -> None:
    """Add a command that returns text; its dry run returns what it would write."""
    group.command(name)(returns_text(with_plan(fn, plan)))


def _add_llms(group: App, app: App) -> None:
    def generate(
        out: str | None, force: bool, print_file: str, dry: bool, ctx: Context | None = None
    ) -> WriteResult:
        app_info = _collect(ctx, app)
        if out is None:
            files = {"llms.txt": render_llms_txt, FULL_FILE_NAME: render_llms_full}
            if print_file != "both":
                del files[FULL_FILE_NAME if print_file == "short" else "llms.txt"]
            return join_files({name: render(app_info) for name, render in files.items()})
        return write_files(
            _check_path(app, "out", out), build_llms_files(app_info), force=force, dry_run=dry
        )

    def llms(
        ctx: Context,
        out: OutputDir = None,
        force: Force = False,
        print_file: LlmsFile = "both",
    ) -> WriteResult:
        """Generate llms.txt and llms-full.txt; with --out also a page for each command."""
        return generate(out, force, print_file, dry=False, ctx=ctx)

    _add_command(group, "llms", llms, partial(generate, dry=True))


def _add_man(group: App, app: App) -> None:
    def generate(
        command: list[str] | None,
        out: str | None,
        force: bool,
        dry: bool,
        ctx: Context | None = None,
    ) -> WriteResult:
        app_info, date = _collect(ctx, app), build_date()
        if out is None:
            return build_man_page(app_info, command or [], date)
        return write_files(
            _check_path(app, "out", out), build_man_pages(app_info, date), force=force, dry_run=dry
        )

    def man(
        ctx: Context,
        command: Annotated[
            list[str] | None, Argument(help="Command to document. Default: the app.")
        ] = None,
        out: OutputDir = None,
        force: Force = False,
    ) -> WriteResult:
        """Generate a manual page; with --out the pages of all commands."""
        return generate(command, out, force, dry=False, ctx=ctx)

    _add_command(group, "man", man, partial(generate, dry=True))


def _add_check(group: App, app: App) -> None:
    @returns_text
    def check(
        paths: Annotated[
            list[str] | None,
            Argument(help="Documents or folders to check. Default: the current folder."),
        ] = None,  # before Typer 0.26, a list argument cannot have another default
    ) -> list[dict[str, str]]:
        """Check that the documents of the app are up to date; print a diff if they are not."""
        checked = [_check_path(app, "paths", path) for path in paths or ["."]]
        found = check_documents(app, checked)
        error, diffs = staleness_error(found)
        if error is not None:
            for line in "".join(diffs).splitlines():
                print(escape_text(line.replace("\t", "    ")))  # it may contain escape sequences
            raise error
        return [{"path": document.path, "state": "current"} for document in found]

    group.command("check")(check)


def _collect(ctx: Context | None, app: App) -> AppInfo:
    """Return the description of the app; warn about examples that do not work."""
    app_info = collect_app_info(app)
    if ctx is not None:  # not a dry run
        for problem in app_info.problems:
            ctx.warn(problem)
    return app_info


def _check_path(app: App, name: str, path: str) -> str:
    """Return a path, the value of an option; raise AuthError if the settings do not allow it."""
    bounds = resolve_bounds(app._state)
    if bounds is not None:
        check_path(app._state.name, name, path, bounds)
    return path


# ------------------------------------------------------------------ export


def add_export(builtin_app: App, app: App) -> None:
    """Add `export`."""

    def export(
        target: Target,
        mode: Mode = "subprocess",
        out: OutputDir = None,
        with_tests: WithTests = False,
        command: Command = None,
        app_location: AppLocation = None,
        model: Model = None,
        host: Host = None,
        remove: RemoveRules = False,
        force: ForceExport = False,
    ) -> WriteResult:
        """Export the tools as code for an agent framework or as permissions."""
        return generate(
            *(target, mode, out, with_tests, command, app_location, model, host, remove, force),
            dry=False,
        )

    generate = partial(_generate_export, app)
    _add_command(builtin_app, "export", export, partial(generate, dry=True))


def _generate_export(
    app: App,
    target: str,
    mode: str,
    out: str | None,
    with_tests: bool,
    command: str | None,
    app_location: str | None,
    model: str | None,
    host: str | None,
    remove: bool,
    force: bool,
    dry: bool,
) -> WriteResult:
    """Print an export, or write it to a folder."""
    _check_option_scope(
        target,
        mode,
        {
            "host": host,
            "model": model,
            "command": command,
            "app": app_location,
            "with_tests": with_tests,
            "remove": remove,
        },
    )
    if remove and out is None:
        raise InputError("--remove requires --out, the folder of the files.", field="out")
    app_info = collect_app_info(app)
    if host is not None:
        if out is not None:
            folder = _check_rules_folder(host, _check_path(app, "out", out))
            return write_rules(app_info, host, folder, remove, force=force, dry_run=dry)
        files = render_rules(app_info, host)
    else:
        spec = ExportSpec(app_info, target, mode, command, app_location, model, with_tests)
        files = render_export(spec)
    if out is None:
        return join_files(files)
    return write_files(
        _check_path(app, "out", out), files, force=force, dry_run=dry, is_hand_edited=True
    )


def _check_option_scope(target: str, mode: str, options: dict[str, object]) -> None:
    """Raise an error for an option that the target or the mode does not use."""
    is_permissions, is_import = target == "permissions", mode == "import"
    rules = {
        "host": ("--host requires --target permissions.", is_permissions),
        "model": ("--model requires --target adk.", target == "adk"),
        "command": (
            "--command requires --mode subprocess.",
            not is_permissions and not is_import,
        ),
        "app": ("--app requires --mode import.", not is_permissions and is_import),
        "remove": ("--remove requires --target permissions and --out.", is_permissions),
        "with_tests": ("--with-tests does not apply to --target permissions.", not is_permissions),
    }
    for field, (message, applies) in rules.items():
        if options[field] and not applies:
            raise InputError(message, field=field)
    if is_permissions and not options["host"]:
        message = "--target permissions requires --host, the coding agent."
        raise InputError(message, field="host")


def _check_rules_folder(host: str, folder: str) -> str:
    """Return the folder; raise an error if the agent would not read rules below it."""
    agent = AGENT_HOSTS[host]
    homes = {os.path.expanduser("~"), os.environ.get("GEMINI_CLI_HOME") or ""} - {""}
    is_home = os.path.realpath(folder) in map(os.path.realpath, homes)
    if agent.rules_for == "user" and not is_home:
        message = f"{agent.title} reads rules from the home folder only, not from a project."
        suggestion = Suggestion("retry_with_modified_input", "Pass your home folder: --out ~.")
        raise InputError(message, field="out", suggestion=suggestion)
    return folder


def join_files(files: dict[str, str]) -> str:
    """Return the text of one file, or of several files with their names as headings."""
    if len(files) == 1:
        return next(iter(files.values()))
    return "\n".join([f"# file: {path}\n{text}" for path, text in files.items()])
