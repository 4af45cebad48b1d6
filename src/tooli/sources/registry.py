"""tooli registry: find the apps and sources that this user has.

    kept        sources under a name, from `tooli adopt`
    installed   apps of installed packages, from the entry points `tooli.apps`
    agent       MCP servers in the settings of agents
    program     programs on the PATH that answer `--discover`; only when asked, because it runs them

Nothing of the first three is imported or started by a list or a search.
"""

from __future__ import annotations

from tooli.core import Record
from tooli.errors import NotFoundError, Suggestion, ToolError, shell_quote
from tooli.install.configured_servers import read_configured_servers
from tooli.providers.provider import described_tool
from tooli.providers.search import ToolIndex, format_signature
from tooli.schema.described import clean_text
from tooli.similar_names import did_you_mean
from tooli.sources.credentials import redact_command
from tooli.sources.kept_sources import load_kept_sources, sources_path
from tooli.sources.loader import load_app
from tooli.sources.named_sources import installed_apps
from tooli.sources.path_programs import find_programs
from tooli.sources.source_grammar import join_words

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tooli.core.protocols import JsonObject
    from tooli.install.configured_servers import ConfiguredServer

KEPT, INSTALLED, AGENT, PROGRAM = "kept", "installed", "agent", "program"
_MAX_TEXT_CHARS = 300
_MAX_LISTED_TOOLS = 200


class RegistryEntry(Record):
    """Something that `tooli` can make an app of."""

    name: str
    origin: str
    source: str  # as it is written on a command line
    where: str  # the file, package or folder that names it
    description: str = ""
    tools: tuple[str, ...] = ()
    more: tuple[tuple[str, object], ...] = ()  # other fields that `show` returns

    @property
    def reference(self) -> str:
        """The word with which `tooli` opens it: `@name`, or its source."""
        return f"@{self.name}" if self.origin in (KEPT, INSTALLED) else self.source

    def to_row(self) -> JsonObject:
        """Return the row of a list."""
        row: JsonObject = {
            "name": f"@{self.name}" if self.origin in (KEPT, INSTALLED) else self.name,
            "origin": self.origin,
            "source": self.source,
            "where": self.where,
        }
        return {**row, "description": self.description} if self.description else row


def collect(*, programs: bool, unconfined: bool = False) -> tuple[list[RegistryEntry], list[str]]:
    """Return all entries, and what could not be read."""
    entries, problems = list[RegistryEntry](), list[str]()
    try:
        entries += _kept_entries()
    except ToolError as failure:
        problems.append(failure.message)
    entries += _installed_entries()
    servers, unreadable = read_configured_servers()
    entries += _agent_entries(servers)
    problems += [_shorten(problem) for problem in unreadable]
    if programs:
        found, failed = find_programs(unconfined=unconfined)
        problems += failed
        entries += [
            RegistryEntry(
                program.name,
                PROGRAM,
                f"exe:{shell_quote(program.path)}",
                program.path,
                _shorten(program.description),
                tuple([_shorten(tool) for tool in program.tools]),
                (("version", _shorten(program.version)),) if program.version else (),
            )
            for program in found
        ]
    return entries, problems


def _kept_entries() -> list[RegistryEntry]:
    where = sources_path()
    return [
        RegistryEntry(
            name,
            KEPT,
            join_words(kept.source.words),
            kept.program or where,
            _shorten(kept.description),
            kept.tools,
        )
        for name, kept in sorted(load_kept_sources().items())
    ]


def _installed_entries() -> list[RegistryEntry]:
    entries: list[RegistryEntry] = []
    for name, point in sorted(installed_apps().items()):
        package = point.dist
        where = "" if package is None else f"{package.name} {package.version}"
        summary = "" if package is None else str(package.metadata["Summary"] or "")
        entries.append(RegistryEntry(name, INSTALLED, point.value, where, _shorten(summary)))
    return entries


def _agent_entries(servers: Iterable[ConfiguredServer]) -> list[RegistryEntry]:
    """Return one entry for each server. Agents that register the same server share it."""
    merged: dict[tuple[str, str], tuple[ConfiguredServer, dict[str, None]]] = {}
    for server in servers:
        target = server.url or join_words(server.command)
        place = f"{server.path} ({server.agent})"
        merged.setdefault((server.name, target), (server, {}))[1][place] = None
    entries: list[RegistryEntry] = []
    for (name, target), (server, places) in merged.items():
        more: list[tuple[str, object]] = []
        if server.variables:
            more.append(("env", list(map(_shorten, server.variables))))
        if server.headers:
            more.append(("headers", list(map(_shorten, server.headers))))
        source = shell_quote(f"mcp:{_shorten(redact_command(target), 2000)}")
        where = ", ".join(places)
        entries.append(RegistryEntry(_shorten(name), AGENT, source, where, more=tuple(more)))
    return entries


def _shorten(text: str, length: int = _MAX_TEXT_CHARS) -> str:
    """Return an external text without control sequences, on one line, and not too long."""
    return clean_text(" ".join(text.split()), length)


# ------------------------------------------------------------------ search and show


def search(entries: list[RegistryEntry], query: str) -> list[RegistryEntry]:
    """Return the entries that match a query, best first. An empty query matches all."""
    by_tool = {
        id(tool): (tool, entry)
        for entry in entries
        for tool in [
            described_tool(
                f"x-{entry.name}" if not _has_letters(entry.name) else entry.name.replace(".", "-"),
                _never_called,
                description=" ".join((entry.name, entry.description, entry.source))
                + "\n"
                + " ".join(entry.tools),
            )
        ]
    }
    hits = ToolIndex([tool for tool, _ in by_tool.values()]).search(query, len(entries))
    return [by_tool[id(hit.tool)][1] for hit in hits]


def _has_letters(name: str) -> bool:
    return any([char.isascii() and char.isalnum() for char in name])


def _never_called(arguments: JsonObject) -> None:
    raise NotImplementedError


def show(entries: list[RegistryEntry], name: str) -> list[JsonObject]:
    """Return all that is known about the entries of a name; raise NotFoundError if there are none.

    Kept and installed sources are opened to list their tools. Servers of agents are not: their
    settings may be those of a project that somebody else wrote.
    """
    plain = name.removeprefix("@")
    found = [entry for entry in entries if entry.name == plain]
    if not found:
        near = did_you_mean(plain, {entry.name for entry in entries})
        raise NotFoundError(
            f"The registry has no entry {plain!r}{near or '.'}",
            field="name",
            suggestion=Suggestion("fix", "List the entries: tooli registry list"),
        )
    return [_describe(entry) for entry in found]


def _describe(entry: RegistryEntry) -> JsonObject:
    fields: JsonObject = {**entry.to_row(), **dict(entry.more)}
    if entry.origin not in (KEPT, INSTALLED):
        fields["try"] = f"tooli tools {entry.source}"
        return {**fields, "tools": list(entry.tools)} if entry.tools else fields
    fields["try"] = f"tooli run {entry.reference} --help"
    try:
        tools = [tool for tool in load_app(entry.reference).catalog if not tool.hidden]
    except Exception as failure:  # the import of an installed app may raise any error
        fields["problem"] = _shorten(getattr(failure, "message", None) or repr(failure), 1000)
        return fields
    fields["tools"] = [format_signature(tool) for tool in tools[:_MAX_LISTED_TOOLS]]
    fields["tool_count"] = len(tools)
    return fields
