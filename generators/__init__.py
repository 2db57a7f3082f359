"""WHAT is run: graphs, inputs and the operators they are made of. Pure data; no framework is imported here."""
