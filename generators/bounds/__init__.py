"""Values that carry the error which a correct evaluation may have made: running error bounds."""
