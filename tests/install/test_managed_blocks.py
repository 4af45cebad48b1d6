"""Managed blocks in files that belong to a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from tooli.errors import ConflictError
from tooli.install.file_changes import apply_steps, resolve_conflicts
from tooli.install.managed_files import find_block, plan_block, plan_block_removal

BODY = "## shop\n\nSell things.\n"


def add(path: Path, app: str = "shop", body: str = BODY, *, force: bool = False) -> str:
    (step,) = resolve_conflicts([plan_block(str(path), "agents", app, body)], force=force)
    apply_steps([step])
    return step.action


def remove(path: Path, app: str = "shop", *, force: bool = False) -> str:
    (step,) = resolve_conflicts([plan_block_removal(str(path), "agents", app, BODY)], force=force)
    apply_steps([step])
    return step.action


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "AGENTS.md"


def test_marker_inside_the_text(page: Path) -> None:
    body = "## shop\n\n<!-- tooli:shop end --> and <!-- tooli:shop begin sha256=0 -->\n"
    page.write_text("# Mine\n")
    assert add(page, body=body) == "updated"
    assert add(page, body=body) == "current"
    assert remove(page) == "removed"
    assert page.read_text() == "# Mine\n"


class TestAddAndRemove:
    @pytest.mark.parametrize(
        "text",
        [
            b"",
            b"\n",
            b"# Mine",
            b"# Mine\n",
            b"# Mine\r\n\r\nText\r\n",
            b"\xef\xbb\xbf# Mine\n\n",
            b"\xff\xfe is not UTF-8\n",
            b"<!-- tooli:shopping begin sha256=0 -->\nx\n<!-- tooli:shopping end -->\n",
        ],
    )
    def test_bytes_are_restored(self, page: Path, text: bytes) -> None:
        page.write_bytes(text)
        assert add(page) == "updated"
        written = page.read_bytes()
        assert written.startswith(text) and b"Sell things." in written
        assert b"\r\n" not in text or written.count(b"\n") == written.count(b"\r\n")
        assert add(page) == "current"
        assert page.read_bytes() == written
        assert remove(page) == "removed"
        assert page.read_bytes() == text

    def test_created_file_is_removed(self, page: Path) -> None:
        assert add(page) == "created"
        assert remove(page) == "removed"
        assert not page.exists()
        assert remove(page) == "absent"

    def test_added_text_stays(self, page: Path) -> None:
        add(page)
        page.write_text("# Top\n" + page.read_text() + "# End\n")
        remove(page)
        assert page.read_text() == "# Top\n# End\n"

    @pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
    def test_two_apps(self, page: Path, order: tuple[str, str]) -> None:
        add(page, "one")
        add(page, "two")
        assert find_block(page.read_text(), "one") and find_block(page.read_text(), "two")
        remove(page, order[0])
        assert find_block(page.read_text(), order[1])
        remove(page, order[1])
        assert not page.exists()


class TestStates:
    def test_stale(self, page: Path) -> None:
        add(page, body="older")
        assert plan_block(str(page), "agents", "shop", BODY).state == "stale"
        assert add(page) == "updated"
        assert "older" not in page.read_text()

    def test_edited(self, page: Path) -> None:
        add(page)
        edited = page.read_text().replace("Sell", "Buy")
        page.write_text(edited)
        with pytest.raises(ConflictError) as raised:
            add(page)
        assert raised.value.exit_code == 20
        (conflict,) = raised.value.details["conflicts"]  # type: ignore[index,misc]
        assert "-Buy things." in conflict["diff"] and "+Sell things." in conflict["diff"]
        with pytest.raises(ConflictError):
            remove(page)
        assert page.read_text() == edited
        add(page, force=True)
        assert "Sell" in page.read_text()
        assert (page.parent / "AGENTS.md.bak").read_text() == edited

    @pytest.mark.parametrize("lost", ["end -->", "begin sha256="])
    def test_damaged(self, page: Path, lost: str) -> None:
        add(page)
        damaged = page.read_text().replace(lost, "")
        page.write_text(damaged)
        for operation in (add, remove):
            with pytest.raises(ConflictError, match="damaged"):
                operation(page, force=True)
        assert page.read_text() == damaged

    def test_twice(self, page: Path) -> None:
        add(page)
        page.write_text(page.read_text() * 2)
        with pytest.raises(ConflictError, match="damaged"):
            add(page)

    def test_line_ends_that_git_changed(self, page: Path) -> None:
        add(page)
        page.write_bytes(page.read_bytes().replace(b"\n", b"\r\n"))
        assert add(page) == "current"


class TestLinks:
    def test_the_link_stays(self, page: Path, tmp_path: Path) -> None:
        real = tmp_path / "docs.md"
        real.write_text("# Mine\n")
        page.symlink_to(real)
        add(page)
        assert page.is_symlink() and "Sell" in real.read_text()
        remove(page)
        assert real.read_text() == "# Mine\n"

    def test_broken_link(self, page: Path, tmp_path: Path) -> None:
        page.symlink_to(tmp_path / "gone.md")
        with pytest.raises(ConflictError, match="link"):
            add(page)


@pytest.mark.parametrize("app", ["Läden & Söhne", "my app", "a -- b", "x --> y", "café"])
def test_names(page: Path, app: str) -> None:
    add(page, app)
    assert page.read_text().count("-->") == 2
    assert add(page, app) == "current"
    remove(page, app)
    assert not page.exists()
