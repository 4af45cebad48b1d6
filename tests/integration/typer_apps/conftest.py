"""One server per test session runs the programs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.fork_server import fork_server
from tests.integration.typer_apps.comparison import PRELOADED, Programs


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    with fork_server(*PRELOADED) as server:
        yield Programs(server, tmp_path_factory.mktemp("programs"))
