"""What a user's own tests use: run commands, hold every door to the same answer, keep the contract.

invoke, run            a command line, in this process or in a real one ─▶ Invocation
Case, assert_parity    one request through every door of the app ─▶ equal envelopes
assert_…_snapshot      the schema, the help, the answers: as reviewed files
assert_examples        every example that a command shows is one that works
check_line             what is wrong with a command line, without running it
"""

from __future__ import annotations

from tooli.testing.command_runner import CommandResult, invoke, run
from tooli.testing.example_checks import assert_examples, check_line
from tooli.testing.http_interfaces import HttpInterface
from tooli.testing.mcp_interfaces import HandshakeInterface, StatelessInterface
from tooli.testing.parity import (
    Case,
    Interface,
    InterfaceResponse,
    assert_parity,
    interfaces,
    register_interface,
)
from tooli.testing.snapshots import (
    assert_envelope_snapshot,
    assert_help_snapshot,
    assert_schema_snapshot,
)

__all__ = [
    "Case",
    "CommandResult",
    "HandshakeInterface",
    "HttpInterface",
    "Interface",
    "InterfaceResponse",
    "StatelessInterface",
    "assert_envelope_snapshot",
    "assert_examples",
    "assert_help_snapshot",
    "assert_parity",
    "assert_schema_snapshot",
    "check_line",
    "interfaces",
    "invoke",
    "register_interface",
    "run",
]
