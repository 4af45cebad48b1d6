"""The MCP surface: a stdio server without dependencies, and the official SDK for the rest."""
