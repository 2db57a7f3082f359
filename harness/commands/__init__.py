"""The commands, one file each; `app.py` gathers them. Their jobs are done elsewhere in harness/."""
