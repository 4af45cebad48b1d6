"""The table of programs and of the command lines that are compared."""

from __future__ import annotations

from tests.integration.real_apps.command_lines import Line, Program, completion

CTRL_C = "\x03"
CTRL_D = "\x04"

GREETER = """
import typer

app = typer.Typer()


@app.command()
def hello(name: str, count: int = 1):
    \"\"\"Say hello.\"\"\"
    for _ in range(count):
        typer.echo(f"Hello {name}")


@app.command()
def bye(name: str = typer.Option(..., prompt=True), formal: bool = False):
    \"\"\"Say bye.\"\"\"
    typer.secho(f"Goodbye {name}" if formal else f"Bye {name}", fg="green")


@app.command()
def fail(code: int = 3):
    \"\"\"Fail.\"\"\"
    if code == 0:
        raise ValueError("code is 0")
    raise typer.Exit(code)
"""

SALES = "id,name,amount\n1,Ada,10\n2,Bob,20\n"

BROKEN_RST = "Title\n===\n\n.. unknown:: x\n\n``open\n"

UNUSED_IMPORTS = "import os\nimport sys\n\nprint(sys.argv)\n"

WEASEL_PROJECT = """
title: "Example"
description: "A project."
vars:
  name: "World"
directories: ["data"]
commands:
  - name: "greet"
    help: "Say hello"
    script:
      - "echo Hello ${vars.name}"
  - name: "count"
    help: "Count"
    script:
      - "echo 1 2 3"
workflows:
  all:
    - greet
    - count
"""

PYPROJECT = """
[project]
name = "example"
version = "1.0"
requires-python = ">=3.9,<3.12"
dependencies = ["athing", "bthing>=2; python_version < '3.10'"]

[project.optional-dependencies]
test = ["pytest>=7"]

[tool.pyproject2conda]
channels = ["conda-forge"]

[tool.pyproject2conda.envs.test]
extras = ["test"]
"""

DBT_CATALOG = """
{"nodes": {"model.p.users": {"metadata": {"schema": "main", "name": "users", "type": "table"},
"columns": {"id": {"name": "id"}, "email": {"name": "email"}}, "unique_id": "model.p.users"}},
"sources": {}, "metadata": {}}
"""

DBT_MANIFEST = """
{"metadata": {"dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v6.json"},
"sources": {}, "macros": {}, "nodes": {"model.p.users": {"unique_id": "model.p.users",
"resource_type": "model", "schema": "main", "name": "users", "original_file_path": "m/users.sql",
"columns": {"id": {"name": "id", "description": "The id"}, "email": {"name": "email"}},
"config": {"meta": {}}, "meta": {}, "tags": []}}}
"""

PLS_SETTINGS = """
{"user_name": "Ada", "initial_setup_done": true, "show_task_progress": false, "show_quotes": false,
 "tasks": [{"name": "Write", "done": false}, {"name": "Read", "done": true}]}
"""

FARM = """
compose_dir: /nonexistent
hosts:
  local: localhost
stacks:
  plex: local
  grafana: local
"""

TEMPLATE = """
mkdir -p "template/{{cookiecutter.name}}"
echo '{"name": "demo", "license": "MIT"}' > template/cookiecutter.json
echo 'Hello {{cookiecutter.license}}' > "template/{{cookiecutter.name}}/README.md"
git init -q -b main template
git -C template add .
git -C template commit -q -m first
"""

MCP_SERVER = """
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("demo")
"""

STRAWBERRY_SCHEMA = """
import strawberry


@strawberry.type
class Query:
    @strawberry.field
    def hello(self, name: str = "World") -> str:
        return f"Hello {name}"


schema = strawberry.Schema(query=Query)
"""

