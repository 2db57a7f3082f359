"""What is kept and shown of a given model: files, a page, reproducers."""
