"""Operators on sequences of tokens: recurrent layers, attention."""
