"""Questions about memory: views of it, writes to it, what a call leaves in it."""
