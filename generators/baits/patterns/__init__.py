"""The records, by what they are about: each file has a tuple `BAITS`."""
