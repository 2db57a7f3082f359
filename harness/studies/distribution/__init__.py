"""D3's protocol."""
