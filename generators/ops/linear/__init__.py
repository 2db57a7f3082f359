"""Linear algebra: products, contractions, linear systems, decompositions."""
