"""Rules of operators, a file a kind; `rules.py` gathers them."""
