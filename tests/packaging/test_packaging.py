"""Wheels that hatchling and setuptools build contain the skill of the app."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.integration.app_process import environment

from tooli.describe.agent_documents import build_skill_files
from tooli.describe.sections import collect_app_info

APP = """\
from tooli import Tooli

app = Tooli("shop-tools", description="Sell things.", version="2.0", skill_auto_generate={auto})


@app.command()
def sell(thing: str) -> str:
    \"\"\"Sell a thing.\"\"\"
    return thing


@app.command()
def stock() -> int:
    \"\"\"Count things.\"\"\"
    return 3


def main() -> None:
    app()


if __name__ == "__main__":
    main()
"""
PROJECT = '[project]\nname = "shop-tools"\nversion = "2.0"\n'
HATCH = f"""\
[build-system]
requires = ["hatchling", "tooli"]
build-backend = "hatchling.build"

{PROJECT}
[tool.hatch.build.targets.wheel]
packages = ["src/shop_tools"]

[tool.hatch.build.targets.wheel.hooks.tooli]
app = "shop_tools.app:app"
"""
SETUPTOOLS = f"""\
[build-system]
requires = ["setuptools", "tooli"]
build-backend = "setuptools.build_meta"

{PROJECT}
[tool.setuptools.packages.find]
where = ["src"]

[tool.setuptools.cmdclass]
build_py = "tooli.packaging.setuptools.BuildSkill"

[tool.tooli.build]
app = "shop_tools.app:app"
"""
BACKENDS = {"hatchling": HATCH, "setuptools": SETUPTOOLS}
BUILD = "import sys; from {backend} import build_wheel; print(build_wheel(sys.argv[1]))"


def write_project(folder: Path, settings: str, app: str, name: str = "shop_tools") -> None:
    """Write the source of a package."""
    package = folder / "src" / name
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "app.py").write_text(app)
    (folder / "pyproject.toml").write_text(settings)


def build_with_backend(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build a wheel in the folder `out`, as pip does."""
    uses_hatchling = "hatchling" in (folder / "pyproject.toml").read_text()
    backend = "hatchling.build" if uses_hatchling else "setuptools.build_meta"
    (folder / "out").mkdir()
    return subprocess.run(
        [sys.executable, "-c", BUILD.format(backend=backend), "out"],
        cwd=folder,
        env=environment(PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True,
        text=True,
        timeout=120,
    )


def unpack(folder: Path) -> Path:
    """Unpack the wheel and return the folder with its content."""
    (wheel,) = (folder / "out").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


@pytest.mark.parametrize("backend", BACKENDS)
def test_wheel_contains_the_skill(tmp_path: Path, backend: str) -> None:
    write_project(tmp_path, BACKENDS[backend], APP.format(auto=True))
    done = build_with_backend(tmp_path)
    assert done.returncode == 0, done.stderr
    site = unpack(tmp_path)
    skill = site / "shop_tools" / "_skill"
    assert "name: shop-tools\n" in (skill / "SKILL.md").read_text()
    assert {path.name for path in (skill / "references").iterdir()} == {"sell.md", "stock.md"}
    record = next(site.glob("*.dist-info/RECORD")).read_text()
    assert "shop_tools/_skill/SKILL.md" in record
    assert not (tmp_path / "src" / "shop_tools" / "_skill").exists(), "the source is not changed"


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_skill_unless_enabled(tmp_path: Path, backend: str) -> None:
    write_project(tmp_path, BACKENDS[backend], APP.format(auto=False))
    assert build_with_backend(tmp_path).returncode == 0
    assert not (unpack(tmp_path) / "shop_tools" / "_skill").exists()


@pytest.mark.parametrize("backend", BACKENDS)
def test_app_that_cannot_be_imported_fails_the_build(tmp_path: Path, backend: str) -> None:
    write_project(tmp_path, BACKENDS[backend], "import nowhere_to_be_found\n")
    done = build_with_backend(tmp_path)
    assert done.returncode != 0
    assert "No module named 'nowhere_to_be_found'" in done.stderr
    assert "`requires` of [build-system]" in done.stderr


def test_invalid_app_reference_fails_the_build(tmp_path: Path) -> None:
    write_project(
        tmp_path, HATCH.replace("shop_tools.app:app", "shop_tools"), APP.format(auto=True)
    )
    assert "must be 'package.module:app'" in build_with_backend(tmp_path).stderr


def test_packaged_skill_is_found(tmp_path: Path) -> None:
    write_project(tmp_path, HATCH, APP.format(auto=True))
    assert build_with_backend(tmp_path).returncode == 0
    site = unpack(tmp_path)
    with (site / "shop_tools" / "_skill" / "SKILL.md").open("a") as page:
        page.write("\nAdded to the packaged file.\n")
    code = (
        "from shop_tools.app import app\n"
        "from tooli.install.managed_files import read_packaged_skill\n"
        "found = read_packaged_skill(app)\n"
        "print(list(found), found['SKILL.md'].endswith('packaged file.\\n'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(PYTHONPATH=str(site)),
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == (
        "['SKILL.md', 'references/sell.md', 'references/stock.md'] True"
    ), done.stderr


def test_skill_is_generated_without_a_packaged_skill() -> None:
    from tests.describe.apps import make_documented_app

    from tooli.install.managed_files import read_packaged_skill

    assert read_packaged_skill(make_documented_app()) is None
    assert "SKILL.md" in build_skill_files(collect_app_info(make_documented_app()))
