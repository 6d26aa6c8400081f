"""Policies: assembly of the parts into functions `(params, keys, state, tree=None) -> PolicyOutput`.

Every builder closes over a model and numbers; the function it returns is pure, batched, and made to be jitted:
without `jax.jit` it is traced and its loops are compiled anew in every call. Keys are one per game, `[B]`; a single key
is split. Given a tree back that it made itself, a policy ignores the state and thinks on from that tree's root, adding
its number of simulations as far as there is room (`capacity`). Given what `advance` made of such a tree, and the states
that follow, it thinks on from there, and games without a tree are planted from the state. A tree of another kind of
policy is refused. A tree of the same kind with other constants is taken as it is: nodes keep their old choices
until they are revisited (`search.rescore` updates them all).

Policies run under jax_debug_nans and checkify's float checks, and where ranks and types may not be promoted. In a tree
−inf marks closed edges: under jax_debug_infs do not return it, `policy(...).replace(tree=None)`. In
`jax.shard_map(policy, ...)` say `check_vma=False`: games on one device have no business with those on another.
"""

from jaxzero.policies.alphazero import alphazero
from jaxzero.policies.gumbel import gumbel
from jaxzero.policies.muzero import muzero
from jaxzero.policies.policy_io import Policy, SearchInfo
from jaxzero.policies.uct import uct

__all__ = ["Policy", "SearchInfo", "alphazero", "gumbel", "muzero", "uct"]
