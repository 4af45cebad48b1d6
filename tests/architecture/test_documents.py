"""The targets of all links in the documents exist, anchors included."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(r"^```.*?^```", re.M | re.S)
_LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")


def anchors_of(text: str) -> set[str]:
    """Return the anchors that GitHub creates from the headings of a document."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?)\s*$", _FENCE.sub("", text), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        while (numbered := anchor if number == 0 else f"{anchor}-{number}") in found:
            number += 1
        found.add(numbered)
    return found


def links_of(text: str) -> list[str]:
    """Return the links of a document, without links to other sites."""
    plain = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", text))
    return [link for link in _LINK.findall(plain) if not re.match(r"[a-z]+:", link)]


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_and_anchors_have_targets(page: Path) -> None:
    broken: list[str] = []
    for link in links_of(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = page if not path else (page.parent / path).resolve()
        if not target.exists():
            broken.append(link)
        elif anchor and target.suffix == ".md":
            if anchor not in anchors_of(target.read_text(encoding="utf-8")):
                broken.append(link)
    assert not broken


def test_anchors_and_links_are_found() -> None:
    assert anchors_of("# A `b` c\n## A\n## A\n") == {"a-b-c", "a", "a-1"}
    assert links_of("[x](#nowhere) `[y](z)` [web](https://a.b)") == ["#nowhere"]
