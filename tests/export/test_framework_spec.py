"""Aliases of parameters whose names a framework reserves."""

from __future__ import annotations

from tests.export.test_frameworks import exported

from tooli import Tooli
from tooli.describe.sections import collect_app_info
from tooli.export.export_spec import ExportedTool, ExportSpec, exported_tools
from tooli.export.framework_spec import alias_values, with_aliases
from tooli.export.frameworks import FRAMEWORKS


def only_tool(app: Tooli) -> ExportedTool:
    (entry,) = exported_tools(ExportSpec(collect_app_info(app), "openai"))
    return entry


def test_reserved_parameters_get_an_underscore() -> None:
    app = Tooli("t")

    @app.command()
    def f(config: str, config_: str = "x", other: int = 0) -> None: ...

    entry = with_aliases(only_tool(app), ("config", "self"))
    assert entry.aliases == {"config__": "config"}  # config_ is another parameter
    assert list(entry.schema["properties"]) == ["config__", "config_", "other"]
    assert entry.schema["required"] == ["config__"]
    assert alias_values([entry])["rename"]


def test_a_tool_without_reserved_names_is_unchanged() -> None:
    app = Tooli("t")

    @app.command()
    def f(other: int = 0) -> None: ...

    entry = only_tool(app)
    assert with_aliases(entry, ("config",)) is entry
    assert alias_values([entry]) == {"aliases_parameter": "", "rename": ""}


def test_imported_names_are_those_of_the_import_lines() -> None:
    assert FRAMEWORKS["crewai"].imported_names == {
        "BaseModel",
        "BaseTool",
        "ConfigDict",
        "ToolFailure",
    }


def test_code_that_renames_is_left_out_without_reserved_names() -> None:
    for target in ("langchain", "llamaindex", "agent-framework", "crewai"):
        for name, text in exported("everything", target, "import").items():
            assert ("alias" in text) is not name.startswith("test_"), name
        assert not any(
            "alias" in text for text in exported("file-tools", target, "import").values()
        )
