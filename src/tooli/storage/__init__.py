"""What must last from one process to the next."""
