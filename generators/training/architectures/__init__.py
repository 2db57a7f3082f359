"""Networks that published studies train."""
