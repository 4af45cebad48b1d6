"""What the program `tooli` makes apps of: files, programs, APIs, servers, queries, folders."""
