"""Every document of every example app, before the validators that its readers use."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path, PurePosixPath

import pytest
from tests.integration.documents import reading, setup_validators
from tests.integration.documents.apps import APPS, random_app

from tooli import Tooli
from tooli.core.docstring import sanitize_doc_text
from tooli.describe.agent_documents import (
    FULL_FILE_NAME,
    build_llms_files,
    build_skill_files,
    render_document,
    render_llms_txt,
    skill_slug,
)
from tooli.describe.man import build_man_pages
from tooli.describe.sections import AppInfo, collect_app_info
from tooli.testing import assert_examples

every_app = pytest.mark.parametrize("name", APPS)


@cache
def app_of(name: str) -> Tooli:
    return APPS[name]()


@cache
def info_of(name: str) -> AppInfo:
    return collect_app_info(app_of(name))


def documents(app_info: AppInfo) -> dict[str, str]:
    """All Markdown about an app, by the places where it stands."""
    folder = f"skills/{skill_slug(app_info.name)}"
    return {
        "AGENTS.md": render_document(app_info, "agents-md"),
        "CLAUDE.md": render_document(app_info, "claude-md"),
        **{f"docs/{path}": text for path, text in build_llms_files(app_info).items()},
        **{f"{folder}/{path}": text for path, text in build_skill_files(app_info).items()},
    }


# ------------------------------------------------------------------ Markdown


@every_app
def test_every_command_has_a_page_of_its_own(name: str) -> None:
    app_info = info_of(name)
    assert len(build_skill_files(app_info)) == 1 + len(app_info.tools)


@every_app
def test_links_lead_somewhere(name: str) -> None:
    written = documents(info_of(name))
    lost = [
        f"{path}: {target}"
        for path, text in written.items()
        for target in reading.relative_links(text)
        if str(PurePosixPath(path).parent / target) not in written
    ]
    assert not lost


@every_app
def test_command_lines_are_ones_that_the_app_takes(name: str) -> None:
    app = app_of(name)
    written = documents(info_of(name))
    wrong = {
        f"{path}: {problem}"
        for path, text in written.items()
        if not path.startswith("docs/references")  # the same as the skill's
        for problem in reading.problems(app, text)
    }
    assert not wrong, "\n".join(sorted(wrong))
    assert reading.count_lines(app, written[f"docs/{FULL_FILE_NAME}"]) >= len(info_of(name).tools)


@every_app
def test_examples_are_ones_that_the_app_takes(name: str) -> None:
    assert_examples(app_of(name))


@every_app
def test_documents_are_the_same_every_time(name: str) -> None:
    again = collect_app_info(APPS[name]())
    assert documents(again) == documents(info_of(name))
    assert build_man_pages(again) == build_man_pages(info_of(name))


# ------------------------------------------------------------------ the skill


@every_app
@pytest.mark.skipif(sys.version_info < (3, 11), reason="skills-ref wants Python 3.11")
def test_the_skill_is_valid(name: str, tmp_path: Path) -> None:
    from skills_ref.validator import validate

    app_info = info_of(name)
    folder = tmp_path / skill_slug(app_info.name)
    for path, text in build_skill_files(app_info).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    assert validate(folder) == []


# ------------------------------------------------------------------ llms.txt


@every_app
def test_llms_txt_is_read_back_as_it_was_meant(name: str) -> None:
    from llms_txt import parse_llms_file

    app_info = info_of(name)
    read = parse_llms_file(render_llms_txt(app_info))
    assert read.title == app_info.name
    assert read.summary
    assert "\n" not in read.summary
    assert read.info.strip().count("\n") == 0
    *groups, optional = read.sections
    assert optional == "Optional"
    assert [link.url for link in read.sections[optional]] == [FULL_FILE_NAME]
    links = [link for group in groups for link in read.sections[group]]
    tools = {" ".join(tool.cli_path) or tool.app: tool for tool in app_info.tools}
    assert sorted(link.title for link in links) == sorted(tools)
    for link in links:
        summary = " ".join(sanitize_doc_text(tools[link.title].doc.summary).split())
        assert (link.desc or "").startswith(summary)


# ------------------------------------------------------------------ man pages


@pytest.fixture(scope="module")
def _validators() -> None:
    reason = setup_validators.lacking()
    if reason:
        pytest.skip(reason)


def complaints(*words: str | Path) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


@every_app
@pytest.mark.usefixtures("_validators")
def test_man_pages_are_clean(name: str, tmp_path: Path) -> None:
    pages = build_man_pages(info_of(name))
    write(pages, tmp_path)
    assert_clean([tmp_path / page for page in pages])


@pytest.mark.usefixtures("_validators")
def test_man_pages_of_any_words_are_clean(tmp_path: Path) -> None:
    for seed in range(100):
        folder = tmp_path / str(seed)
        folder.mkdir()
        write(build_man_pages(collect_app_info(random_app(seed))), folder)
    assert_clean([*tmp_path.rglob("*.1")])


def test_llms_txt_of_any_words_is_read_back() -> None:
    from llms_txt import parse_llms_file

    for seed in range(100):
        read = parse_llms_file(render_llms_txt(collect_app_info(random_app(seed))))
        assert [len(links) for links in read.sections.values()] == [2, 1]
        assert "\n" not in read.info.strip()


def write(pages: dict[str, str], folder: Path) -> None:
    for page, text in pages.items():
        (folder / page).write_text(text, encoding="ascii")


def assert_clean(files: list[Path]) -> None:
    assert complaints("mandoc", "-T", "lint", "-W", "warning", *files) == ""
    assert complaints("groff", "-man", "-ww", "-z", "-Tutf8", *files) == ""
    found = complaints("lexgrog", *files).splitlines()
    for file, line in zip(files, found, strict=True):
        assert line.startswith(f'{file}: "{file.stem} - ')


# ------------------------------------------------------------------ the readers themselves


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
def test_lines_that_do_not_work_are_found(text: str) -> None:
    assert reading.problems(app_of("file-tools"), text)


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
def test_lines_that_work_are_let_through(text: str) -> None:
    assert reading.problems(app_of("file-tools"), text) == []


def test_links_in_code_are_none() -> None:
    text = "[a](b.md) `[c](d.md)` [e](https://x.test) [f](#g)\n```\n[h](i.md)\n```\n"
    assert reading.relative_links(text) == ["b.md"]
