"""The MCP door: a front for stdio on the standard library, the official SDK for the rest."""
