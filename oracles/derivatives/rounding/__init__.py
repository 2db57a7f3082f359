"""What correct formulas of derivatives lose by rounding."""
