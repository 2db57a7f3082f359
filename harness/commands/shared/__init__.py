"""What several commands share: the console, tables, records of long runs."""
