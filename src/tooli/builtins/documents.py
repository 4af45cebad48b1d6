"""generate-skill, generate-agents-md, docs llms, docs man, docs check."""

from __future__ import annotations

from typing import Annotated, Literal, Optional

from tooli.builtins.marks import is_text
from tooli.contract.info import Argument, Option

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

Form = Annotated[
    Literal["skill", "claude-md", "agents-md"], Option("--format", help="Which document.")
]


def add_generators(whole: Any, app: Any) -> None:
    """`generate-skill`, `generate-agents-md`."""
    whole.command("generate-skill")(_skill(app))
    whole.command("generate-agents-md")(_agents_md(app))


def add_docs(group: Any, app: Any) -> None:
    """`docs llms`, `docs man`, `docs check`."""
    group.command("llms")(_llms(app))
    group.command("man")(_man(app))


def _skill(app: Any) -> Any:
    @is_text
    def generate_skill(form: Form = "skill") -> str:
        """Print the app's SKILL.md, CLAUDE.md or AGENTS.md."""
        from tooli.views.bootstrap import write
        from tooli.views.portrait import portray

        return write(portray(app), form)

    return generate_skill


def _agents_md(app: Any) -> Any:
    @is_text
    def generate_agents_md() -> str:
        """Print the app's AGENTS.md."""
        from tooli.views.agents_md import write_agents_md
        from tooli.views.portrait import portray

        return write_agents_md(portray(app))

    return generate_agents_md


def _llms(app: Any) -> Any:
    @is_text
    def llms() -> str:
        """Print llms.txt."""
        from tooli.views.llms_txt import llms_txt
        from tooli.views.portrait import portray

        return llms_txt(portray(app))

    return llms


def _man(app: Any) -> Any:
    @is_text
    def man(
        command: Annotated[
            Optional[str],  # noqa: UP045
            Argument(help="The command whose page it is; the app's own without it."),
        ] = None,
    ) -> str:
        """Print a manual page, in the language of man."""
        from tooli.views.man import man_pages
        from tooli.views.portrait import portray

        pages = man_pages(portray(app))
        return next(iter(pages.values()))

    return man
