"""Names, flags and schemas of exported tools."""

from __future__ import annotations

import ast

from tests.export.test_frameworks import exported

from tooli import Tooli
from tooli.annotations import Destructive
from tooli.core.tool import Tool
from tooli.describe.sections import collect_app_info
from tooli.export.export_spec import ExportSpec, exported_tools, flag_prefix, tool_description


def test_tools_do_not_replace_names_of_the_module() -> None:
    source = exported("names", "openai", "subprocess")["names_openai.py"]
    names = [
        ast.unparse(node.targets[0])
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
    ]
    assert len(names) == len(set(names))
    assert {"call_", "json_", "app_", "list_", "make_tool_", "_2fa", "tools", "tool_"} <= set(names)
    assert '"class"' in source


def test_framework_flags_with_name_conflicts_get_a_prefix() -> None:
    plain = exported("file-tools", "openai", "subprocess")["file_tools_openai.py"]
    assert '"--json", "--input", "-"' in plain
    full = exported("everything", "openai", "subprocess")["every_thing_openai.py"]
    assert '"--tooli-json", "--tooli-input", "-"' in full
    assert 'f"--tooli-{flag' in full


def test_parameters_named_like_confirmation_flags_stay_parameters() -> None:
    (source,) = [
        text
        for name, text in exported("dangerous", "openai", "subprocess").items()
        if not name.startswith("test_")
    ]
    assert 'flags=("dry_run",)' in source  # wipe has a `yes` of its own
    assert 'flags=("yes",)' in source  # burn has a `dry_run`
    assert '{"tool": "$danger `PREFIX` {x}"}' in source


def test_no_flags_without_destructive_commands() -> None:
    source = exported("single", "langchain", "import")["single_langchain.py"]
    assert "flags" not in source
    assert "from sample_apps import app" in source
    assert "from sample_apps import other as app" in next(
        iter(exported("callback", "openai", "import").values())
    )


def spec_of(app: Tooli) -> ExportSpec:
    return ExportSpec(collect_app_info(app), "openai")


def test_module_stem_and_title_come_from_the_app_name() -> None:
    spec = spec_of(Tooli("My--Tool 2", version="1.0"))
    assert (spec.module_stem, spec.title) == ("my_tool_2", "My--Tool 2 1.0")


def test_plan_token_is_not_an_argument() -> None:
    app = Tooli("t")

    @app.command(annotations=Destructive)
    def wipe(path: str) -> None:
        """Wipe."""

    (entry,) = exported_tools(spec_of(app))
    assert entry.flags == ("yes", "dry_run")
    assert set(entry.schema["properties"]) == {"path", "yes", "dry_run"}


def only_tool(app: Tooli) -> Tool:
    (tool,) = app.catalog
    return tool


def test_description_has_the_restrictions() -> None:
    app = Tooli("t")

    @app.command(when_to_use="Rarely.", requires_approval=True, deprecated="use other")
    def wipe() -> None:
        """Wipe."""

    assert tool_description(only_tool(app)).split("\n\n") == [
        "Wipe.",
        "When to use it: Rarely.",
        "A human must approve every call.",
        "Deprecated: use other.",
    ]


def test_flag_prefix_depends_on_name_conflicts() -> None:
    app = Tooli("t")
    app.command("a")(lambda: None)
    assert flag_prefix(app.catalog) == "--"

    @app.command()
    def b(json: bool = False) -> None: ...

    assert flag_prefix(app.catalog) == "--tooli-"
