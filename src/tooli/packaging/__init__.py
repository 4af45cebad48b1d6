"""Build hooks: a package that is built with its app's skill inside."""
