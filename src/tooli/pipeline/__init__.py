"""What happens when a tool runs."""
