"""What modes of arithmetic allow: fast math, TF32, automatic and fixed mixed precision."""
