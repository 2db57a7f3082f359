"""Processes that programs run in, and those that fork them; scripts but for `zygotes.py`, which starts them."""
