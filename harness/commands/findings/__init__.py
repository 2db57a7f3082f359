"""The commands on what was found: known issues, the site, texts for upstream."""
