"""Legal slots: a node stores edges for its legal moves only, instead of one for every action.

A tree holds W edge slots per node. Usually slot i is action i, and W is A, the number of actions: in chess 4,672, of
which about 30 are legal. Here the model is wrapped, so that its actions are slots: the legal moves in ascending order,
then illegal padding. The search need not know this; the tree stores with each position which action a slot means.

    policy = jaxzero.options.with_legal_slots(lambda model: jaxzero.alphazero(model, 800), model, width=218)

No position of chess has more than 218 moves (Petrović 1964), so with W = 218 this is the search over all 4,672 actions,
visit for visit, in a fifteenth of the memory (`experiments/legal_slots_memory.py` has the figures). One exception:
`gumbel` with values rescaled to [0, 1], its default, includes the mixed value of illegal actions in that range, and a
node whose moves fill all slots has none. There W = 219 is exact. With fewer slots
the moves with the highest priors are kept, and the others do not exist for the search, at the root and below;
`info.dropped` counts them. What `avoid_proven` proves then holds for the game without them, and for the game itself
only where `info.dropped` is 0.

It helps where few of many actions are legal. It costs a selection of the W best of A in every evaluation, and 2 bytes
per slot (4 beyond 32,767 actions) for the numbers of the actions. Learned dynamics know the root's legal actions only;
below it the W best are kept.

The policy's results are by action. The tree is by slot, and so are random draws: noise has the same distribution as
without slots, but other draws. `slot_of` and `action_of` convert between the two, and `to_action_space` converts
whole arrays of slots:

    slot = jaxzero.options.slot_of(out.tree, out.action)
    line = jaxzero.options.action_of(out.tree, jaxzero.principal_variation(out.tree, 6))

Other wrappers of a model go inside, `lambda model: with_evaluations_kept(build, model)`. `transpositions` compares
positions as they are stored, with the numbers of the actions; `canonical=lambda slots: slots.state` leaves these out,
which makes the key cheaper.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxzero.options.evaluation_reuse import Kept
from jaxzero.options.slot_actions import Slots, at_slot, parts_of, slots_of, to_action_space
from jaxzero.root.summary import Summary
from jaxzero.search.checks.argument_checks import check_function, counts, one_per_game
from jaxzero.search.checks.model_checks import as_pair, at_least_float32, checked, masks_at_root_only
from jaxzero.search.checks.start_checks import check_start
from jaxzero.search.tree import NONE, Tree
from jaxzero.types import Keys, Model, Params, PolicyOutput, State, Step, in_short

__all__ = ["SlotsInfo", "by_number", "in_slots", "number_type", "with_legal_slots"]

Choice = Callable[[Keys, Step], tuple[Step, Array, Int[Array, "B"]]]  # the step by slot, the slots' actions, dropped


class SlotsInfo(NamedTuple):
    """Diagnostics of a search in slots, per game.

    Attributes:
        status: bits of `Status`; 0: nothing to report.
        overflows: walks that found the tree full.
        size: node slots in use.
        summary: visits, their shares, Q-values and value at the root, by action.
        dropped: legal actions that had no slot, summed over the positions of the tree; 0: the search was exact.
        dropped_at_root: those at the root.
    """

    status: Int[Array, "B"]
    overflows: Int[Array, "B"]
    size: Int[Array, "B"]
    summary: Summary
    dropped: Int[Array, "B"]
    dropped_at_root: Int[Array, "B"]

    __repr__ = in_short


def with_legal_slots(build: Callable[[Model], Any], model: Model, width: int) -> Any:
    """A policy whose trees have W edges per node, for the legal moves, in place of A.

    What it does, when it helps and what it costs: `help(jaxzero.options.legal_slots)`.

    Published numbers: at most 218 moves in chess (of 4,672 actions), at most 593 in shogi.

    Args:
        build: makes the policy, given a model: `lambda model: jz.alphazero(model, 64)`.
        model: what the tree is made of.
        width: W. If no position has more legal moves, the search is exact (of `gumbel`, if none has as many); else the
            best W by prior are kept, the lower action on a tie.

    Returns:
        `(params, keys, state, tree=None) -> PolicyOutput`; its actions, weights and `info.summary` are by action, its
        info is a `SlotsInfo`, its tree is by slot.

    Raises:
        ValueError: `build` is no function, width below 1; when called, width above A, a tree of another kind of
            policy, a model with slots or kept evaluations inside.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> from jaxzero import games, models
    >>> game = games.from_pgx("tic_tac_toe")
    >>> model = models.perfect(game, lambda params, observation: (jnp.zeros((1, 9)), jnp.zeros(1)))
    >>> build = lambda model: jz.alphazero(model, 64, dirichlet_fraction=0.0, act=jz.most_visited)
    >>> policy = jax.jit(jz.options.with_legal_slots(build, model, width=8))
    >>> keys = jax.random.split(jax.random.key(0), 1)
    >>> state = jax.vmap(game.step)(jax.vmap(game.init)(keys), jnp.array([4]), keys)  # the centre is taken
    >>> out, dense = policy((), keys, state), jax.jit(build(model))((), keys, state)
    >>> out.tree.num_edges, out.info.summary.visits.tolist() == dense.info.summary.visits.tolist()
    (8, True)
    """
    (width,) = counts(width=width)
    choose = lambda keys, step: of_legal(step, width)  # noqa: E731
    return in_slots("with_legal_slots", build, model, choose, by_number)


def of_legal(step: Step, width: int) -> tuple[Step, Int[Array, "B W"], Int[Array, "B"]]:
    """The step by slot: the legal actions in ascending order, those of the highest logits if there are too many."""
    num_actions = step.prior_logits.shape[-1]
    if width > num_actions:
        raise ValueError(
            f"with_legal_slots(width={width}) of {num_actions} actions: use a width between 1 and {num_actions}. The "
            "largest number of legal moves in any position is enough."
        )
    legal = checked(step)[0].legal
    logits = step.prior_logits.astype(at_least_float32(step.prior_logits.dtype))
    # NaN counts as the highest, so it is kept, and reported.
    order = jnp.where(legal, jnp.maximum(logits, jnp.finfo(logits.dtype).min), -jnp.inf)
    best = jax.lax.top_k(order, width)[1]
    action = jnp.sort(jnp.where(jnp.take_along_axis(legal, best, 1), best, num_actions), -1)
    filled = action < num_actions
    logits = jnp.take_along_axis(logits, jnp.minimum(action, num_actions - 1), 1)
    dropped = jnp.sum(legal, -1, dtype=jnp.int32) - jnp.sum(filled, -1, dtype=jnp.int32)
    action = jnp.where(filled, action, NONE).astype(number_type(num_actions))
    return step._replace(prior_logits=logits, legal=filled), action, dropped


def number_type(num_actions: int) -> Any:
    """The type in which actions are stored."""
    return jnp.int16 if num_actions <= jnp.iinfo(jnp.int16).max else jnp.int32


# --- the wrapping ----------------------------------------------------------------------------------------------------


def in_slots(
    name: str, build: Callable[[Model], Any], model: Model, choose: Choice, present: Callable[..., PolicyOutput]
) -> Any:
    """A policy over slots.

    Args:
        name: what the user called.
        build: makes the policy over slots, given a model of slots.
        model: the user's.
        choose: makes slots from the model's Step.
        present: makes the user's output from an output by slot, `(output, step) -> output`, where `step` has the shapes
            of the model's Step below the root.
    """
    like = "lambda model: jz.alphazero(model, 64)"
    check_function(f"{name}: build", build, "model", like)
    inner = build(of_slots(name, model, choose))
    check_function(f"{name}: what build(model) returned", inner, "params, keys, state", f"that of {like}")

    def policy(params: Params, keys: Keys, state: State = None, tree: Tree | None = None) -> PolicyOutput:
        batch = check_start(model, state, tree)
        keys = one_per_game(keys, batch)
        if tree is not None:
            slots_of(tree)
        if tree is not None and state is not None and masks_at_root_only(model, params, keys, state):
            raise ValueError(
                f"{name} given a tree, with a model that knows legal actions at the root only: nodes that were not the "
                "root when they were made have slots that do not stand for legal actions. Search the position anew."
            )
        out = inner(params, keys, state) if tree is None else inner(params, keys, state, tree)
        if isinstance(out.tree, Tree) and not parts_of(out.tree.state, Slots):
            raise ValueError(
                f"{name}: build(model) made a policy of another model than the one it was given, so its actions are "
                f"not slots. Use the argument: {like}."
            )
        return present(out, _says_below(model, params, keys, slots_of(out.tree, jnp.zeros(batch, jnp.int32))))

    return policy


def of_slots(name: str, model: Model, choose: Choice) -> Model:
    """The model whose actions are slots."""

    def root(params: Params, keys: Keys, state: State) -> tuple[Step, Slots]:
        given, embedding = as_pair("model.root", model.root(params, keys, state))
        _check_embedding(name, embedding)
        step, action, dropped = choose(keys, given)
        slots = Slots(embedding, action, dropped)
        below = _says_below(model, params, keys, slots)
        if below.prior_logits.shape != given.prior_logits.shape:
            raise ValueError(
                f"Step.prior_logits has shape {below.prior_logits.shape} from model.step and "
                f"{given.prior_logits.shape} from model.root. Return the same from both."
            )
        return step, slots

    def step(params: Params, keys: Keys, slot: Int[Array, "B"], slots: Slots) -> tuple[Step, Slots]:
        action = _to_be_played(slots.action, slot)
        step, below = as_pair("model.step", model.step(params, keys, action, slots.state))
        step, action, dropped = choose(keys, step)
        return step, Slots(below, action, dropped)

    return Model(root, step)


def _check_embedding(name: str, embedding: State) -> None:
    """Raises a ValueError if the model has slots already, or a wrapper that belongs inside."""
    if parts_of(embedding, Slots):
        raise ValueError(
            f"{name} of a model whose actions are slots already. Use one of the wrappers: with_legal_slots, or "
            "with_sampled_actions, which draws legal actions only."
        )
    if parts_of(embedding, Kept):
        raise ValueError(
            f"{name} inside with_evaluations_kept, which reads the tree by action. Put it inside: "
            f"{name}(lambda model: with_evaluations_kept(build, model), model, ...)."
        )


def _says_below(model: Model, params: Params, keys: Keys, slots: Slots) -> Step:
    """The shapes of the model's Step after a move."""
    action = _to_be_played(slots.action, jnp.zeros(len(slots.action), jnp.int32))
    return as_pair("model.step", jax.eval_shape(model.step, params, keys, action, slots.state))[0]


