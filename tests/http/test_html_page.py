"""The web page: one file, its policy, and what happens without its files."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from tests.http.asgi_client import send

from tooli import Tooli
from tooli.http import html_page


async def test_content_security_policy_allows_only_the_script_of_the_page() -> None:
    api = Tooli("paged").asgi(mcp=False, token="t")
    answer = await send(api, "GET", "/")
    policy = answer.headers["content-security-policy"]
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        (content,) = re.findall(
            rb"<%b[^>]*>(.*?)</%b>" % (tag.encode(), tag.encode()), answer.body, re.S
        )
        digest = b64encode(sha256(content).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "*" not in policy
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"


async def test_disabled_or_missing_page_is_not_found(monkeypatch) -> None:
    assert (await send(Tooli("paged").asgi(mcp=False, page=False), "GET", "/")).status == 404
    monkeypatch.setattr(html_page, "files", lambda _: Path("/nowhere"))
    client = await send(Tooli("paged").asgi(mcp=False), "GET", "/")
    assert (client.status, client.code) == (404, "E1404")


def test_page_contains_its_files_without_the_indentation_of_the_script() -> None:
    files = dict.fromkeys(html_page.SCRIPTS, b"\t\tcall(1); // kept\n  // left out\n")
    files |= {"style.css": b"a{}", "index.html": b"<style>__STYLE__</style><s>__SCRIPT__</s>"}
    page = html_page.build_page(files.__getitem__)
    script = b"call(1); // kept\n" * len(html_page.SCRIPTS)
    assert page.body == b"<style>a{}</style><s>" + script + b"</s>"


def test_every_file_of_the_script_is_used() -> None:
    folder = Path(html_page.__file__).with_name("page")
    assert {path.name for path in folder.glob("*.js")} == set(html_page.SCRIPTS)
    assert all(len(path.read_text().splitlines()) <= 600 for path in folder.iterdir())
