"""What has been reached: coverage, and the surface of the frameworks."""
