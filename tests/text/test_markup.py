"""Help texts without rich markup."""

from __future__ import annotations

import pytest

from tooli.text.markup import remove_markup


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("[bold green]Add[/bold green] a task", "Add a task"),
        ("[bold]Add[/] a [i]task[/i]", "Add a task"),
        ("[red]a [b]b[/b] c[/red]", "a b c"),
        ("[link=https://example.com/a]docs[/link]", "docs"),
        ("[#bbf2b3]done ✓[/]", "done ✓"),
        ("over\n[b]two\nlines[/b]", "over\ntwo\nlines"),
        ("items[i] and [b]x[/b]", "items[i] and x"),
        ("list[int], [default: 3], [required]", "list[int], [default: 3], [required]"),
        (r"\[b]x[/b]", r"\[b]x[/b]"),
        ("[b]open", "[b]open"),
        ("close[/b]", "close[/b]"),
        ("a [unclosed", "a [unclosed"),
        ("[[b]x[/b]]", "[x]"),
        ("Show tasks :sparkles:", "Show tasks ✨"),
        (":heart::rocket:", "❤🚀"),
        ("a:sparkles:b:c", "a✨b:c"),
        ("at 12:30:45, host:port:user", "at 12:30:45, host:port:user"),
        ("no :nosuchemoji: here", "no :nosuchemoji: here"),
        (":param x: the x", ":param x: the x"),
    ],
)
def test_markup_is_removed(text: str, expected: str) -> None:
    """Pairs of tags disappear, codes become emoji, all other text stays."""
    assert remove_markup(text) == expected
