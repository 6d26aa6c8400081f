"""`jaxzero play`, `gtp`, `match` and `tournament`."""
