"""Permission rules for coding agents: which commands they may run, must ask about, or must not run.

A command is allowed only if its author declares that it only reads. It is denied if its danger
level is critical or forbidden. The host, which is the coding agent, asks its user before it runs
any other command. An allow rule that would also match other commands is left out, so that the host
asks. The rules do not replace the checks of the app, which still requires `--yes` or a human's
approval.
"""

from __future__ import annotations

from json import dumps

from tooli.core import Record
from tooli.core.agent_hosts import AGENT_HOSTS, RULE_HOSTS
from tooli.describe.front_matter import skill_slug
from tooli.describe.mcp_tools import tools_by_safe_name
from tooli.errors import InputError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.core.tool import Tool
    from tooli.describe.sections import AppInfo

ALLOW, ASK, DENY = "allow", "ask", "deny"

_READ_CAPABILITIES = frozenset(("fs:read", "none"))
"""Capabilities that change nothing and send nothing to another machine."""

_DENIED_DANGER_LEVELS = frozenset(("critical", "forbidden"))
_HARMLESS_DANGER_LEVELS = frozenset(("", "none", "low"))
_SAFE_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


class PermissionRule(Record):
    """The decision about one command."""

    decision: str
    reason: str
    argv: tuple[str, ...]  # program and command; empty if it gets no rule for the shell
    name: str  # the name of the MCP tool


def render_rules(app_info: AppInfo, host: str) -> dict[str, str]:
    """Return the rule files of a host, by their paths in a project or in the home folder."""
    if host not in RULE_HOSTS:
        known = ", ".join(RULE_HOSTS)
        raise InputError(f"There are no rules for {host!r}. Use one of {known}.", field="host")
    render = RULE_FORMATS[AGENT_HOSTS[host].rules]
    files = render(app_info, skill_slug(app_info.name), build_permission_rules(app_info))
    return {path: text for path, text in files.items() if text}


def is_settings_file(path: str) -> bool:
    """True for a file of the agent's own settings, to which rules are added."""
    return path.endswith((".json", "/config.toml"))


def build_permission_rules(app_info: AppInfo) -> list[PermissionRule]:
    """Return a rule for each command, in the app's order."""
    rules: list[PermissionRule] = []
    for name, tool in tools_by_safe_name(app_info.tools).items():
        decision, reason = decide(tool)
        reason = " ".join(reason.split())  # a line break would end the comment
        argv = (*app_info.start_words, *tool.cli_path)
        if not all(part and part[0] != "-" and _SAFE_CHARACTERS.issuperset(part) for part in argv):
            argv = ()
        if decision == ALLOW and not _is_unambiguous_prefix(tool, app_info):
            argv = ()
        rules.append(PermissionRule(decision, reason, argv, name))
    return rules


def decide(tool: Tool) -> tuple[str, str]:
    """Return ALLOW, ASK or DENY for a command, and the reason."""
    guard, behavior = tool.guard, tool.behavior
    danger = str(guard.danger or "").strip().lower()
    if danger in _DENIED_DANGER_LEVELS:
        return DENY, f"its danger level is {danger}"
    beyond_reading = [
        capability
        for capability in guard.capabilities
        if ":".join(capability.split(":")[:2]) not in _READ_CAPABILITIES
    ]
    reasons = {
        "it requires a human's approval": guard.approval,
        "it requires a human in the loop": guard.human_in_the_loop,
        f"its danger level is {danger}": danger not in _HARMLESS_DANGER_LEVELS,
        "it may destroy data": behavior.destructive,
        f"it can do more than read: {', '.join(beyond_reading)}": bool(beyond_reading),
        "it accesses other machines": behavior.open_world,
        "it is not declared read-only": not behavior.read_only,
    }
    reason = next((text for text, holds in reasons.items() if holds), None)
    return (ALLOW, "it only reads") if reason is None else (ASK, reason)


def _is_unambiguous_prefix(tool: Tool, app_info: AppInfo) -> bool:
    """True if no other command of the app starts with the path of this command.

    It is False for an app with a single command, because built-in commands, which write files and
    open ports, start with the same program name.
    """
    path = tool.cli_path
    others = [other.cli_path for other in app_info.tools if other is not tool]
    return bool(path) and all(other[: len(path)] != path for other in others)