PROGRAMS = (
    Program(
        "typer",
        "Typer's own program: a custom group whose commands are those of a script",
        (
            "",
            "--help",
            "--version",
            "greet.py",
            "greet.py run",
            "greet.py run --help",
            "greet.py run hello --help",
            "greet.py run hello Ada",
            "greet.py run hello Ada --count 2",
            "greet.py run hello",
            "greet.py run hello Ada --count x",
            "greet.py run hello Ada --nosuch",
            "greet.py run nosuch",
            "greet.py run fail",
            "greet.py run fail --code 0",
            Line("greet.py run bye", "Ada\n", [("Name: ", "Ada\n")]),
            Line("greet.py run bye", "", [("Name: ", CTRL_C)]),
            "greet.py utils docs --name greet",
            "greet.py utils docs --name greet --output docs.md",
            "greet.py utils --help",
            "greet.py utils docs --help",
            "nosuch.py",
        ),
        {"work/greet.py": GREETER},
    ),
    Program(
        "toml",
        "flat commands with option callbacks that check a file",
        (
            "",
            "--help",
            "get --help",
            "set --help",
            "get project.name",
            "get project.name --toml-path nosuch.toml",
            "get project.nosuch",
            "get project.nosuch --default x",
            "get",
            "set project.name other",
            "set project.size 12 --to-int",
            "set project.size x --to-int",
            "set project.name",
            "add_section tool.new",
            "unset project.name",
            "search project.tags",
            "nosuch",
            "gat",
            "get --nosuch",
            "--show-completion bash",
            completion("_TOML_COMPLETE", "toml se"),
            completion("_TOML_COMPLETE", "toml set --"),
        ),
        {"work/config.toml": '[project]\nname = "demo"\ntags = ["a", "b"]\nsize = 1\n'},
    ),
    Program(
        "rstcheck",
        "one command, eager --version, configuration files, stdin",
        (
            "",
            "--help",
            "--version",
            "good.rst",
            "bad.rst",
            "--report-level ERROR bad.rst",
            "--report-level NOSUCH bad.rst",
            "--recursive .",
            "nosuch.rst",
            "--nosuch",
            Line("-", BROKEN_RST, at=("pipe",)),
        ),
        {"work/good.rst": "Title\n=====\n\nText.\n", "work/bad.rst": BROKEN_RST},
    ),
    Program(
        "pycln",
        "one command with a callback for every option, a formatter that changes files",
        (
            "",
            "--help",
            "-h",
            "--version",
            "a.py",
            "a.py --check",
            "a.py --diff",
            "a.py --quiet",
            "a.py -v --check",
            "nosuch.py",
            "--config pyproject.toml a.py --check",
            "--config nosuch.toml",
            "--nosuch",
            Line("-", UNUSED_IMPORTS, at=("pipe",)),
        ),
        {"work/a.py": UNUSED_IMPORTS, "work/pyproject.toml": "[tool.pycln]\nall = true\n"},
    ),
    Program(
        "dbt-coverage",
        "a callback with an option, enumerations, reports as files",
        (
            "",
            "--help",
            "compute --help",
            "compare --help",
            "compute doc",
            "compute doc --run-artifacts-dir target",
            "compute test --run-artifacts-dir target --output-format markdown",
            "compute doc --run-artifacts-dir target --cov-fail-under 0.9",
            "--verbose compute doc --run-artifacts-dir target",
            "compute nosuch",
            "compute",
            "compute doc --cov-fail-under many",
            "compare report.json nosuch.json",
            "nosuch",
            completion("_DBT_COVERAGE_COMPLETE", "dbt-coverage compute "),
        ),
        {"work/target/catalog.json": DBT_CATALOG, "work/target/manifest.json": DBT_MANIFEST},
    ),
    Program(
        "rpzip",
        "one command, counted options, help with preformatted lines",
        (
            "",
            "--help",
            "--version",
            "out.zip a.txt",
            "out a.txt b.txt -v",
            "-r out.zip folder -vv",
            "-q out.zip a.txt",
            "out.zip nosuch.txt",
            "out.zip",
            "--nosuch out.zip a.txt",
        ),
        {"work/a.txt": "a\n", "work/b.txt": "b\n", "work/folder/c.txt": "c\n"},
    ),
    Program(
        "cruft",
        "ASCII art as help, functions of other modules as commands, prompts of another library",
        (
            "",
            "--help",
            "create --help",
            "check --help",
            "create template --no-input",
            'create template -y --extra-context \'{"name": "other"}\'',
            Line(
                "create template", "x\ny\n", [("(demo)\x1b[0m: ", "x\n"), ("(MIT)\x1b[0m: ", "y\n")]
            ),
            Line("create template", "", [("(demo)\x1b[0m: ", CTRL_C)], at=("terminal",)),
            "create template --extra-context '{'",
            "create nosuch --no-input",
            "create",
            "check",
            "link nosuch",
            "nosuch",
        ),
        setup=TEMPLATE,
    ),
    Program(
        "pyodide",
        "a callback without commands, eager --version, plugins, Markdown help",
        ("", "--help", "--version", "nosuch", "--nosuch"),
    ),
    Program(
        "frictionless",
        "commands that have --json and --yaml of their own, many options",
        (
            "",
            "--help",
            "--version",
            "describe --help",
            "describe sales.csv",
            "describe sales.csv --json",
            "describe sales.csv --yaml",
            "extract sales.csv --json",
            "validate sales.csv",
            "validate sales.csv --json --limit-rows x",
            "validate nosuch.csv",
            "list sales.csv",
            "nosuch",
        ),
        {"work/sales.csv": SALES},
    ),
    Program(
        "peblar",
        "a subclass of Typer with async commands and error handlers, prompts with variables",
        (
            "",
            "--help",
            "config --help",
            "identify --help",
            "identify --host 127.0.0.1:1 --password x",
            "api --host 127.0.0.1:1 --password x",
            Line(
                "identify",
                "127.0.0.1:1\nsecret\n",
                [("Host address: ", "127.0.0.1:1\n"), ("Password: ", "secret\n")],
            ),
            Line("identify", "", [("Host address: ", CTRL_C)]),
            Line("identify", env={"PEBLAR_HOST": "127.0.0.1:1", "PEBLAR_PASSWORD": "x"}),
            "buzzer loud --host 127.0.0.1:1 --password x",
            "nosuch",
        ),
    ),
    Program(
        "pls",
        "a callback that is the program, prompts and confirmations, a file with settings, "
        "rich markup and emoji, commands named config, docs and version",
        (
            "--help",
            "add --help",
            "setup --help",
            "tasks",
            "add 'Buy milk'",
            "add",
            "done 1",
            "done x",
            "del 1",
            "config",
            "version",
            "docs --help",
            "callme Grace",
            "count-done",
            "count-undone",
            "tasks-progress --no-show",
            "nosuch",
            Line("clear", "y\n", [("[y/N]: ", "y\n")]),
            Line("clear", "n\n", [("[y/N]: ", "n\n")]),
            Line("clear", "", [("[y/N]: ", CTRL_C)]),
            Line(
                "setup",
                "Grace\nn\nn\n",
                [("you?\x1b[0m: ", "Grace\n")] + [("(Y/n)\x1b[0m: ", "n\n")] * 2,
            ),
            Line("setup", "", [("you?\x1b[0m: ", CTRL_D)]),
            completion("_PLS_COMPLETE", "pls co"),
        ),
        {"home/.config/pls/config.json": PLS_SETTINGS},
    ),
    Program(
        "pyproject2conda",
        "a custom group with aliases, callback options with variables, a command named json",
        (
            "",
            "--help",
            "--version",
            "yaml --help",
            "list",
            "l",
            "y",
            "yaml -e test",
            "yaml -e nosuch",
            "yaml -o env.yaml --python-include infer",
            "requirements",
            "r -e test",
            "json",
            "json --output-dir out",
            "project --dry",
            "conda-requirements",
            "nosuch",
            "--columns 60 yaml --help",
            "--columns x yaml",
            "yaml --pyproject nosuch.toml",
            Line("list --help", env={"P2C_COLUMNS": "70"}),
        ),
        {"work/pyproject.toml": PYPROJECT},
    ),
    Program(
        "compose-farm",
        "nested groups, help panels, a group named config, a file with settings",
        (
            "",
            "--help",
            "-h",
            "--version",
            "config",
            "config --help",
            "config init --help",
            "config path",
            "config show",
            "config init -p new.yaml",
            Line("config init -p farm.yaml", "n\n", [("[y/N]: ", "n\n")]),
            Line("config init -p farm.yaml", "", [("[y/N]: ", CTRL_C)]),
            "config validate -p farm.yaml",
            "config nosuch",
            "list --help",
            "list -c farm.yaml",
            "list -c farm.yaml --simple",
            "list -c nosuch.yaml",
            "up",
            "ssh",
            "nosuch",
            completion("_COMPOSE_FARM_COMPLETE", "compose-farm config "),
        ),
        {"work/farm.yaml": FARM},
    ),
    Program(
        "gitlabber",
        "one command with an optional argument, -h, option callbacks",
        (
            "",
            "--help",
            "-h",
            "--version",
            ". -t x -u nosuch",
            ". -t x -u http://127.0.0.1:1 --print",
            "-f tree.yaml --print -u http://127.0.0.1:1 -t x",
            ". -c 0",
            ". --naming nosuch",
            "--nosuch",
        ),
    ),
    Program(
        "weasel",
        "commands that pass unknown arguments on, a custom command name, children's output",
        (
            "",
            "--help",
            "run --help",
            "document --help",
            "document",
            "document --output README.md",
            "run greet",
            "run all",
            "run all --dry",
            "run greet . --vars.name Ada",
            "run greet . --vars.name=Ada --json",
            "run",
            "run nosuch",
            "assets",
            "dvc",
            "nosuch",
        ),
        {"work/project.yml": WEASEL_PROJECT},
    ),
    Program(
        "strawberry",
        "commands registered in modules, completion of values, code from a file",
        (
            "",
            "--help",
            "export-schema --help",
            "export-schema api",
            "export-schema api --output schema.graphql",
            "export-schema nosuch",
            "locate-definition api Query.hello",
            "upgrade --help",
            "upgrade nosuch .",
            "nosuch",
            completion("_STRAWBERRY_COMPLETE", "strawberry upgrade "),
        ),
        {"work/api.py": STRAWBERRY_SCHEMA},
    ),
    Program(
        "mcp",
        "an app that is part of a library, help without arguments, messages of a logger",
        (
            "",
            "version",
            "run nosuch.py",
            "run server.py:nosuch",
            "versoin",
            completion("_MCP_COMPLETE", "mcp run --"),
        ),
        {"work/server.py": MCP_SERVER},
    ),
    Program(
        "fastapi",
        "a callback with eager --version, styled output, commands that start a server",
        (
            "",
            "--version",
            "run nosuch.py",
            "run --port x",
            "rnu",
            completion("_FASTAPI_COMPLETE", "fastapi r"),
        ),
        {"work/app.py": "x = 1\n"},
    ),
)
