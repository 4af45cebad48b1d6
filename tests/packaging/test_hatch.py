"""The build hook for hatchling: files that it adds to a wheel, and its temporary folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.packaging.test_packaging import APP, write_project

from tooli.packaging import SkillBuildError
from tooli.packaging.hatch import SkillHook, hatch_register_build_hook

SKILL = "hatch_shop/_skill/SKILL.md"


@pytest.fixture(autouse=True)
def unload_app() -> Iterator[None]:
    """Unload the package of a test. The next test has another package with the same name."""
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "hatch_shop"]:
        del sys.modules[name]


class Display:
    """Replaces the application of hatch, which displays messages."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def display_debug(self, line: str) -> None:
        self.lines.append(line)


def make_hook(
    folder: Path, app: object = "hatch_shop.app:app", target: str = "wheel"
) -> tuple[SkillHook, Display]:
    """Return the hook for a project with an app."""
    write_project(folder, "", APP.format(auto=True), "hatch_shop")
    display: Any = Display()
    config = {} if app is None else {"app": app}
    missing: Any = None
    return SkillHook(str(folder), config, missing, missing, "out", target, display), display


def build_data() -> dict[str, Any]:
    return {"force_include": {}}


def test_hook_is_registered_by_its_name() -> None:
    assert hatch_register_build_hook() is SkillHook
    assert SkillHook.PLUGIN_NAME == "tooli"


def test_files_are_included_and_deleted_after_the_build(tmp_path: Path) -> None:
    hook, display = make_hook(tmp_path)
    data = build_data()
    hook.initialize("standard", data)
    sources = {path: Path(source) for source, path in data["force_include"].items()}
    references = {f"hatch_shop/_skill/references/{name}.md" for name in ("sell", "stock")}
    assert set(sources) == {SKILL, *references}
    assert "name: shop-tools\n" in sources[SKILL].read_text()
    assert tmp_path not in sources[SKILL].parents
    hook.finalize("standard", data, "out/shop.whl")
    assert not sources[SKILL].exists()
    assert display.lines == ["the skill is in out/shop.whl"]


@pytest.mark.parametrize(("target", "version"), [("sdist", "standard"), ("wheel", "editable")])
def test_sdist_and_editable_wheel_get_no_skill(tmp_path: Path, target: str, version: str) -> None:
    hook, _ = make_hook(tmp_path, app="not a reference", target=target)
    data = build_data()
    hook.initialize(version, data)
    assert data == build_data()
    hook.finalize(version, data, "out")


@pytest.mark.parametrize("app", [None, 3, "hatch_shop.app"])
def test_invalid_setting_is_rejected(tmp_path: Path, app: object) -> None:
    hook, _ = make_hook(tmp_path, app=app)
    with pytest.raises(SkillBuildError, match=r"must be 'package\.module:app'"):
        hook.initialize("standard", build_data())


def test_failed_build_leaves_no_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    hook, _ = make_hook(tmp_path, app="hatch_shop.missing:app")
    with pytest.raises(SkillBuildError, match="cannot be loaded"):
        hook.initialize("standard", build_data())
    assert list(temporary.iterdir()) == []
