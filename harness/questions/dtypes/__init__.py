"""Programs in which dtypes meet: mixed operands, and what frameworks cast by themselves."""
