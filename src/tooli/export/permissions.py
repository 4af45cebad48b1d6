"""Permission rules for agents: which of an app's commands run unasked, ask first, or never run.

A command is allowed only where its author says that it reads and does nothing else; whatever is
left unsaid asks. Each host matches in its own way, and a rule that would match more than the one
command is left out (the host then asks). Behind every rule stands the app itself: it still wants
`--yes`, or a human's approval, wherever it wants them without.
"""

from __future__ import annotations

from tooli.core.record import Record
from tooli.describe.schema_formats import tools_by_safe_name
from tooli.describe.skill import skill_slug
from tooli.errors import InputError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.core.tool import Tool
    from tooli.describe.app_info import AppInfo

ALLOW, ASK, DENY = "allow", "ask", "deny"

_READ_CAPABILITIES = frozenset(("fs:read", "none"))
"""Capabilities that change nothing, and let nothing out of the machine."""

_DENIED_DANGER_LEVELS = frozenset(("critical", "forbidden"))
_HARMLESS_DANGER_LEVELS = frozenset(("", "none", "low"))
_SAFE_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


class PermissionRule(Record):
    """What may become of one command."""

    decision: str
    reason: str
    words: tuple[str, ...]  # as it is typed, the program first; none where no rule can tell it
    name: str  # as an MCP tool


def render_rules(app_info: AppInfo, host: str) -> dict[str, str]:
    """The host's own files of rules, by their paths in a project."""
    if host not in HOSTS:
        known = ", ".join(HOSTS)
        raise InputError(f"There are no rules for {host}: say one of {known}.", field="host")
    files = HOSTS[host](app_info, skill_slug(app_info.name), build_rules(app_info))
    return {path: text for path, text in files.items() if text}


def build_rules(app_info: AppInfo) -> list[PermissionRule]:
    """A rule for each command, in the app's order."""
    rule_list: list[PermissionRule] = []
    for name, tool in tools_by_safe_name(app_info.tools).items():
        decision, why = decide(tool)
        why = " ".join(why.split())  # it stands in a comment: a line of its own would be a rule
        words = (app_info.name, *tool.cli_path)
        if not all(word and word[0] != "-" and _SAFE_CHARACTERS.issuperset(word) for word in words):
            words = ()
        if decision == ALLOW and not _is_unambiguous_prefix(tool, app_info):
            words = ()
        rule_list.append(PermissionRule(decision, why, words, name))
    return rule_list


def decide(tool: Tool) -> tuple[str, str]:
    """Whether a command may run unasked, asks, or never runs; and why."""
    guard, behavior = tool.guard, tool.behavior
    danger = str(guard.danger or "").strip().lower()
    if danger in _DENIED_DANGER_LEVELS:
        return DENY, f"its danger level is {danger}"
    beyond = [
        word
        for word in guard.capabilities
        if ":".join(word.split(":")[:2]) not in _READ_CAPABILITIES
    ]
    reasons = {
        "it needs a human's approval": guard.approval,
        "a human is to be in the loop": guard.human_in_the_loop,
        f"its danger level is {danger}": danger not in _HARMLESS_DANGER_LEVELS,
        "it may destroy data": behavior.destructive,
        f"it can do more than read: {', '.join(beyond)}": bool(beyond),
        "it reaches beyond this machine": behavior.open_world,
        "it does not say that it only reads": not behavior.read_only,
    }
    why = next((why for why, holds in reasons.items() if holds), None)
    return (ALLOW, "it only reads") if why is None else (ASK, why)


def _is_unambiguous_prefix(tool: Tool, app_info: AppInfo) -> bool:
    """Whether its words, as a beginning, begin no other command.

    A program that is one single command has the built-in ones behind the same word: they write
    files and open ports.
    """
    own_words = tool.cli_path
    others = [other.cli_path for other in app_info.tools if other is not tool]
    return bool(own_words) and all(words[: len(own_words)] != own_words for words in others)


# ------------------------------------------------------------------ hosts


def _claude_code(app_info: AppInfo, server: str, rule_list: list[PermissionRule]) -> dict[str, str]:
    """Rules of Claude Code. Of several that match, deny comes before ask, and ask before allow."""
    lists: dict[str, list[str]] = {ALLOW: [], ASK: [], DENY: []}
    for rule in rule_list:
        if rule.words:
            lists[rule.decision].append(f"Bash({' '.join(rule.words)} *)")
            for line in _with_flags_between(rule, "-*"):
                lists[rule.decision] += [f"Bash({line})", f"Bash({line} *)"]
        lists[rule.decision].append(f"mcp__{server}__{rule.name}")
    return {".claude/settings.json": _json({"permissions": lists})}


