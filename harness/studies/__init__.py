"""Studies: protocols of published work, run again with our strategies and judged beside our own oracles."""
