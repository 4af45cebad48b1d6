"""The build hook for setuptools: the files that `build_py` writes and reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from setuptools import Distribution
from tests.packaging.test_packaging import APP, write_project

from tooli.packaging import SkillBuildError
from tooli.packaging.setuptools import BuildSkill, _app_setting

SETTING = '[tool.tooli.build]\napp = "{package}.app:app"\n'


def make_command(folder: Path, package: str, settings: str, auto: bool = True) -> BuildSkill:
    """Return the command for a project in the current folder."""
    write_project(folder, settings, APP.format(auto=auto), package)
    distribution = Distribution(
        {
            "name": "shop-tools",
            "packages": [package],
            "package_dir": {"": "src"},
            "script_name": "setup.py",
        }
    )
    command = BuildSkill(distribution)
    command.build_lib = str(folder / "build")
    command.ensure_finalized()
    return command


@pytest.fixture(autouse=True)
def project_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to the folder of the project, in which setuptools runs."""
    monkeypatch.chdir(tmp_path)


def test_skill_is_written_beside_the_package(tmp_path: Path) -> None:
    command = make_command(tmp_path, "built_shop", SETTING.format(package="built_shop"))
    command.run()
    package = tmp_path / "build" / "built_shop"
    assert (package / "app.py").exists()
    assert "name: shop-tools\n" in (package / "_skill/SKILL.md").read_text()
    assert sorted(path.name for path in (package / "_skill/references").iterdir()) == [
        "sell.md",
        "stock.md",
    ]
    assert not (tmp_path / "src/built_shop/_skill").exists()


def test_outputs_contain_the_skill(tmp_path: Path) -> None:
    command = make_command(tmp_path, "listed_shop", SETTING.format(package="listed_shop"))
    outputs = [str(Path(path).relative_to(tmp_path)) for path in command.get_outputs()]
    assert "build/listed_shop/app.py" in outputs
    assert "build/listed_shop/_skill/SKILL.md" in outputs


def test_editable_install_gets_no_skill(tmp_path: Path) -> None:
    command = make_command(tmp_path, "edited_shop", SETTING.format(package="edited_shop"))
    command.editable_mode = True
    command.run()
    assert not (tmp_path / "build/edited_shop/_skill").exists()
    assert not [path for path in command.get_outputs() if "_skill" in path]


def test_no_skill_unless_enabled(tmp_path: Path) -> None:
    command = make_command(tmp_path, "quiet_shop", SETTING.format(package="quiet_shop"), False)
    command.run()
    assert (tmp_path / "build/quiet_shop/app.py").exists()
    assert not (tmp_path / "build/quiet_shop/_skill").exists()


def test_missing_setting_is_rejected(tmp_path: Path) -> None:
    command = make_command(tmp_path, "unset_shop", "")
    with pytest.raises(SkillBuildError, match=r"app = None: must be 'package.module:app'"):
        command.run()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", None), ("[tool.tooli]\n", None), ('[tool.tooli.build]\napp = "a:b"\n', "a:b")],
)
def test_app_setting_is_read_from_pyproject(tmp_path: Path, text: str, expected: object) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert _app_setting(str(tmp_path)) == expected
