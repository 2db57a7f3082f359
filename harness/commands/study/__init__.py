"""The commands `study …`, one file a study; `group.py` gathers them. Their work is done in `harness/studies/`."""
