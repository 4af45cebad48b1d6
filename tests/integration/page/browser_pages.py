"""Open the page in a browser, and check what the browser reports about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

OpenPage: TypeAlias = "Callable[..., Page]"
TIMEOUT_MS = 120_000  # a busy machine needs much less


@contextmanager
def page_opener(browser: Browser, url: str) -> Iterator[OpenPage]:
    """Return a function that opens the page of a server.

    At the end, asserts that the browser has reported no error or policy violation, that the
    page has sent no request to another server, and that no hostile script has run.
    """
    problems: list[str] = []
    contexts: list[Any] = []

    def on_console(message: Any) -> None:
        # Chromium also reports every status of 400 and above, which tests expect
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            problems.append(f"{message.type}: {message.text}")

    def on_request(request: Any) -> None:
        if not request.url.startswith((url, "data:", f"blob:{url}")):
            problems.append(f"request to {request.url}")

    def open_page(
        path: str = "", width: int = 1440, height: int = 900, script: str = "", **options: Any
    ) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(TIMEOUT_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("console", on_console)
        page.on("pageerror", lambda error: problems.append(f"uncaught: {error}"))
        page.on("request", on_request)
        page.add_init_script(
            "addEventListener('securitypolicyviolation', e =>"
            " console.error('policy: ' + e.violatedDirective + ' ' + e.blockedURI));" + script
        )
        fragment = path if path.startswith("!") else f"/{path}"
        page.goto(url + (f"#{fragment}" if path else ""))
        page.wait_for_selector("nav a:visible, h1:visible")
        return page

    yield open_page
    hacked = [page.evaluate("window.hacked") for context in contexts for page in context.pages]
    for context in contexts:
        context.close()
    assert problems == []
    assert set(hacked) <= {None}


def run_command(page: Page) -> None:
    """Run the command and wait for its answer."""
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".answer .pill:visible")
    page.wait_for_selector(".answer:not([aria-busy])")


LOW_CONTRAST = """() => {
  const rgba = (color) => {
    const canvas = document.createElement('canvas').getContext('2d');
    canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = (v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const luminance = (color) => {
    const [r, g, b] = color.map((v) => linear(v / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const found = new Set();
  for (const el of document.querySelectorAll('body *')) {
    if (el.closest('.sr, [disabled], script, noscript')) continue;
    if (!el.checkVisibility({opacityProperty: true})) continue;
    const hasText = [...el.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!hasText && !el.placeholder) continue;
    let behind = el, background = [0, 0, 0, 0];
    for (; behind && background[3] < 255; behind = behind.parentElement)
      background = rgba(getComputedStyle(behind).backgroundColor);
    const color = getComputedStyle(el, el.placeholder ? '::placeholder' : null).color;
    const [a, b] = [luminance(rgba(color)), luminance(background)].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) found.add(`${el.tagName}.${el.className} ${ratio.toFixed(2)}`);
  }
  return [...found];
}"""
