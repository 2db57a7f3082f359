"""The commands beside those of `harness/commands/app.py`, a file each. Their jobs are done elsewhere in harness/."""