def _with_flags_between(rule: PermissionRule, flags: str) -> list[str]:
    """The command with flags before its words, which is the same command and must not pass."""
    program, *words = rule.words or ("",)
    if rule.decision == ALLOW or not words:
        return []
    lines = [program]
    for word in words[:3]:
        lines = [f"{line}{gap}{word}" for line in lines for gap in (" ", f" {flags} ")]
    return [" ".join([line, *words[3:]]) for line in lines[1:]]


def _cursor(app_info: AppInfo, server: str, rule_list: list[PermissionRule]) -> dict[str, str]:
    """Rules of Cursor's command line. What is in neither list asks.

    How it matches a line of several commands is told nowhere, so no shell command is allowed;
    the tools of the MCP server are, by their whole names.
    """
    allow = [f"Mcp({server}:{rule.name})" for rule in rule_list if rule.decision == ALLOW]
    deny: list[str] = []
    for rule in rule_list:
        if rule.decision == DENY:
            deny.append(f"Mcp({server}:{rule.name})")
            program, *words = rule.words or ("",)
            line = " ".join(words)
            if program and not words:
                deny.append(f"Shell({program})")
            lines = [
                line,
                *[flagged.partition(" ")[2] for flagged in _with_flags_between(rule, "-*")],
            ]
            for line in lines if words else ():
                deny += [f"Shell({program}:{line})", f"Shell({program}:{line} *)"]
    return {".cursor/cli.json": _json({"permissions": {"allow": allow, "deny": deny}})}


_CODEX_DECISIONS = {ALLOW: "allow", ASK: "prompt", DENY: "forbidden"}
_CODEX_APPROVAL_MODES = {ALLOW: "approve", ASK: "prompt"}


def _codex(app_info: AppInfo, server: str, rule_list: list[PermissionRule]) -> dict[str, str]:
    """Rules of Codex: by whole words, the strictest of those that match; and its MCP tools."""
    parts: list[str] = []
    for rule in rule_list:
        if rule.words:
            line = " ".join(rule.words)
            parts.append(
                "prefix_rule(\n"
                f"    pattern = {_quote(list(rule.words))},\n"
                f"    decision = {_quote(_CODEX_DECISIONS[rule.decision])},\n"
                f"    justification = {_quote(f'{line}: {rule.reason}.')},\n"
                f"    match = [{_quote(line)}],\n"
                ")"
            )
    denied = [rule.name for rule in rule_list if rule.decision == DENY]
    tables = [
        f"[mcp_servers.{server}]\n"
        f"command = {_quote(app_info.name)}\n"
        'args = ["mcp", "serve", "--transport", "stdio"]'
        + (f"\ndisabled_tools = {_quote(denied)}" if denied else "")
    ]
    tables += [
        f"[mcp_servers.{server}.tools.{rule.name}]\n"
        f"approval_mode = {_quote(_CODEX_APPROVAL_MODES[rule.decision])}"
        for rule in rule_list
        if rule.decision != DENY
    ]
    return {
        f".codex/rules/{server}.rules": "\n\n".join(parts) + "\n" if parts else "",
        ".codex/config.toml": "\n\n".join(tables) + "\n",
    }


_GEMINI_DECISIONS = {ALLOW: ("allow", 100), ASK: ("ask_user", 200), DENY: ("deny", 300)}
"""The stricter rule has the higher priority, whatever the order."""


def _gemini(app_info: AppInfo, server: str, rule_list: list[PermissionRule]) -> dict[str, str]:
    """A policy of Gemini's: whole words; a line of several commands is judged by each of them."""
    parts: list[str] = []
    for rule in rule_list:
        decision, priority = _GEMINI_DECISIONS[rule.decision]
        ruling = f"decision = {_quote(decision)}\npriority = {priority}"
        if rule.words:
            shell = f"# {' '.join(rule.words)}: {rule.reason}.\n[[rule]]\n"
            shell += 'toolName = "run_shell_command"\n'
            parts.append(f"{shell}commandPrefix = {_quote(' '.join(rule.words))}\n{ruling}")
            escaped = rule.replace(words=tuple([word.replace(".", r"\.") for word in rule.words]))
            for line in _with_flags_between(escaped, "-.*"):
                pattern = rf"{line}[\s\"]"
                parts.append(f"{shell}commandRegex = {_quote(pattern)}\n{ruling}")
        parts.append(
            f"[[rule]]\nmcpName = {_quote(server)}\ntoolName = {_quote(rule.name)}\n{ruling}"
        )
    return {f".gemini/policies/{server}.toml": "\n\n".join(parts) + "\n"}


HOSTS: dict[str, Callable[[AppInfo, str, list[PermissionRule]], dict[str, str]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "cursor": _cursor,
    "gemini": _gemini,
}


def _quote(value: object) -> str:
    """A text or a list of texts, as JSON, TOML and Starlark write them."""
    from json import dumps

    return dumps(value, ensure_ascii=False)


def _json(value: object) -> str:
    from json import dumps

    return dumps(value, indent=2, ensure_ascii=False) + "\n"
