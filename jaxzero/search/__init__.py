"""The plain algorithm: the tree and its storage, descend, expand and backup, rules and Q-value transforms.

Policies assemble it; options and what happens at the root build on it.
"""
