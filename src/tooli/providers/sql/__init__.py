"""Named SQL statements as tools, on SQLite and Postgres.

    statements.sql ─▶ sql_file ─▶ Statement ─▶ SqlDatabase.analyze ─▶ Analysis
                                                      └─▶ sql_provider ─▶ Tool

`sql_sqlite` and `sql_postgres` are the two databases. A statement is never put together from
values: values are bound. The analysis asks the database itself whether a statement only reads,
which parameters it has, and what its columns are.
"""
