"""What a tool is."""
