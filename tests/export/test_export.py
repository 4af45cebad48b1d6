"""The options of an export, and the digest line of its files."""

from __future__ import annotations

import pytest
from examples.file_tools.app import app as file_tools

from tooli import Tooli
from tooli.describe.sections import collect_app_info
from tooli.errors import InputError
from tooli.export import add_digest_line, export, is_unmodified
from tooli.export.export_spec import ExportSpec


def test_custom_command_is_split_and_quoted() -> None:
    app_info = collect_app_info(file_tools)
    (source,) = export(ExportSpec(app_info, "openai", command="uv run 'my tool'")).values()
    assert 'COMMAND = ["uv", "run", "my tool"]' in source
    assert """--command 'uv run '"'"'my tool'"'"''""" in source


@pytest.mark.parametrize("location", [None, "nothing", "a.b:", ":app", "a-b:app", "a.b:c.d"])
def test_invalid_app_location_is_rejected(location: str | None) -> None:
    app_info = collect_app_info(file_tools).replace(import_path=None)
    with pytest.raises(InputError) as caught:
        export(ExportSpec(app_info, "openai", "import", app=location))
    assert caught.value.field == "app"


def test_app_without_commands_is_rejected() -> None:
    with pytest.raises(InputError, match="has no commands"):
        export(ExportSpec(collect_app_info(Tooli("empty")), "openai"))


def test_digest_line_detects_edits() -> None:
    text = add_digest_line("a = 1\n")
    assert is_unmodified(text)
    assert is_unmodified(text.replace("\n", "\r\n"))
    assert not is_unmodified(text + "b = 2\n")
    assert not is_unmodified("a = 1\n")


@pytest.mark.parametrize("target", ["openai", "python"])
def test_every_file_has_a_digest_line(target: str) -> None:
    files = export(ExportSpec(collect_app_info(file_tools), target, with_tests=True))
    assert len(files) == 2
    assert all(map(is_unmodified, files.values()))
