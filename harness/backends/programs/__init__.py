"""The text of `load` for derivatives and vectorised maps, by framework."""