# ------------------------------------------------------------------ hosts


def _claude_code(app_info: AppInfo, server: str, rules: list[PermissionRule]) -> dict[str, str]:
    """Return the rules for Claude Code. It checks deny rules first, then ask rules, then allow."""
    return {".claude/settings.json": _json({"permissions": _rule_lists(server, rules)})}


def _rule_lists(server: str, rules: list[PermissionRule]) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {ALLOW: [], ASK: [], DENY: []}
    for rule in rules:
        if rule.argv:
            lists[rule.decision].append(f"Bash({' '.join(rule.argv)} *)")
            for line in _with_flags_between(rule, "-*"):
                lists[rule.decision] += [f"Bash({line})", f"Bash({line} *)"]
        lists[rule.decision].append(f"mcp__{server}__{rule.name}")
    return lists


def _with_flags_between(rule: PermissionRule, flags: str) -> list[str]:
    """Return patterns that match the command with flags between its parts.

    Allow rules get none, because such a pattern could match other commands.
    """
    program, *path = rule.argv or ("",)
    if rule.decision == ALLOW or not path:
        return []
    lines = [program]
    for part in path[:3]:
        lines = [f"{line}{gap}{part}" for line in lines for gap in (" ", f" {flags} ")]
    return [" ".join([line, *path[3:]]) for line in lines[1:]]


def _cursor(app_info: AppInfo, server: str, rules: list[PermissionRule]) -> dict[str, str]:
    """Return the rules for the Cursor CLI, which asks about everything that is in neither list.

    It is undocumented how Cursor matches a line of several commands, so no shell command is
    allowed. Tools of the MCP server are allowed by their full names.
    """
    allow = [f"Mcp({server}:{rule.name})" for rule in rules if rule.decision == ALLOW]
    deny: list[str] = []
    for rule in rules:
        if rule.decision == DENY:
            deny.append(f"Mcp({server}:{rule.name})")
            program, *path = rule.argv or ("",)
            if program and not path:
                deny.append(f"Shell({program})")
            lines = [
                " ".join(path),
                *[flagged.partition(" ")[2] for flagged in _with_flags_between(rule, "-*")],
            ]
            for line in lines if path else ():
                deny += [f"Shell({program}:{line})", f"Shell({program}:{line} *)"]
    return {".cursor/cli.json": _json({"permissions": {"allow": allow, "deny": deny}})}


_CODEX_DECISIONS = {ALLOW: "allow", ASK: "prompt", DENY: "forbidden"}
_CODEX_APPROVAL_MODES = {ALLOW: "approve", ASK: "prompt"}


def _codex(app_info: AppInfo, server: str, rules: list[PermissionRule]) -> dict[str, str]:
    """Return the rules for Codex, which matches whole words and applies the strictest match."""
    parts: list[str] = []
    for rule in rules:
        if rule.argv:
            line = " ".join(rule.argv)
            parts.append(
                "prefix_rule(\n"
                f"    pattern = {_quote(list(rule.argv))},\n"
                f"    decision = {_quote(_CODEX_DECISIONS[rule.decision])},\n"
                f"    justification = {_quote(f'{line}: {rule.reason}.')},\n"
                f"    match = [{_quote(line)}],\n"
                ")"
            )
    denied = [rule.name for rule in rules if rule.decision == DENY]
    program, *arguments = app_info.builtin_argv("mcp", "serve", "--transport", "stdio")
    tables = [
        f"[mcp_servers.{server}]\ncommand = {_quote(program)}\nargs = {_quote(arguments)}"
        + (f"\ndisabled_tools = {_quote(denied)}" if denied else "")
    ]
    tables += [
        f"[mcp_servers.{server}.tools.{rule.name}]\n"
        f"approval_mode = {_quote(_CODEX_APPROVAL_MODES[rule.decision])}"
        for rule in rules
        if rule.decision != DENY
    ]
    return {
        f".codex/rules/{server}.rules": "\n\n".join(parts) + "\n" if parts else "",
        ".codex/config.toml": "\n\n".join(tables) + "\n",
    }


