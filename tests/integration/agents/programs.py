"""The agent programs, and how to run them offline against a scripted model.

`python -m tests.integration.agents.programs` installs them (about 2.1 GB) into .cache/node. Their
versions are pinned here and nowhere else.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.integration.agents.scripted_model import Call, ScriptedModel
from tests.integration.node import install, node

from tooli.core.agent_hosts import AGENT_HOSTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.integration.agents.scripted_model import Answer, Conversation

APP = Path(__file__).with_name("shop.py")
PROMPT = "Use the shop."
TIMEOUT = 180
"""Seconds after which a program counts as hung. An idle machine needs at most 20."""


class Program(NamedTuple):
    """An agent program. Texts may contain {url}, {project} and {prompt}."""

    agent: str  # name in AGENT_HOSTS
    package: str  # npm package and version
    executable: str  # pattern of its path in the folder of the package
    argv: tuple[str, ...]
    allow_all: tuple[str, ...]  # arguments that allow every tool
    variables: dict[str, str]
    settings: dict[str, Any]  # the user's files, by their path in the home folder
    tool: str  # the name of an MCP tool, as the model sees it
    shell: tuple[str, str]  # name of the shell tool, and of its argument
    shell_arguments: dict[str, Any]  # other required arguments of the shell tool
    project_settings: tuple[str, str]  # a file that the project has already, and its text
    caller: str  # as `detect-context` reports it
    skill_text: str = "Look after a small shop. Use it to find items"  # what the model sees of it
    takes_command_list: bool = False  # the shell tool takes several commands
    has_project_servers: bool = True  # otherwise, `project_settings` is a file of the user
    validates_arguments: bool = False  # the program rejects arguments, and the server sees none
    rules_in_shell: bool = True  # rules can allow a single command of a program

    def run_in_shell(self, line: str) -> Call:
        """Return a call that runs a command line."""
        name, argument = self.shell
        value = [line] if self.takes_command_list else line
        return Call(name, {argument: value, **self.shell_arguments})

    def call(self, tool: str, **arguments: Any) -> Call:
        """Return a call of a tool of the MCP server."""
        return Call(self.tool.format(tool), arguments)


CODEX = Program(
    agent="codex",
    package="@openai/codex@0.169.0",
    executable="node_modules/@openai/codex/bin/codex.js",
    argv=("exec", "{prompt}"),
    allow_all=("--sandbox", "danger-full-access"),
    variables={"SCRIPTED_MODEL_KEY": "none"},
    settings={
        ".codex/config.toml": (
            'model = "scripted"\nmodel_provider = "scripted"\nsandbox_mode = "workspace-write"\n'
            '[model_providers.scripted]\nname = "scripted"\nbase_url = "{url}/v1"\n'
            'wire_api = "responses"\nenv_key = "SCRIPTED_MODEL_KEY"\n'
            '[projects."{project}"]\ntrust_level = "trusted"\n'
        )
    },
    tool="{}",
    shell=("exec_command", "cmd"),
    shell_arguments={},
    project_settings=(".codex/config.toml", "# mine\nhide_agent_reasoning = true\n"),
    caller="codex",
)

CLAUDE_CODE = Program(
    agent="claude-code",
    package="@anthropic-ai/claude-code@2.1.326",
    executable="node_modules/@anthropic-ai/claude-code-*/claude",
    argv=("-p", "{prompt}", "--model", "sonnet"),
    allow_all=("--allowedTools", "Bash", "mcp__shop"),
    variables={
        "ANTHROPIC_BASE_URL": "{url}",
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    },
    settings={
        ".claude.json": {
            "hasCompletedOnboarding": True,
            "projects": {"{project}": {"hasTrustDialogAccepted": True}},
        },
        ".claude/settings.json": {"enableAllProjectMcpServers": True},
    },
    tool="mcp__shop__{}",
    shell=("Bash", "command"),
    shell_arguments={"description": "x"},
    project_settings=(".mcp.json", '{"mcpServers": {}}'),
    caller="claude-code",
)

GEMINI_CLI = Program(
    agent="gemini",
    package="@google/gemini-cli@0.61.0",
    executable="node_modules/.bin/gemini",
    argv=("-p", "{prompt}", "-m", "gemini-2.5-pro"),
    allow_all=("--yolo",),
    variables={"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "none"},
    settings={
        ".gemini/settings.json": {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
        },
        ".gemini/trustedFolders.json": {"{project}": "TRUST_FOLDER"},
    },
    tool="mcp_shop_{}",
    shell=("run_shell_command", "command"),
    shell_arguments={"description": "x"},
    project_settings=(".gemini/settings.json", '{\n  // mine\n  "ui": {}\n}\n'),
    caller="gemini-cli",
    validates_arguments=True,
)

OPENCODE = Program(
    agent="opencode",
    package="opencode-ai@1.18.33",
    executable="node_modules/opencode-*/bin/opencode",
    argv=("run", "{prompt}"),
    allow_all=(),
    variables={
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    },
    settings={
        ".config/opencode/opencode.json": {
            "autoupdate": False,
            "share": "disabled",
            "model": "scripted/model",
            "small_model": "scripted/model",
            "provider": {
                "scripted": {
                    "npm": "@ai-sdk/openai-compatible",
                    "name": "scripted",
                    "options": {"baseURL": "{url}/v1", "apiKey": "none"},
                    "models": {"model": {"name": "model", "tool_call": True}},
                }
            },
        }
    },
    tool="shop_{}",
    shell=("bash", "command"),
    shell_arguments={"description": "x"},
    project_settings=(  # OpenCode adds $schema to a file that has none
        "opencode.json",
        '{\n  // mine\n  "$schema": "https://opencode.ai/config.json"\n}\n',
    ),
    caller="opencode",
)

COPILOT_CLI = Program(
    agent="copilot",
    package="@github/copilot@1.0.102",
    executable="node_modules/@github/copilot-*/copilot",
    argv=("-p", "{prompt}"),
    allow_all=("--allow-all-tools",),
    variables={
        "COPILOT_PROVIDER_BASE_URL": "{url}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": "none",
        "COPILOT_MODEL": "scripted",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    },
    settings={".copilot/config.json": {"trustedFolders": ["{project}"]}},
    tool="shop-{}",
    shell=("bash", "command"),
    shell_arguments={"description": "x"},
    project_settings=(".github/mcp.json", '{\n  "mcpServers": {}\n}'),
    caller="copilot-cli",
    rules_in_shell=False,
)

CLINE = Program(
    agent="cline",
    package="cline@3.0.65",
    executable="node_modules/cline/bin/cline",
    argv=("{prompt}",),
    allow_all=(),  # without a terminal, it allows every tool
    variables={},
    settings={
        ".cline/data/settings/providers.json": {
            "version": 1,
            "lastUsedProvider": "openai-compatible",
            "modes": {},
            "providers": {
                "openai-compatible": {
                    "settings": {
                        "provider": "openai-compatible",
                        "apiKey": "none",
                        "model": "scripted",
                        "baseUrl": "{url}/v1",
                    },
                    "updatedAt": "2026-01-01T00:00:00.000Z",
                    "tokenSource": "manual",
                }
            },
        }
    },
    tool="shop__{}",
    shell=("run_commands", "commands"),
    shell_arguments={},
    project_settings=(
        ".cline/data/settings/cline_mcp_settings.json",
        '{\n  "mcpServers": {}\n}\n',
    ),
    caller="cline",
    skill_text="Available skills: shop",
    takes_command_list=True,
    has_project_servers=False,
)

GOOSE = Program(
    agent="goose",
    package="@aaif/goose-binary-linux-x64@1.52.0",
    executable="node_modules/.bin/goose-binary-*",
    argv=("run", "--no-session", "-t", "{prompt}"),
    allow_all=(),
    variables={
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": "gpt-4o",
        "GOOSE_MODE": "auto",
        "GOOSE_DISABLE_KEYRING": "1",
        "GOOSE_TELEMETRY_ENABLED": "false",
        "OPENAI_HOST": "{url}",
        "OPENAI_API_KEY": "none",
    },
    settings={},
    tool="shop__{}",
    shell=("shell", "command"),
    shell_arguments={},
    project_settings=(
        ".config/goose/config.yaml",
        "# mine\nextensions:\n  developer:\n    type: builtin\n    name: developer\n"
        "    enabled: true\n    timeout: 300\n",
    ),
    caller="goose",
    has_project_servers=False,
)

PROGRAMS = (CODEX, CLAUDE_CODE, GEMINI_CLI, OPENCODE, COPILOT_CLI, CLINE, GOOSE)
RULED_PROGRAMS = tuple([program for program in PROGRAMS if AGENT_HOSTS[program.agent].rules])
"""The programs that have permission rules."""


class Workplace:
    """A home folder, a project and the program `shop`, in which an agent program runs."""

    def __init__(self, program: Program, folder: Path) -> None:
        self.program = program
        self.home, self.project, self.bin = (folder / name for name in ("home", "project", "bin"))
        for path in (self.home, self.project, self.bin):
            path.mkdir()
        subprocess.run(["git", "init", "-q", self.project], check=True)
        shop = self.bin / "shop"
        shop.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{APP}" "$@"\n')
        shop.chmod(0o755)
        # Codex starts a login shell, and /etc/profile sets the PATH.
        self.write(self.home, {".profile": f'PATH="{self.bin}:$PATH"\n'})
        owner = self.project if program.has_project_servers else self.home
        self.write(owner, dict([program.project_settings]))

    def write(self, root: Path, files: dict[str, Any]) -> None:
        """Write files below a folder."""
        for path, content in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            text = content if isinstance(content, str) else json.dumps(content)
            (root / path).write_text(text.replace("{project}", str(self.project)))

    def project_files(self) -> dict[str, bytes]:
        """Return the content of all files in the project, and of the file with the servers."""
        found = {
            str(path.relative_to(self.project)): path.read_bytes()
            for path in self.project.rglob("*")
            if path.is_file() and ".git" not in path.parts
        }
        servers = self.program.project_settings[0]
        if not self.program.has_project_servers:
            found[servers] = (self.home / servers).read_bytes()
        return found

    def register_server(self, action: str = "add") -> None:
        """Run `mcp add` or `mcp remove`."""
        scope = () if self.program.has_project_servers else ("--user",)
        self.shop("mcp", action, "--agent", self.program.agent, *scope)

    def shop(self, *argv: str) -> Any:
        """Run the app itself, with the user's environment; return its result."""
        done = subprocess.run(
            [self.bin / "shop", *argv, "--json"],
            cwd=self.project,
            env=self._environment(),
            capture_output=True,
            timeout=TIMEOUT,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)["result"]

    def change_rules(self, *options: str) -> list[str]:
        """Write or remove the permission rules; return how the program is started with them."""
        agent = self.program.agent
        folder = self.home if AGENT_HOSTS[agent].rules_for == "user" else self.project
        files = self.shop(
            *("export", "--target", "permissions", "--host", agent, "--out", str(folder)), *options
        )
        if agent == "copilot":  # its rules are flags in a script that starts `copilot`
            (self.bin / "copilot").unlink(missing_ok=True)
            (self.bin / "copilot").symlink_to(self._start()[-1])
            return ["sh", str(self.project / files[0]["path"])]
        return self._start()

    def run(
        self,
        script: list[Call],
        *arguments: str,
        start: Sequence[str] = (),
        answer: Callable[[Conversation], Answer] | None = None,
    ) -> ScriptedModel:
        """Run the agent program with a script, or a function; return what its model received."""
        program = self.program
        with ScriptedModel(script, answer) as model:
            self.write(
                self.home,
                {
                    path: (text if isinstance(text, str) else json.dumps(text)).replace(
                        "{url}", model.url
                    )
                    for path, text in program.settings.items()
                },
            )
            variables = {
                name: value.replace("{url}", model.url) for name, value in program.variables.items()
            }
            argv = [argument.replace("{prompt}", PROMPT) for argument in program.argv]
            output = self._run_process([*(start or self._start()), *argv, *arguments], variables)
        assert model.conversations, output
        model.output = output
        return model

    def _start(self) -> list[str]:
        program = self.program
        folder = install(program.package)
        (path, *_) = sorted(folder.glob(program.executable), reverse=True)
        return [str(node()), str(path)] if path.resolve().suffix == ".js" else [str(path)]

    def _environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.bin), str(node().parent), "/usr/bin", "/bin"])
        return {"PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "dumb"}

    def _run_process(self, argv: Sequence[str], variables: dict[str, str]) -> str:
        process = subprocess.Popen(
            argv,
            cwd=self.project,
            env={**self._environment(), **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=TIMEOUT)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also what the program has started
            process.wait()
            self._stop_daemons()
        return output.decode(errors="replace")

    def _stop_daemons(self) -> None:
        """Stop processes with this home folder: Cline starts one in a session of its own."""
        home = f"HOME={self.home}".encode()
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if home in environment.read_bytes().split(b"\0"):
                    os.kill(int(environment.parent.name), signal.SIGKILL)


if __name__ == "__main__":
    for each in PROGRAMS:
        print(install(each.package))
