"""The front matter of SKILL.md."""

from __future__ import annotations

import pytest
from tests.describe.apps import make_documented_app, make_large_app

from tooli import Tooli
from tooli.describe.front_matter import (
    command_note,
    render_front_matter,
    skill_slug,
    with_choices_of,
    with_command_of_block,
)
from tooli.describe.sections import AppInfo, collect_app_info


def description_of(app: Tooli) -> str:
    text = render_front_matter(collect_app_info(app))
    lines = text.partition("description: >-\n")[2].partition("\ncompatibility:")[0].split("\n")
    return " ".join(line.strip() for line in lines)


def test_skill_slug_is_lowercase_and_short() -> None:
    assert skill_slug("My  Tool--2") == "my-tool-2"
    assert skill_slug("ß" * 3) == "app"
    assert skill_slug("a" * 63 + "-b") == "a" * 63


def test_description_of_a_small_app_says_what_its_commands_do() -> None:
    assert description_of(make_documented_app()) == (
        'Finds "files", and more. Use it to find files; digest files; wipe.'
    )


def make_grouped_app(groups: int, verbs: int) -> Tooli:
    app = Tooli("big", description="A big one.")
    for i in range(groups):
        group = Tooli(f"group{i}")
        for j in range(verbs):
            group.command(f"verb{j}", help=f"Do number {j} of many things in group {i}.")(
                lambda: None
            )
        app.add_typer(group, name=f"group{i}")
    return app


@pytest.mark.parametrize(("groups", "verbs"), [(3, 5), (20, 20), (60, 1)])
def test_description_names_every_group(groups: int, verbs: int) -> None:
    text = description_of(make_grouped_app(groups, verbs))
    assert len(text) <= 1024
    words = text.replace(",", " ").replace(".", " ").split()
    assert {f"group{i}" for i in range(groups)} <= set(words)


def test_description_names_the_commands_if_they_fit() -> None:
    assert "group2 (verb0, verb1, verb2, verb3, verb4)" in description_of(make_grouped_app(3, 5))


def test_description_of_an_app_without_groups_names_commands() -> None:
    text = description_of(make_large_app(300))
    assert len(text) <= 1024
    assert text.startswith("A big one. Commands: ") and text.endswith(", and more.")


def test_choices_are_read_from_an_existing_skill() -> None:
    app_info = AppInfo("t", (), skill_target="claude-code", command=("uvx", "my tool"))
    text = f"{render_front_matter(app_info)}\n\n# t\n"
    assert "Start the program with: uvx 'my tool'" in text
    assert with_choices_of(AppInfo("t", ()), text) == app_info
    plain = AppInfo("t", ())
    assert with_choices_of(plain, f"{render_front_matter(plain)}\n") == plain
    assert "Requires the program t on the PATH." in render_front_matter(plain)


@pytest.mark.parametrize("line", ["nonsense", "[1]", '"a b'])
def test_a_damaged_command_is_ignored(line: str) -> None:
    plain = AppInfo("t", ())
    assert with_choices_of(plain, f"---\n  command: {line}\n---\n") == plain


def test_the_command_is_read_from_a_block() -> None:
    app_info = AppInfo("t", (), command=("uvx", "t"))
    block = f"## t\n\n{command_note(app_info)}\n"
    assert with_command_of_block(AppInfo("t", ()), block) == app_info
    assert command_note(AppInfo("t", ())) == ""
    assert with_command_of_block(AppInfo("t", ()), "## t\n") == AppInfo("t", ())


@pytest.mark.parametrize(
    ("help", "expected"),
    [
        ("Close one of the {}.", "Use it to close one of the tickets; close one of the users."),
        ("Close one.", "Commands: tickets (close), users (close)."),
        ("Close {}, or not.", "Use it to close tickets, or not; close users, or not."),
        ("Close this: {:.2}.", "Commands: tickets (close), users (close)."),
    ],
)
def test_description_of_a_small_app_names_its_groups(help: str, expected: str) -> None:
    app = Tooli("desk", description="A desk.")
    for name in ("tickets", "users"):
        group = Tooli(name)
        group.command("close", help=help.format(name))(lambda: None)
        app.add_typer(group, name=name)
    assert description_of(app) == f"A desk. {expected}"
