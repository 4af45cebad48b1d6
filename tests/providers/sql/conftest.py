from __future__ import annotations

from pathlib import Path

import pytest
from tests.providers.sql.shops import postgres_shop, sqlite_shop


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with 25 products."""
    if request.param == "sqlite":
        return sqlite_shop(tmp_path)
    return postgres_shop(request.getfixturevalue("postgres_server"))
