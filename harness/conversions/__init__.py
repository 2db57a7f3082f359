"""Model files: their formats, the tools that convert between them, and routes by way of several."""
