"""The commands beside those of `harness/cli.py`, a file each. Their jobs are done elsewhere in harness/."""
