"""Policies: assembly of the parts into functions `(params, keys, state, tree=None) -> PolicyOutput`.

Every builder closes over a model and numbers; the function it returns is pure, batched, and made to be jitted:
without `jax.jit` it is traced and its loops are compiled anew in every call. Keys are one per game, `[B]`; a single key
is split. Given a tree that it made itself, a policy ignores the state and continues the search from that tree's root,
adding its number of simulations as far as there is room (`capacity`). Given the result of `advance` on such a tree, and
the states that follow, it continues from there; games without a tree are planted from the state. A tree of another kind
of policy is refused. A tree of the same kind with other constants is accepted: nodes keep their old choices until they
are revisited (`search.rescore` updates them all).

Policies run under jax_debug_nans and checkify's float checks, and where promotion of ranks and types is forbidden. In a
tree −inf marks closed edges: under jax_debug_infs do not return it, `policy(...).replace(tree=None)`. In
`jax.shard_map(policy, ...)` set `check_vma=False`, because the games of different devices are independent.
"""

from jaxzero.policies.alphazero import alphazero
from jaxzero.policies.gumbel import gumbel
from jaxzero.policies.muzero import muzero
from jaxzero.policies.policy_io import Policy, SearchInfo
from jaxzero.policies.uct import uct

__all__ = ["Policy", "SearchInfo", "alphazero", "gumbel", "muzero", "uct"]
