"""generate-skill, generate-agents-md, docs llms, docs man, docs check."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal, Optional, Union

from tooli.builtins.marks import is_text
from tooli.contract.info import Argument, Option

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Optional and Union: these are evaluated where they stand, on Python 3.10 as well.
Form = Annotated[
    Literal["skill", "claude-md", "agents-md"], Option("--format", help="Which document.")
]
Out = Annotated[
    Optional[str],  # noqa: UP045
    Option("--out", metavar="DIR", help="Write it there, instead of printing it."),
]
Force = Annotated[
    bool, Option("--force", help="Write over somebody else's text; it is kept as .bak.")
]
Verify = Annotated[
    bool,
    Option("--verify", help="Run the examples that only read, and show what they really gave."),
]
Written = Union[str, list[dict[str, str]]]  # noqa: UP007


def add_generators(whole: Any, app: Any) -> None:
    """`generate-skill`, `generate-agents-md`."""

    def generate(form: str, out: str | None, force: bool, verify: bool, dry: bool) -> Written:
        from tooli.install.documents import print_document, write_document
        from tooli.views.portrait import portray

        portrait = portray(app)
        if verify:
            from tooli.install.trying import with_outputs

            portrait = with_outputs(portrait)
        if out is None:
            return print_document(portrait, form)
        return write_document(portrait, form, out, force=force, dry=dry)

    def generate_skill(
        form: Form = "skill", out: Out = None, force: Force = False, verify: Verify = False
    ) -> Written:
        """Make the app's SKILL.md with a page for each command, its CLAUDE.md or AGENTS.md."""
        return generate(form, out, force, verify, dry=False)

    def generate_agents_md(out: Out = None, force: Force = False) -> Written:
        """Make the app's AGENTS.md."""
        return generate("agents-md", out, force, verify=False, dry=False)

    _add(whole, "generate-skill", generate_skill, partial(generate, dry=True))
    again = partial(generate, form="agents-md", verify=False, dry=True)
    _add(whole, "generate-agents-md", generate_agents_md, again)


def add_docs(group: Any, app: Any) -> None:
    """`docs llms`, `docs man`, `docs check`."""
    _add_llms(group, app)
    _add_man(group, app)
    _add_check(group, app)


def _add(place: Any, name: str, fn: Any, plan: Callable[..., Any]) -> None:
    """A command that makes a text; its dry run says what it would write."""
    fn.tooli_plan = plan
    place.command(name)(is_text(fn))


def _add_llms(group: Any, app: Any) -> None:
    def make(out: str | None, force: bool, dry: bool) -> Written:
        from tooli.install.documents import write_files
        from tooli.views.llms_txt import llms_files, llms_txt
        from tooli.views.portrait import portray

        portrait = portray(app)
        if out is None:
            return llms_txt(portrait)
        return write_files(out, llms_files(portrait), force=force, dry=dry)

    def llms(out: Out = None, force: Force = False) -> Written:
        """Make llms.txt; with --out also llms-full.txt and a page for each command."""
        return make(out, force, dry=False)

    _add(group, "llms", llms, partial(make, dry=True))


def _add_man(group: Any, app: Any) -> None:
    def make(command: list[str], out: str | None, force: bool, dry: bool) -> Written:
        from tooli.install.documents import date_of_build, write_files
        from tooli.views.man import man_pages, page_of
        from tooli.views.portrait import portray

        portrait, date = portray(app), date_of_build()
        if out is None:
            return page_of(portrait, command, date)
        return write_files(out, man_pages(portrait, date), force=force, dry=dry)

    def man(
        command: Annotated[
            list[str], Argument(help="The command whose page it is; without it, the app's own.")
        ] = [],  # noqa: B006  nobody changes it
        out: Out = None,
        force: Force = False,
    ) -> Written:
        """Make a manual page; with --out the pages of all commands."""
        return make(command, out, force, dry=False)

    _add(group, "man", man, partial(make, dry=True))


def _add_check(group: Any, app: Any) -> None:
    @is_text
    def check(
        paths: Annotated[
            list[str], Argument(help="Documents, or folders that have some; without it, this one.")
        ] = [],  # noqa: B006  nobody changes it
    ) -> list[dict[str, str]]:
        """See whether the app's documents say what its code says; the diff where they do not."""
        from tooli.install.documents import check_documents, stale

        found = check_documents(app, paths or ["."])
        error, diffs = stale(found)
        if error is not None:
            print("".join(diffs), end="")
            raise error
        return [{"path": one.path, "state": "current"} for one in found]

    group.command("check")(check)
