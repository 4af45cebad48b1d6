"""Detect agents in the parent processes, and containers by their files.

Only `detect-context --deep` and `detect_execution_context(deep=True)` use this module, because it
is slow: it opens files, and starts `ps` on systems without /proc.
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
"""Agents by the name of their program or of their script."""

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
"""Agents by the npm package of their script."""

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
"""Maximum number of parent processes that are checked."""


def find_agents(root: str = "/", pid: int | None = None) -> list[tuple[str, str]]:
    """Return the agents among the parent processes and the agents that a file indicates.

    Each agent is a pair of name and signal.
    """
    found: list[tuple[str, str]] = []
    for number, argv in iter_processes_upwards(root, os.getppid() if pid is None else pid):
        name = identify_agent(argv)
        if name is not None and name not in dict(found):
            found.append((name, f"process {number} is {os.path.basename(argv[0])}"))
    if os.path.exists(os.path.join(root, "opt", ".devin")):
        found.append(("devin", "/opt/.devin exists"))
    return found


def find_containers(root: str = "/") -> list[tuple[str, str]]:
    """Return the containers that files and control groups indicate, as pairs of name and signal."""
    found = [
        (name, f"/{path} exists")
        for name, path in CONTAINER_FILES
        if os.path.exists(os.path.join(root, *path.split("/")))
    ]
    group = _read_text(os.path.join(root, "proc", "1", "cgroup"))
    found += [
        (name, f"/proc/1/cgroup contains {pattern}")
        for name, pattern in CONTAINER_CGROUPS
        if pattern in group
    ]
    return found


def identify_agent(argv: list[str]) -> str | None:
    """Return the name of the agent that a command line starts, or None."""
    for argument in argv[:2]:  # the program, and the script if the program is an interpreter
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
    """Yield the PID and the command line of a process and of its parents."""
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
    stat = _read_text(os.path.join(proc_dir, "stat"))  # such as `123 (bash) S 1 …`
    head, _, rest = stat.rpartition(")")  # the name in parentheses may contain ")"
    fields = rest.split()
    parent = int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else 0
    argv = list(filter(None, _read_text(os.path.join(proc_dir, "cmdline")).split("\0")))
    name = head.partition("(")[2]
    return parent, argv or ([name] if name else [])


def _list_with_ps() -> dict[int, tuple[int, list[str]]]:
    """Return the parent and the command line of every process by PID; empty without `ps`."""
    import subprocess

    command_line = ["ps", "-A", "-o", "pid=,ppid=,command="]
    try:
        done = subprocess.run(command_line, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return {}
    found: dict[int, tuple[int, list[str]]] = {}
    for line in done.stdout.splitlines():
        fields = line.split()
        if len(fields) > 1 and fields[0].isdigit() and fields[1].isdigit():
            found[int(fields[0])] = (int(fields[1]), fields[2:])
    return found


def _read_text(path: str) -> str:
    """Return the text of a small file; "" if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(65536)
    except OSError:
        return ""
