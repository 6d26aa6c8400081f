"""`jaxzero train` without the rules: MuZero, with the Gumbel search and reanalyse."""
