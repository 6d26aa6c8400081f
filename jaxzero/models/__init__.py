"""Models for the search: a game's rules with a network or with random playouts, or learned dynamics.

`perfect`, `rollout` and `learned` build a `Model`. `chance` and `symmetry` have models for games of chance and boards
with symmetries; `decisive_moves` has one that sees which moves win at once; `over_devices` shares the evaluation of
positions among devices. Policies never import this package: a model is passed to them.
"""

from jaxzero.models.learned import learned
from jaxzero.models.rules_with_network import perfect
from jaxzero.models.rules_with_playouts import rollout
from jaxzero.models.sharded_evaluation import over_devices

__all__ = ["learned", "over_devices", "perfect", "rollout"]
