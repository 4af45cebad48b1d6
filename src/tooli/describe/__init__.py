"""Pure pictures of the catalogue: they run nothing."""