_GEMINI_DECISIONS = {ALLOW: ("allow", 100), ASK: ("ask_user", 200), DENY: ("deny", 300)}
"""Decision and priority of each rule. A stricter rule has a higher priority."""


def _gemini(app_info: AppInfo, server: str, rules: list[PermissionRule]) -> dict[str, str]:
    """Return the policy for Gemini CLI, which matches whole words in each command of a line."""
    parts: list[str] = []
    for rule in rules:
        decision, priority = _GEMINI_DECISIONS[rule.decision]
        ruling = f"decision = {_quote(decision)}\npriority = {priority}"
        if rule.argv:
            shell = f"# {' '.join(rule.argv)}: {rule.reason}.\n[[rule]]\n"
            shell += 'toolName = "run_shell_command"\n'
            parts.append(f"{shell}commandPrefix = {_quote(' '.join(rule.argv))}\n{ruling}")
            escaped = rule.replace(argv=tuple([part.replace(".", r"\.") for part in rule.argv]))
            for line in _with_flags_between(escaped, "-.*"):
                pattern = rf"{line}[\s\"]"
                parts.append(f"{shell}commandRegex = {_quote(pattern)}\n{ruling}")
        parts.append(
            f"[[rule]]\nmcpName = {_quote(server)}\ntoolName = {_quote(rule.name)}\n{ruling}"
        )
    return {f".gemini/policies/{server}.toml": "\n\n".join(parts) + "\n"}


def _qwen_code(app_info: AppInfo, server: str, rules: list[PermissionRule]) -> dict[str, str]:
    """Return the rules for Qwen Code, which has the rules of Claude Code in its own settings."""
    return {".qwen/settings.json": _json({"permissions": _rule_lists(server, rules)})}


def _opencode(app_info: AppInfo, server: str, rules: list[PermissionRule]) -> dict[str, str]:
    """Return the rules for OpenCode, where the last matching rule wins. It checks each command."""
    tools: dict[str, object] = {}
    lines: dict[str, str] = {}
    for decision in (ALLOW, ASK, DENY):
        for rule in rules:
            if rule.decision != decision:
                continue
            tools[f"{server}_{rule.name}"] = decision
            for line in (
                [" ".join(rule.argv), *_with_flags_between(rule, "-*")] if rule.argv else ()
            ):
                lines[line] = lines[f"{line} *"] = decision
    permission = {"bash": lines, **tools} if lines else tools
    return {"opencode.json": _json({"permission": permission})}


def _copilot(app_info: AppInfo, server: str, rules: list[PermissionRule]) -> dict[str, str]:
    """Return a script that starts Copilot CLI, which has rules on its command line only.

    Copilot allows a whole program only, never one of its commands. Therefore commands in the shell
    are denied or left to Copilot, never allowed.
    """
    flags = [f"--allow-tool='{server}({rule.name})'" for rule in rules if rule.decision == ALLOW]
    for rule in rules:
        if rule.decision == DENY:
            flags.append(f"--deny-tool='{server}({rule.name})'")
            if rule.argv:
                flags.append(f"--deny-tool='shell({' '.join(rule.argv)}:*)'")
    script = f"#!/bin/sh\n# Start Copilot CLI with the permission rules of {server}.\n"
    lines = " \\\n  ".join(["exec copilot", *flags, '"$@"'])
    return {f".github/copilot/{server}.sh": f"{script}{lines}\n" if flags else ""}


RULE_FORMATS: dict[str, Callable[[AppInfo, str, list[PermissionRule]], dict[str, str]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "copilot": _copilot,
    "cursor": _cursor,
    "gemini": _gemini,
    "opencode": _opencode,
    "qwen-code": _qwen_code,
}


def _quote(value: object) -> str:
    """Return a string or a list of strings in the syntax of JSON, TOML and Starlark."""
    return dumps(value, ensure_ascii=False)


def _json(value: object) -> str:
    return dumps(value, indent=2, ensure_ascii=False) + "\n"