def _to_be_played(action: Array, slot: Int[Array, "B"]) -> Array:
    """The actions in slots; 0 for an empty slot, which occurs only where the result is not used."""
    found = at_slot(action, slot)
    return jnp.maximum(found, 0) if action.ndim == 2 else found


def by_number(out: PolicyOutput, step: Step) -> PolicyOutput:
    """Converts an output by slot to one by action. Where the root has no legal action: action 0 and equal weights."""
    num_actions, root = step.prior_logits.shape[-1], slots_of(out.tree, jnp.zeros_like(out.action))
    none = ~jnp.any(root.action >= 0, -1, keepdims=True)

    def spread(x: Array) -> Array:
        return to_action_space(out.tree, x, num_actions)

    def shares(x: Array) -> Array:
        return jnp.where(none, 1 / num_actions, spread(x))

    found = out.info.summary
    found = Summary(spread(found.visits), shares(found.visit_probs), spread(found.qvalues), found.value)
    return out.replace(
        action=_to_be_played(root.action, out.action),
        action_weights=shares(out.action_weights),
        info=with_dropped(out, found),
    )


def with_dropped(out: PolicyOutput, summary: Summary) -> SlotsInfo:
    """The info of an output, with what was dropped."""
    slots, known = slots_of(out.tree), out.tree.visits
    if out.tree.graph is not None:
        known = out.tree.graph.visits[:, :-1]
    dropped = jnp.sum(jnp.where(known > 0, slots.dropped[:, :-1], 0), -1, dtype=jnp.int32)
    info = out.info
    return SlotsInfo(info.status, info.overflows, info.size, summary, dropped, slots.dropped[:, 0])
