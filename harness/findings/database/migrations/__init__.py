"""How the schema of the store came to be, a file a revision in `versions/`."""
