"""jaxzero: fully vectorised, batched Monte Carlo tree search for JAX.

    game        = games.from_pgx("connect_four")
    net, params = nets.resnet(game, channels=64, blocks=6, key=jax.random.key(0))
    policy      = jaxzero.gumbel(models.perfect(game, net), num_simulations=32)
    out         = jax.jit(policy)(params, keys, states)      # out.action, out.action_weights, out.value, out.tree

Games (`jaxzero.games`), models (`jaxzero.models`), networks (`jaxzero.nets`) and training (`jaxzero.train`) are modules
to be imported by name: this one needs jax, chex and jaxtyping only.
"""

from jaxzero.models.sharded_evaluation import over_devices
from jaxzero.options.early_stopping import any_of, decided, search_until, total_visits
from jaxzero.options.evaluation_cache import num_kept, with_evaluations_kept
from jaxzero.options.graph_search import num_positions, transpositions
from jaxzero.options.leaf_parallel.ask_tell import ask, tell
from jaxzero.options.leaf_parallel.parallel import max_evaluations, num_evaluations, parallel
from jaxzero.options.leaf_parallel.virtual_loss import virtual_loss, virtual_mean, virtual_visits
from jaxzero.options.legal_slots import SlotsInfo, with_legal_slots
from jaxzero.options.sampled_actions import (
    Sample,
    SampledInfo,
    gaussian_sample,
    with_continuous_actions,
    with_sampled_actions,
)
from jaxzero.options.slot_actions import Slots, action_of, slot_of, to_action_space
from jaxzero.options.solver import avoid_proven, bounds, seek_proof, solved
from jaxzero.options.subtree_reuse import action_and_outcome, advance
from jaxzero.policies import SearchInfo, alphazero, gumbel, muzero, uct
from jaxzero.root.exploration import chain, dirichlet, prior_at_root, root_temperature, shaped_dirichlet, with_dirichlet
from jaxzero.root.forced_playouts import forced_playouts
from jaxzero.root.gumbel import gumbel_interior, gumbel_root, with_gumbel
from jaxzero.root.player_values import kl, player_values, policy_improvement
from jaxzero.root.playout_cap import BothTrees, playout_cap
from jaxzero.root.root_action import best_value, by_temperature, most_visited
from jaxzero.root.schedules import by_move, decaying, falling, steps
from jaxzero.root.summary import principal_variation, qvalues, summary
from jaxzero.root.target_pruning import pruned_visits, solved_visits
from jaxzero.root.win_rates import win_rates
from jaxzero.search.edge_view import edge_view
from jaxzero.search.first_play_urgency import mean_of_visited, parent_raw_value, parent_value, reduced_parent
from jaxzero.search.qvalues import by_min_max, by_parent_and_siblings, completed_by_mix_value, raw, with_virtual_zero
from jaxzero.search.rules import muzero_puct, puct, ucb1, ucb1_uctk, with_root_prior
from jaxzero.search.search import (
    backup,
    choose_at_root,
    descend,
    enter,
    expand,
    finish,
    plant,
    rescore,
    search,
    simulate,
)
from jaxzero.search.tree import COMPACT, Layout, Status, Tree
from jaxzero.types import EdgeView, Model, Path, PolicyOutput, Rule, Step

__version__ = "0.1.0"

__all__ = [
    # policies
    "alphazero",
    "gumbel",
    "muzero",
    "uct",
    "playout_cap",
    "BothTrees",
    "PolicyOutput",
    "SearchInfo",
    "Status",
    # what a model says
    "Model",
    "Step",
    # search
    "plant",
    "search",
    "enter",
    "simulate",
    "descend",
    "expand",
    "backup",
    "finish",
    "rescore",
    "choose_at_root",
    "Path",
    # leaves in parallel
    "parallel",
    "virtual_visits",
    "virtual_loss",
    "virtual_mean",
    "num_evaluations",
    "max_evaluations",
    "ask",
    "tell",
    # positions reached in several ways
    "transpositions",
    "num_positions",
    "over_devices",
    # when to stop
    "search_until",
    "decided",
    "total_visits",
    "solved",
    "any_of",
    # proven values
    "avoid_proven",
    "seek_proof",
    "bounds",
    # from move to move
    "action_and_outcome",
    "advance",
    "with_evaluations_kept",
    "num_kept",
    # few edges for many actions
    "with_legal_slots",
    "with_sampled_actions",
    "with_continuous_actions",
    "gaussian_sample",
    "Sample",
    "Slots",
    "SlotsInfo",
    "SampledInfo",
    "slot_of",
    "action_of",
    "to_action_space",
    # the tree, and what can be read off it
    "Tree",
    "Layout",
    "COMPACT",
    "edge_view",
    "qvalues",
    "summary",
    "principal_variation",
    "player_values",
    "prior_at_root",
    "policy_improvement",
    "kl",
    "win_rates",
    # rules
    "Rule",
    "EdgeView",
    "puct",
    "muzero_puct",
    "ucb1",
    "ucb1_uctk",
    "gumbel_root",
    "gumbel_interior",
    "with_root_prior",
    "forced_playouts",
    # Q-value transforms
    "raw",
    "with_virtual_zero",
    "by_min_max",
    "by_parent_and_siblings",
    "completed_by_mix_value",
    # first-play urgency
    "parent_value",
    "parent_raw_value",
    "reduced_parent",
    "mean_of_visited",
    # the root: before a search
    "dirichlet",
    "shaped_dirichlet",
    "root_temperature",
    "chain",
    "with_dirichlet",
    "with_gumbel",
    # and after it
    "by_temperature",
    "most_visited",
    "best_value",
    "solved_visits",
    "pruned_visits",
    # numbers that change in the course of a game
    "by_move",
    "steps",
    "decaying",
    "falling",
]
