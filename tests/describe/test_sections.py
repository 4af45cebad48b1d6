"""Facts about tools and the sections of documents: calls, pipes, groups, levels of detail."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
from tests.describe.apps import File, make_callback_app, make_documented_app, make_large_app

from tooli import Option, Tooli
from tooli.annotations import Destructive, Idempotent, ReadOnly
from tooli.describe import sections
from tooli.describe.agent_documents import render_skill_md
from tooli.describe.sections import collect_app_info
from tooli.text.token_estimate import estimate_tokens


def test_destructive_examples_are_dry_runs() -> None:
    text = render_skill_md(collect_app_info(make_documented_app()))
    assert "'My tool' wipe --dry-run --json" in text
    assert "wipe --yes" not in text


def test_handoff_to_a_list_argument_is_shown_as_a_pipe() -> None:
    app = Tooli("t")

    @app.command(annotations=ReadOnly, handoffs=["digest"])
    def find() -> list[File]:
        return []

    @app.command(annotations=ReadOnly)
    def digest(paths: list[str]) -> list[str]:
        return paths

    @app.command(annotations=ReadOnly)
    def other(paths: Annotated[list[str], Option()]) -> list[str]:
        return paths

    text = render_skill_md(collect_app_info(app))
    line = "t find --json | jq -r '.result[].path' | tr '\\n' '\\0' | xargs -0 t digest --json"
    assert line in text
    assert "xargs -0 t other" not in text, "an option cannot take piped arguments"


def test_large_apps_stay_within_the_budget() -> None:
    for count in (30, 60, 120, 300, 1_000):
        text = render_skill_md(collect_app_info(make_large_app(count)), linked=True)
        assert estimate_tokens(text) <= 5_000, count
        assert len(text.splitlines()) <= 500
    assert "- `group-3`: 50 commands" in render_skill_md(
        collect_app_info(make_large_app(1_000, groups=True))
    )
    assert "big search-tools TEXT --json" in text


def test_task_group_is_a_heading() -> None:
    app = Tooli("t")

    @app.command(task_group="Reading")
    def look() -> None:
        """Look."""

    @app.command(task_group="Writing")
    def put() -> None:
        """Put."""

    text = render_skill_md(collect_app_info(app))
    assert "### Reading\n\n#### look" in text
    assert "### Writing\n\n#### put" in text


def test_skill_of_ten_commands_is_below_2000_tokens() -> None:
    assert estimate_tokens(render_skill_md(collect_app_info(make_large_app(10)))) < 2_000


def test_most_detailed_text_within_the_budget_is_chosen() -> None:
    texts = ["word " * 500, "word " * 50, "word"]
    budgets = [(0, 100), (1, 100), (2, 100)]
    info = collect_app_info(make_large_app(1))
    assert sections.render_within_budget(info, lambda _, level: texts[level], *budgets) == texts[1]
    assert sections.render_within_budget(info, lambda _, level: texts[0], *budgets) == texts[0]


def test_outputs_of_examples_do_not_count_for_the_budget() -> None:
    info = collect_app_info(make_large_app(1)).replace(example_outputs={("a", 0): "word " * 50})

    def render(info: Any, level: int) -> str:
        return f"level {level} {info.example_outputs.get(('a', 0), '')}"

    assert sections.render_within_budget(info, render, (0, 20), (1, 20)).startswith("level 0 word")


def test_effects_and_requirements_are_phrases() -> None:
    app = Tooli("t", permissions={"fs": "read-write"})

    @app.command(
        annotations=Destructive | Idempotent,
        danger_level="high",
        auth=["t:write"],
        deprecated="use other",
        capabilities=["fs:write"],
        timeout=5,
        max_tokens=100,
    )
    def wipe() -> None:
        """Wipe."""

    tool = app.find("wipe")
    assert tool is not None
    assert sections.effect_phrases(tool) == [
        "destructive: `--dry-run` first, `--yes` to confirm",
        "safe to repeat",
        "danger: high",
        "requires the scopes t:write",
        "capabilities: `fs:write`",
        "deprecated: use other",
    ]
    assert sections.requirement_phrases(tool) == [
        "permissions of the app: `fs:read`, `fs:write`, `fs:delete`",
        "takes up to 5 s",
        "returns at most 100 tokens",
    ]


def test_file_names_are_unique() -> None:
    app = Tooli("t")
    for name in ("a", "A", "a/b", "a.b"):
        app.command(name)(lambda: None)
    stems = [sections.file_stem(tool) for tool in app.catalog]
    assert stems[0] == "a"
    assert len({stem.lower() for stem in stems}) == 4
    assert all("/" not in stem for stem in stems)


def test_remedy_depends_on_the_category() -> None:
    assert sections.remedy("E2101") == "ask the human; do not try a workaround"
    assert sections.remedy("X1") == "read `error.suggestion`"


MODULE = "from tooli import Tooli\n_private = cli = Tooli('shop')\ncli.command('a')(lambda: None)\n"


def test_app_info_has_visible_tools_and_texts() -> None:
    info = collect_app_info(make_documented_app())
    assert (info.name, info.version) == ("My tool", "1.2")
    assert info.description == 'Finds "files",\nand more.'
    assert [tool.key for tool in info.tools] == ["find", "digest", "wipe"]
    assert info.sections == {"Gotchas": "Mind the `gap`."}


def test_import_path_names_module_and_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    import shop_module  # type: ignore[import-not-found]

    assert collect_app_info(shop_module.cli).import_path == "shop_module:cli"
    del sys.modules["shop_module"]


def test_app_that_cannot_be_imported_has_no_import_path() -> None:
    assert collect_app_info(Tooli("local")).import_path is None


def test_import_path_of_a_script_is_its_file_name(tmp_path: Path) -> None:
    script_globals = {"__name__": "__main__", "__file__": str(tmp_path / "tool.py")}
    exec(compile(MODULE, "tool.py", "exec"), script_globals)
    assert collect_app_info(script_globals["cli"]).import_path == "tool:cli"  # type: ignore[arg-type]


def test_skill_has_the_options_of_callbacks() -> None:
    text = render_skill_md(collect_app_info(make_callback_app()))
    assert "- Options before the command: `--token=<str> [--verbose]`\n" in text
    assert "- `--token`: Opens the safe.\n" in text
    assert "- Options after box: `[--level=3:int]`\n" in text
