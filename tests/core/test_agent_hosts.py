"""The table of coding agents."""

from __future__ import annotations

import pytest

from tooli.core.agent_hosts import AGENT_HOSTS, RULE_HOSTS, SERVER_HOSTS, SKILL_HOSTS
from tooli.export.permissions import RULE_FORMATS
from tooli.install.agent_install import DEFAULT_AGENTS, server_config_paths, skill_paths
from tooli.install.server_formats import SERVER_FORMATS


@pytest.mark.parametrize("name", AGENT_HOSTS)
def test_row_can_be_used(name: str) -> None:
    host = AGENT_HOSTS[name]
    assert host.skills or host.servers
    if host.skills:
        assert all(skill_paths("shop", [name], user=user) for user in (False, True))
    if host.servers:
        assert host.servers.file_format in SERVER_FORMATS
        assert server_config_paths([name], user=True)
    if host.rules:
        assert host.rules in RULE_FORMATS


def test_names_are_sorted_after_the_shared_folder() -> None:
    for names in (SKILL_HOSTS[1:], SERVER_HOSTS, RULE_HOSTS):
        assert list(names) == sorted(names)
    assert SKILL_HOSTS[0] == "agents" and set(DEFAULT_AGENTS) <= set(SKILL_HOSTS)


def test_agents_of_the_shared_folder_have_equal_paths() -> None:
    shared = AGENT_HOSTS["agents"].skills
    own = {name for name in SKILL_HOSTS if AGENT_HOSTS[name].skills != shared}
    assert own == {"claude-code", "windsurf"}
