"""Processes that run programs: workers, ranks, the interpreters they run in, the files they share."""
