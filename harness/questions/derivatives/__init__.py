"""What the questions of derivatives run."""
