"""The browser for the tests of the page. Its event loop must end before other tests begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.integration.page import setup_browser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    error = setup_browser.install_browser()
    if error:
        pytest.skip(error)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=setup_browser.CHROMIUM, args=list(setup_browser.ARGS)
        )
        yield started
        started.close()
