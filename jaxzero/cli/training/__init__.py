"""`jaxzero train`: settings, set-up, the loop, evaluation, and the report."""
