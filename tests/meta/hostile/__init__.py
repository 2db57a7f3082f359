"""Model files that would execute, read or write, and files that look like them and do not."""
