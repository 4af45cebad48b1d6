"""The table of framework options is consistent, and every interface derives from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tooli.config.setting_definitions import SETTINGS
from tooli.core._hot_tables import FLAGS
from tooli.core.call import Options
from tooli.core.options import OPTION_GROUPS, OPTIONS, Option, help_rows, options_for, setting_flag
from tooli.core.output_modes import OUTPUT_MODES
from tooli.records.call_options import ResultOptions

ROOT = Path(__file__).resolve().parents[2]
KINDS = {"flag", "count", "choice", "number", "seconds", "token", "text", "list"}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_fields_of_an_option_are_consistent(option: Option) -> None:
    assert option.kind in KINDS
    assert option.group in OPTION_GROUPS
    assert option.help[0].isupper()
    assert option.help[-1] not in ".:;"
    assert set(option.interfaces) <= {"cli", "http", "mcp", "python"}
    assert bool(option.flags) == ("cli" in option.interfaces)
    assert (option.kind == "token") == (option.max_length > 0)
    assert bool(option.value_name) == (option.kind not in ("flag", "count") and bool(option.flags))
    assert not option.page or (ROOT / "docs" / option.page).is_file()
    assert option.setting is None or option.setting in SETTINGS
    assert bool(option.in_tool_schema) == bool(option.tool_schema_help)
    assert not option.in_openapi or "http" in option.interfaces
    assert not option.in_tool_schema or "mcp" in option.interfaces


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_option_fills_a_field(option: Option) -> None:
    if option.target == "result_options":
        assert option.target_field in ResultOptions.__match_args__
    elif option.target == "options":
        assert option.target_field in Options.__match_args__
    else:
        assert option.interfaces == ("cli",) or option.target == "detail"


def test_names_and_flags_are_unique() -> None:
    names = [name for option in OPTIONS for name in option.names]
    flags = [flag for option in OPTIONS for flag in (*option.flags, *dict(option.shortcuts))]
    assert len(names) == len(set(names))
    assert len(flags) == len(set(flags))
    assert set(flags) == FLAGS.keys()


def test_every_flag_is_in_the_help_panel() -> None:
    panel = ", ".join([flags for _, flags in help_rows()])
    shown = panel.replace("/", " ").replace(",", " ").split()
    assert {"--output", *shown} >= FLAGS.keys()
    modes = {flag.lstrip("-") for flag in shown} | {*"|".join(shown).split("|")}
    assert modes >= {*OUTPUT_MODES} - {"auto"}


def test_aliases_are_not_names_on_the_command_line() -> None:
    assert options_for("http")["select"].name == "fields"
    assert "select" not in options_for("cli")


def test_setting_has_the_flag_of_its_option() -> None:
    assert setting_flag("color") == "--no-color"
    assert setting_flag("security_policy") is None
    assert SETTINGS["timeout"].flag == "--timeout"


PROGRAM = '''
import sys, types

from tooli.core import options
from tooli.core.options import ALL_INTERFACES, Option

# One record for each of the two options: this is all that is added.
options.OPTIONS += (
    Option(
        "night_mode", "flag", "run", "Run at night",
        interfaces=ALL_INTERFACES, target="options", in_openapi="all",
        in_tool_schema="all", tool_schema_help="At night.",
    ),
    Option(
        "region", "token", "run", "Run in this region", metavar="REGION",
        interfaces=ALL_INTERFACES, target="options", max_length=9, in_openapi="all",
    ),
    Option(
        "zone", "token", "run", "Run in this zone", interfaces=("http",), target="options",
        max_length=9, header="Tooli-Zone", in_openapi="all",
    ),
)

# `make docs` generates the tables of the hot path.
from docs.hot_tables import hot_tables_source

assert "tooli.core._hot_tables" not in sys.modules
tables = sys.modules["tooli.core._hot_tables"] = types.ModuleType("tooli.core._hot_tables")
exec(hot_tables_source(), tables.__dict__)

from docs.tables import framework_options
from tooli import Context, Tooli
from tooli.describe.sections import collect_app_info
from tooli.describe.man import build_man_pages
from tooli.describe.mcp_tools import describe_mcp_tool
from tooli.describe.openapi_document import operation_parameters, shared_parameters
from tooli.testing import Case, assert_parity, invoke

app = Tooli("demo")

@app.command()
def show(ctx: Context) -> dict[str, str]:
    """Show the options."""
    return {name: str(value) for name, value in (ctx.options.extra or {}).items()}

@app.command()
def other() -> str:
    """Do something else."""
    return ""

given = {"night_mode": True, "region": "eu"}
assert app.call("show", **given).result == {"night_mode": "True", "region": "eu"}
assert app.options(region="eu").call("show").result == {"region": "eu"}
assert app.call("show").result == {}

# The same answer from the command line, Python, HTTP and both versions of MCP.
assert_parity(app, Case("show", {}, options=given))
spelling = {"cli": "its message has the flag"}
assert_parity(app, Case("show", {}, options={"region": "much too long"}, skip=spelling))

done = invoke(app, "show", "--night-mode", "--region=eu", "--json")
assert done.result == {"night_mode": "True", "region": "eu"}, done
assert invoke(app, "show", "--region", "much too long", "--json").error["code"] == "E1007"
for argv in (["--help"], ["show", "--help"]):
    assert "--night-mode, --region" in invoke(app, *argv).stdout
assert "--night-mode" in invoke(app, "--night-mod", "show", "--json").error["message"]

page = build_man_pages(collect_app_info(app))["demo.1"]
assert r"\\-\\-night\\-mode" in page and r"\\-\\-region\\fR \\fIREGION" in page, page
assert shared_parameters()["night_mode"]["schema"] == {"type": "boolean"}
assert shared_parameters()["region"]["description"] == "Run in this region."
assert shared_parameters()["Tooli-Zone"]["in"] == "header"

from tooli.http.request_options import read_options

assert read_options(b"zone=b", {})[0].extra == {"zone": "b"}
assert read_options(b"", {b"tooli-zone": b"a"})[0].extra == {"zone": "a"}
(problem,) = read_options(b"zone=b", {b"tooli-zone": b"a"})[1]
assert "Tooli-Zone and ?zone= differ" in problem.message
tool = app.find("show")
assert {"$ref": "#/components/parameters/region"} in operation_parameters(tool)
assert "night_mode" in describe_mcp_tool("show", tool)["inputSchema"]["properties"]
assert "| `--region REGION` | Run in this region |  | HTTP, MCP, Python |" in framework_options()
'''


def test_one_record_adds_an_option_to_every_interface() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
