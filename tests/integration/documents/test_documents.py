"""Validate all documents of all test apps with the validators of their formats."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path, PurePosixPath

import pytest
from tests.integration.documents import command_line_checks, setup_validators
from tests.integration.documents.apps import APPS, random_app

from tooli import Tooli
from tooli.core.docstring import sanitize_doc_text
from tooli.describe.agent_documents import (
    FULL_FILE_NAME,
    build_llms_files,
    build_skill_files,
    render_document,
    render_llms_txt,
)
from tooli.describe.front_matter import skill_slug
from tooli.describe.man import build_man_pages
from tooli.describe.sections import AppInfo, collect_app_info
from tooli.testing import assert_examples

every_app = pytest.mark.parametrize("name", APPS)


@cache
def get_app(name: str) -> Tooli:
    return APPS[name]()


@cache
def get_app_info(name: str) -> AppInfo:
    return collect_app_info(get_app(name))


def markdown_documents(app_info: AppInfo) -> dict[str, str]:
    """Return all Markdown documents of an app by path."""
    folder = f"skills/{skill_slug(app_info.name)}"
    return {
        "AGENTS.md": render_document(app_info, "agents-md"),
        "CLAUDE.md": render_document(app_info, "claude-md"),
        **{f"docs/{path}": text for path, text in build_llms_files(app_info).items()},
        **{f"{folder}/{path}": text for path, text in build_skill_files(app_info).items()},
    }


# ------------------------------------------------------------------ Markdown


@every_app
def test_every_command_has_a_page(name: str) -> None:
    app_info = get_app_info(name)
    assert len(build_skill_files(app_info)) == 1 + len(app_info.tools)


@every_app
def test_link_targets_exist(name: str) -> None:
    files = markdown_documents(get_app_info(name))
    missing = [
        f"{path}: {target}"
        for path, text in files.items()
        for target in command_line_checks.relative_links(text)
        if str(PurePosixPath(path).parent / target) not in files
    ]
    assert not missing


@every_app
def test_command_lines_are_valid(name: str) -> None:
    app = get_app(name)
    files = markdown_documents(get_app_info(name))
    problems = {
        f"{path}: {problem}"
        for path, text in files.items()
        if not path.startswith("docs/references")  # equal to those of the skill
        for problem in command_line_checks.find_problems(app, text)
    }
    assert not problems, "\n".join(sorted(problems))
    assert command_line_checks.count_command_lines(app, files[f"docs/{FULL_FILE_NAME}"]) >= len(
        get_app_info(name).tools
    )


@every_app
def test_examples_are_valid(name: str) -> None:
    assert_examples(get_app(name))


@every_app
def test_documents_are_deterministic(name: str) -> None:
    again = collect_app_info(APPS[name]())
    assert markdown_documents(again) == markdown_documents(get_app_info(name))
    assert build_man_pages(again) == build_man_pages(get_app_info(name))


# ------------------------------------------------------------------ the skill


@every_app
@pytest.mark.skipif(sys.version_info < (3, 11), reason="skills-ref needs Python 3.11")
def test_skill_is_valid(name: str, tmp_path: Path) -> None:
    from skills_ref.validator import validate

    app_info = get_app_info(name)
    folder = tmp_path / skill_slug(app_info.name)
    for path, text in build_skill_files(app_info).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    assert validate(folder) == []


# ------------------------------------------------------------------ llms.txt


@every_app
def test_llms_txt_is_parsed(name: str) -> None:
    from llms_txt import parse_llms_file

    app_info = get_app_info(name)
    parsed = parse_llms_file(render_llms_txt(app_info))
    assert parsed.title == app_info.name
    assert parsed.summary
    assert "\n" not in parsed.summary
    assert parsed.info.strip().count("\n") == 0
    *groups, optional = parsed.sections
    assert optional == "Optional"
    assert [link.url for link in parsed.sections[optional]] == [FULL_FILE_NAME]
    links = [link for group in groups for link in parsed.sections[group]]
    tools = {" ".join(tool.cli_path) or tool.app: tool for tool in app_info.tools}
    assert sorted(link.title for link in links) == sorted(tools)
    for link in links:
        summary = " ".join(sanitize_doc_text(tools[link.title].doc.summary).split())
        assert (link.desc or "").startswith(summary)


# ------------------------------------------------------------------ man pages


@pytest.fixture(scope="module")
def _validators() -> None:
    reason = setup_validators.install_validators()
    if reason:
        pytest.skip(reason)


def run_validator(*argv: str | Path) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


@every_app
@pytest.mark.usefixtures("_validators")
def test_man_pages_are_valid(name: str, tmp_path: Path) -> None:
    pages = build_man_pages(get_app_info(name))
    write_pages(pages, tmp_path)
    assert_valid_man_pages([tmp_path / page for page in pages])


@pytest.mark.usefixtures("_validators")
def test_man_pages_with_random_text_are_valid(tmp_path: Path) -> None:
    for seed in range(100):
        folder = tmp_path / str(seed)
        folder.mkdir()
        write_pages(build_man_pages(collect_app_info(random_app(seed))), folder)
    assert_valid_man_pages([*tmp_path.rglob("*.1")])


def test_llms_txt_with_random_text_is_parsed() -> None:
    from llms_txt import parse_llms_file

    for seed in range(100):
        parsed = parse_llms_file(render_llms_txt(collect_app_info(random_app(seed))))
        assert [len(links) for links in parsed.sections.values()] == [2, 1]
        assert "\n" not in parsed.info.strip()


def write_pages(pages: dict[str, str], folder: Path) -> None:
    for page, text in pages.items():
        (folder / page).write_text(text, encoding="ascii")


def assert_valid_man_pages(files: list[Path]) -> None:
    assert run_validator("mandoc", "-T", "lint", "-W", "warning", *files) == ""
    assert run_validator("groff", "-man", "-ww", "-z", "-Tutf8", *files) == ""
    found = run_validator("lexgrog", *files).splitlines()
    for file, line in zip(files, found, strict=True):
        assert line.startswith(f'{file}: "{file.stem} - ')


# ------------------------------------------------------------------ command_line_checks


@pytest.mark.parametrize(
    "text",
    [
        "```bash\nfile-tools find-files\n```",
        "```sh\n$ file-tools find-files '*.py' --rot src\n```",
        "```console\nA=1 file-tools find-files '*.py' --max-depth many\n```",
        "```\nfile-tools find-fils '*.py'\n```",
        "```bash\nls | file-tools serch x | wc -l\n```",
        "```bash\nfile-tools find-files '*.py' && file-tools search\n```",
        "```bash\nfile-tools find-files <pattern>\n```",
        "```bash\nfile-tools find-files '*.py' \\\n  --max-depth 0\n```",
        "```bash\nls | xargs -0 file-tools checksum --algorithm md6\n```",
    ],
)
def test_invalid_command_lines_are_found(text: str) -> None:
    assert command_line_checks.find_problems(get_app("file-tools"), text)


@pytest.mark.parametrize(
    "text",
    [
        "```bash\nfile-tools find-files '*.py' --root nowhere  # a comment\n```",
        "```bash\nfile-tools checksum nowhere.txt | jq .\nls | xargs -0 file-tools checksum\n```",
        "```bash\nfile-tools search 'two\nlines' --json\n```",
        "```json\nfile-tools nonsense\n```",
        "````\n```\nfile-tools search x\n````",
        "```bash\nfile-tools --help-agent\nfile-tools rename --schema\n```",
    ],
)
def test_valid_command_lines_are_accepted(text: str) -> None:
    assert command_line_checks.find_problems(get_app("file-tools"), text) == []


def test_links_in_code_are_ignored() -> None:
    text = "[a](b.md) `[c](d.md)` [e](https://x.test) [f](#g)\n```\n[h](i.md)\n```\n"
    assert command_line_checks.relative_links(text) == ["b.md"]
