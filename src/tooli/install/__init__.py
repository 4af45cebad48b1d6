"""Installing: an app's skill, its documents and its MCP server, put where agents look for them."""
