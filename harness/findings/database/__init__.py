"""The store: what every command has run, with what came of it, in SQLite or PostgreSQL."""
