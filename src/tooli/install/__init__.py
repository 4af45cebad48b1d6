"""Install the skill, the documents and the MCP server of an app where agents find them."""
