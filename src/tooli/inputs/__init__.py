"""What goes in and out of a tool by itself: input, secrets, output files; opened late, closed."""
