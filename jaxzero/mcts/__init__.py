"""The search: trees, rules, and the algorithm."""
