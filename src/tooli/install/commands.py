"""What `skills …` and `mcp add` do: places in, steps carried out, rows out."""

from __future__ import annotations

import os

from tooli.errors import InputError, Suggestion, ToolError
from tooli.install.places import (
    DOCUMENTS,
    SKILLS,
    Place,
    project_root,
    server_places,
    shown,
    skill_places,
)
from tooli.install.plan import rows, settle
from tooli.install.skills import plan_removal, plan_skill, skill_of
from tooli.install.writing import alone, carry_out, perform

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from tooli.install.plan import Step
    from tooli.install.records import Records
    from tooli.install.servers import Noted

    Rows = list[dict[str, str]]


def add_skill(
    app: Any,
    agent: Sequence[str],
    user: bool,
    agents_md: bool,
    claude_md: bool,
    force: bool,
    *,
    dry: bool = False,
) -> Rows:
    """Write the skill, and the blocks that were asked for."""
    if user and (agents_md or claude_md):
        raise InputError(
            "AGENTS.md and CLAUDE.md are a project's: --user has no such files.",
            field="agents_md" if agents_md else "claude_md",
            suggestion=Suggestion("retry_with_modified_input", "Leave --user away."),
        )
    name, files = app._house.name, skill_of(app)

    def plan() -> list[Step]:
        steps = [
            plan_skill(os.path.join(place.path, _slug(name)), place.agent, name, files)
            for place in skill_places(agent, user=user)
        ]
        wanted = {"AGENTS.md": agents_md, "CLAUDE.md": claude_md}
        return steps + _blocks(app, [file for file, asked in wanted.items() if asked])

    return perform(lambda: _once(plan()), force=force, dry=dry)


def remove_skill(
    app: Any, agent: Sequence[str], user: bool, force: bool, *, dry: bool = False
) -> Rows:
    """Take away what `add_skill` may have written; where agents are named, only theirs."""
    name, files = app._house.name, skill_of(app)

    def plan() -> list[Step]:
        places = skill_places(agent or SKILLS, user=user)
        steps = [
            plan_removal(os.path.join(place.path, _slug(name)), _told(place, agent), files)
            for place in places
        ]
        return steps if agent or user else steps + _blocks(app, DOCUMENTS, removal=True)

    return perform(lambda: _once(plan()), force=force, dry=dry)


def list_skills(app: Any) -> Rows:
    """Every place where the skill may be, and its state there."""
    name, files = app._house.name, skill_of(app)
    found: Rows = []
    for scope in ("project", "user"):
        for place in skill_places((), user=scope == "user"):
            at = Place(os.path.join(place.path, _slug(name)), place.agent)
            found.append(
                _listed(at, scope, lambda at=at: plan_skill(at.path, at.agent, name, files))
            )
    for file, agent in DOCUMENTS.items():
        at = Place(os.path.join(project_root(), file), agent)
        found.append(_listed(at, "project", lambda file=file: _blocks(app, (file,))[0]))
    return found


def add_server(
    app: Any,
    agent: Sequence[str],
    user: bool,
    command: str | None,
    force: bool,
    *,
    dry: bool = False,
) -> Rows:
    """Register the app's MCP server with agents."""
    from tooli.install.program import server_command
    from tooli.install.servers import plan_server

    words = server_command(app._house.name, command)
    return _register(app, agent, user, words, plan_server, force=force, dry=dry)


def remove_server(
    app: Any,
    agent: Sequence[str],
    user: bool,
    command: str | None,
    force: bool,
    *,
    dry: bool = False,
) -> Rows:
    """Take the app's MCP server out of the agents' settings."""
    from tooli.install.servers import plan_server_removal

    words = _words(app, command)
    return _register(app, agent, user, words, plan_server_removal, force=force, dry=dry)


def list_servers(app: Any) -> Rows:
    """Every file in which the server may be registered, and its state there."""
    from tooli.install.records import Records
    from tooli.install.servers import plan_server

    words, records = _words(app, None), Records()
    name = _slug(app._house.name)
    return [
        _listed(place, scope, lambda place=place: plan_server(place, name, words, records).step)
        for scope in ("project", "user")
        for place in server_places((), user=scope == "user")
    ]


# ------------------------------------------------------------------ parts


def _register(
    app: Any,
    agent: Sequence[str],
    user: bool,
    words: Sequence[str],
    plan: Callable[[Place, str, Sequence[str], Records], Noted],
    *,
    force: bool,
    dry: bool,
) -> Rows:
    from tooli.install.records import Records

    noted: list[Noted] = []
    records = Records()

    def planned() -> list[Step]:
        nonlocal records
        records = Records()
        places = server_places(agent, user=user)
        noted[:] = [plan(place, _slug(app._house.name), words, records) for place in places]
        return [one.step for one in noted]

    if dry:
        return rows(settle(_once(planned()), force=force), diffs=True)
    with alone():
        steps = settle(_once(planned()), force=force)
        carry_out(steps)
        for one in noted:
            records.keep(one.file, _slug(app._house.name), one.written)
        records.save()  # where it cannot be kept, what we wrote is still known by what it says
    return rows(steps, diffs=False)


def _blocks(app: Any, names: Collection[str], *, removal: bool = False) -> list[Step]:
    """The steps for the marked blocks; one file under two names gets one block."""
    from tooli.install.blocks import has_block, plan_block, plan_block_removal
    from tooli.views.agents_md import agents_block
    from tooli.views.claude_md import claude_block
    from tooli.views.portrait import portray

    root, app_name, portrait = project_root(), app._house.name, portray(app)
    shared = os.path.join(root, "AGENTS.md")
    thin = "AGENTS.md" in names or has_block(shared, app_name)
    bodies = {"AGENTS.md": agents_block(portrait), "CLAUDE.md": claude_block(portrait, thin=thin)}
    plan = plan_block_removal if removal else plan_block
    seen: set[str] = set()
    steps: list[Step] = []
    for name in names:
        path = os.path.join(root, name)
        if os.path.realpath(path) not in seen:
            seen.add(os.path.realpath(path))
            steps.append(plan(path, DOCUMENTS[name], app_name, bodies[name]))
    return steps


def _once(steps: list[Step]) -> list[Step]:
    """The steps, each file changed by one of them: two places may be the same by a link."""
    seen: set[str] = set()
    kept: list[Step] = []
    for step in steps:
        files = {os.path.realpath(change.path) for change in step.changes}
        kept.append(step.replace(changes=(), edited=()) if files & seen else step)
        seen |= files
    return kept


def _listed(place: Place, scope: str, plan: Callable[[], Step]) -> dict[str, str]:
    """A place and its state; one that nothing could be done about is damaged."""
    try:
        state = plan().state
    except (ToolError, OSError):
        state = "damaged"
    return {"path": shown(place.path), "agent": place.agent, "scope": scope, "state": state}


def _told(place: Place, agent: Sequence[str]) -> str:
    """Whom a place is named for where nobody was: the name that `add` gives it."""
    return place.agent if agent else place.agent.partition(",")[0]


def _words(app: Any, command: str | None) -> Sequence[str]:
    """How the server would be started now; where that is not known, like nothing that stands."""
    from tooli.install.program import server_command

    try:
        return server_command(app._house.name, command)
    except InputError:
        if command is not None:
            raise
        return ("",)


def _slug(name: str) -> str:
    from tooli.views.skill import skill_slug

    return skill_slug(name)
