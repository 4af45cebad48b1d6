"""Who is calling, looked for outside the environment: processes above this one, files around it.

Only `detect-context --deep` and `detect_execution_context(deep=True)` come here: it opens files,
and where there is no /proc it starts `ps`.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

AGENT_PROGRAMS: dict[str, str] = {
    "claude": "claude-code",
    "codex": "codex",
    "gemini": "gemini-cli",
    "qwen": "qwen-code",
    "copilot": "copilot-cli",
    "opencode": "opencode",
    "cursor-agent": "cursor",
    "amp": "amp",
    "goose": "goose",
    "goosed": "goose",
    "crush": "crush",
    "auggie": "auggie",
    "kilo": "kilo",
    "kimi": "kimi-code",
    "aider": "aider",
    "cline": "cline",
    "openhands": "openhands",
}
"""Agents by the name of their process, or of the script that an interpreter runs."""

AGENT_PACKAGES: dict[str, str] = {
    "@anthropic-ai/claude-code": "claude-code",
    "@openai/codex": "codex",
    "@google/gemini-cli": "gemini-cli",
    "@qwen-code/qwen-code": "qwen-code",
    "@github/copilot": "copilot-cli",
    "opencode-ai": "opencode",
    "@sourcegraph/amp": "amp",
    "@augmentcode/auggie": "auggie",
}
"""Agents by the package that their script comes from."""

CONTAINER_FILES: tuple[tuple[str, str], ...] = (
    ("docker", ".dockerenv"),
    ("podman", "run/.containerenv"),
)
CONTAINER_CGROUPS: tuple[tuple[str, str], ...] = (
    ("kubernetes", "kubepods"),
    ("docker", "docker"),
    ("containerd", "containerd"),
    ("podman", "libpod"),
    ("lxc", "/lxc"),
)
"""Containers by the control group of the first process."""

MAX_PROCESSES = 32
"""How many processes above this one are looked at."""


def find_agents(root: str = "/", pid: int | None = None) -> list[tuple[str, str]]:
    """Agents among the processes above this one, and those that live in a machine of their own."""
    found: list[tuple[str, str]] = []
    for number, argv in iter_processes_upwards(root, os.getppid() if pid is None else pid):
        name = identify_agent(argv)
        if name is not None and name not in [one for one, _ in found]:
            found.append((name, f"process {number} is {os.path.basename(argv[0])}"))
    if os.path.exists(os.path.join(root, "opt", ".devin")):
        found.append(("devin", "there is /opt/.devin"))
    return found


def find_containers(root: str = "/") -> list[tuple[str, str]]:
    """Containers, by the files that they leave in every file system of theirs."""
    found = [
        (name, f"there is /{path}")
        for name, path in CONTAINER_FILES
        if os.path.exists(os.path.join(root, *path.split("/")))
    ]
    group = _read_text(os.path.join(root, "proc", "1", "cgroup"))
    found += [
        (name, f"/proc/1/cgroup names {pattern}")
        for name, pattern in CONTAINER_CGROUPS
        if pattern in group
    ]
    return found


def identify_agent(argv: list[str]) -> str | None:
    """The agent that a process is, by the first words of its command line."""
    for argument in argv[:2]:  # the program, and the script where the program is an interpreter
        path = argument.replace("\\", "/")
        name = path.rpartition("/")[2].lower()
        for ending in (".exe", ".js", ".mjs", ".py"):
            name = name.removesuffix(ending)
        if name in AGENT_PROGRAMS:
            return AGENT_PROGRAMS[name]
        for package, agent in AGENT_PACKAGES.items():
            if f"/{package}/" in path:
                return agent
    return None


def iter_processes_upwards(root: str, pid: int) -> Iterator[tuple[int, list[str]]]:
    """The processes from a number upwards: each with the words of its command line."""
    table = None if os.path.isdir(os.path.join(root, "proc", str(pid))) else _list_with_ps()
    seen: set[int] = set()
    while pid > 0 and pid not in seen and len(seen) < MAX_PROCESSES:
        seen.add(pid)
        parent, argv = _read_proc(root, pid) if table is None else table.get(pid, (0, []))
        if argv:
            yield pid, argv
        pid = parent


def _read_proc(root: str, pid: int) -> tuple[int, list[str]]:
    proc_dir = os.path.join(root, "proc", str(pid))
    status = _read_text(os.path.join(proc_dir, "stat"))
    head, _, rest = status.rpartition(")")  # the name in the middle may hold anything
    argv = [
        argument
        for argument in _read_text(os.path.join(proc_dir, "cmdline")).split("\0")
        if argument
    ]
    fields = rest.split()
    parent = int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else 0
    return parent, argv or [argument for argument in (head.partition("(")[2],) if argument]


def _list_with_ps() -> dict[int, tuple[int, list[str]]]:
    """Every process as `ps` lists it; nothing where there is no `ps`."""
    import subprocess

    command_line = ["ps", "-A", "-o", "pid=,ppid=,command="]
    try:
        done = subprocess.run(command_line, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return {}
    found: dict[int, tuple[int, list[str]]] = {}
    for line in done.stdout.splitlines():
        pid, parent, *command = line.split()
        if pid.isdigit() and parent.isdigit():
            found[int(pid)] = (int(parent), command)
    return found


def _read_text(path: str) -> str:
    """A small file's text; nothing where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(65536)
    except OSError:
        return ""
