"""Builds what the training loop calls: network, search, acting, learner, on all devices."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding

import jaxzero as jz
from jaxzero import environments, games, models, nets
from jaxzero.cli.muzero.settings import Config, Network
from jaxzero.cli.muzero.sizes import check, minibatches, ring_length, unrolled
from jaxzero.cli.training.evaluation import Rating
from jaxzero.cli.training.network_setup import fits_a_file
from jaxzero.environments.environment import signed_discount
from jaxzero.models.chance import for_actions, sampled, with_outcomes
from jaxzero.models.stochastic import stochastic
from jaxzero.options.sampled_actions import Sample, with_continuous_actions
from jaxzero.search.qvalues import completed_by_mix_value
from jaxzero.train import devices
from jaxzero.train.bootstrap_values import with_improved_value
from jaxzero.train.devices import EVERYWHERE, SHARED
from jaxzero.train.move_selection import exploring
from jaxzero.train.muon import DIRECTIONS
from jaxzero.train.muzero import acting, host_acting, learner, sequence_replay
from jaxzero.train.muzero.reanalyse import reanalyse
from jaxzero.train.muzero.stochastic_loss import ChanceWeights, stochastic_loss
from jaxzero.train.muzero.unroll_loss import LossWeights

__all__ = ["Run", "build", "described", "environment_for", "expected", "on_host", "policy", "search_models"]

WHERE = {"acting": SHARED, "replay": SHARED, "learner": EVERYWHERE, "rating": EVERYWHERE}
GYMNASIUM = "gymnasium:"
DRAWS = 4  # per chance node of a simulator, where outcomes of chance are not listed


def on_host(environment: Any) -> bool:
    """Whether an environment cannot be traced."""
    return isinstance(environment, environments.HostEnvironment)


class Run(NamedTuple):
    """The functions that the loop calls. The state that `begin` returns is the whole run, and all of a checkpoint.

    Attributes:
        network: MuZero's three functions, a `LearnedNetwork`.
        model: the one that searches of environment states use.
        params: the untrained parameters.
        begin: `params -> state`, with environments, replay and learner.
        act: `(params, acting, replay) -> (acting, replay, stats)`.
        update: `(learner, replay, keys, learning_rate) -> (learner, replay, losses)`.
        tell: `(stats, learner) -> numbers` that every host can read.
        keys: `step -> keys` of the learner, one per part.
    """

    network: Any
    model: Any
    params: Any
    begin: Callable
    act: Callable
    update: Callable
    tell: Callable
    keys: Callable


def environment_for(config: Config) -> Any:
    """The environment that the settings name, checked; those of Gymnasium live on the host.

    Raises:
        ValueError: no such environment, or one that a learned model cannot be trained for.
    """
    if config.game.startswith(GYMNASIUM):
        name = config.game.removeprefix(GYMNASIUM)
        return environments.from_gymnasium(name, config.acting.environments, config.seed)
    environment = environments.by_name(config.game)
    if games.is_own(config.game) and not config.game.startswith("gymnax:"):  # jaxzero's and gymnax's are tested
        environments.check_steps(environment)
        environments.check_episodes(environment, jax.random.key(config.seed))
        if config.model == "simulator" and environment.game is not None:
            games.check_outcomes(environment.game)
    return environment


def described(config: Config, environment: Any) -> dict[str, Any]:
    """The description of the network in a weights file, from which `nets.build_learned` rebuilds it."""
    net, chance = config.network, config.model == "stochastic"
    board = len(environment.observation_shape) == 3
    continuous = environment.bounds is not None
    kind = ("planes" if board and not continuous else "mlp") if net.kind == "auto" else net.kind
    if chance and net.squash:
        raise ValueError("--network.squash: the networks of --model stochastic do not have it. Leave it out.")
    if continuous and (kind != "mlp" or chance or config.learn.reanalyse):
        raise ValueError(
            f"{environment.id} has continuous actions: use --network.kind mlp, --model learned and --learn.reanalyse 0."
        )
    if config.model == "simulator" and (continuous or on_host(environment) or environment.num_players == 2):
        raise ValueError(
            f"--model simulator needs a traced one-player environment with discrete actions, and {environment.id} is "
            "none. Use --model learned, or --model rules for two-player games."
        )
    if chance and environment.num_players == 2:
        raise ValueError(f"--model stochastic is for one player; {environment.id} has two. Use --model learned.")
    if kind != "mlp" and not board:
        raise ValueError(
            f"--network.kind {kind} needs observations of shape [height, width, planes], those of {environment.id} "
            f"have {list(environment.observation_shape)}: use --network.kind mlp."
        )
    name = ("win_draw_loss" if environment.num_players == 2 else "two_hot") if net.head == "auto" else net.head
    head: dict[str, Any] = {"kind": name}
    if name in ("two_hot", "hl_gauss"):
        head |= {"bins": net.bins, "limit": net.limit}
    if name == "hl_gauss":
        head["transform"] = "sqrt"
    if kind == "mlp":
        sizes = {"embedding": net.embedding, "width": net.width, "depth": net.depth}
        sizes |= {"window": net.window, "channels": net.channels} if net.window else {}
    else:
        sizes = {"channels": net.channels, "blocks": net.blocks, "width": net.width}
        sizes |= {"tower": "lines"} if kind == "lines" else {}
    built = "mlp" if kind == "mlp" else "planes"
    projection = {"projection": net.width if config.learn.consistency else 0}
    heads = {"value": head, "reward": head, "normalisation": net.normalisation}
    if chance:
        return {"kind": f"stochastic_{built}", "codes": net.codes} | sizes | heads
    heads |= {"squash": net.squash}
    if continuous:
        heads |= {"policy": action_head(net, environment)}
    return {"kind": f"muzero_{built}"} | sizes | projection | heads


def action_head(net: Network, environment: Any) -> dict[str, Any]:
    """The description of what the policy output means, where actions are continuous."""
    low, high = (list(x) for x in environment.bounds)
    bins = {"bins": net.policy_bins} if net.policy == "factorised" else {}
    return {"kind": net.policy, "low": low, "high": high} | bins


def policy(config: Config, environment: Any, model: Any, simulations: int, explore: bool = True) -> Callable:
    """The search: with `explore` for acting and reanalysis, without it to play for the best return."""
    floor = completed_by_mix_value(epsilon=config.acting.range_floor, probabilities=lambda view: jnp.exp(view.prior))
    considered = min(config.acting.max_considered, simulations)
    given = dict(max_considered=considered, gumbel_scale=1.0 if explore else 0.0, qvalues=floor)
    build = lambda model: with_improved_value(jz.gumbel(model, simulations, **given))
    if environment.bounds is not None:
        head = nets.build_action_head(action_head(config.network, environment))

        def sample(keys: Any, output: Any) -> Sample:
            actions = head.draw(keys, output, environment.num_actions)
            return Sample(actions, head.log_prob(output, actions))

        return with_continuous_actions(build, model, sample)
    search = build(model)
    return search if config.model == "learned" else for_actions(search, environment.num_actions)  # chance may be wider


def search_models(config: Config, environment: Any, network: Any) -> tuple[Any, Any]:
    """The models to search with: one for states of the environment, one for recorded observations.

    The simulator has none for the latter: an observation alone cannot be stepped.
    """
    if config.model == "simulator":
        return simulator(environment, network), None
    signed = signed_discount(environment)
    if isinstance(network, nets.StochasticNetwork):
        sizes = dict(num_actions=environment.num_actions, codes=network.codes)
        build = functools.partial(stochastic, *nets.for_stochastic_search(network, signed), **sizes)
    else:
        build = functools.partial(models.learned, *nets.for_search(network, signed))
    legal = None if environment.legal is None else lambda seen: seen[1]
    recorded = build(observe=lambda seen: seen[0], legal=legal)
    if on_host(environment):
        return recorded, recorded
    legal = None if environment.legal is None else jax.vmap(environment.legal)
    return build(observe=jax.vmap(environment.observe), legal=legal), recorded


def simulator(environment: Any, network: Any) -> Any:
    """A model that steps the environment itself, and asks the network what its states are worth.

    Where outcomes of chance are not listed, a few draws stand in for them. With a single draw, a search would prefer
    the luckiest action.
    """
    game = environments.to_game(environments.without_limit(environment))
    outcomes = sampled(game, DRAWS) if game.outcomes is None and environment.chance else game.outcomes
    model = models.perfect(game, nets.for_rules(network), environment.discount)
    if outcomes is not None:
        model = with_outcomes(model, game, outcomes, environment.discount)
    placed = jax.vmap(lambda state: environments.to_position(environment, state))
    return model._replace(root=lambda params, keys, state: model.root(params, keys, placed(state)))


def build(config: Config, environment: Any, mesh: Any, search: Callable = policy) -> Run:
    """Builds everything for these settings on these devices.

    Args:
        config: the settings.
        environment: what is learned.
        mesh: the devices.
        search: builds the policies for acting and reanalysis; called like `policy`.

    Raises:
        ValueError: numbers that do not fit one another, the devices or the environment.
    """
    own, learn = config.acting, config.learn
    devices.check_shares(mesh.size, learn.parts, environments=own.environments, batch_size=learn.batch_size)
    check(config, environment)
    network, params = nets.build_learned(
        described(config, environment),
        environment.observation_shape,
        environment.num_actions,
        jax.random.fold_in(jax.random.key(config.seed), 1),
    )
    fits_a_file(params)
    model, recorded = search_models(config, environment, network)
    begin_acting, act, row = make_acting(config, environment, search(config, environment, model, own.simulations), mesh)
    anew = None if recorded is None else search(config, environment, recorded, own.simulations)
    begin_learning, update = make_learner(config, environment, network, anew, mesh)

    def begin(params: Any) -> dict[str, Any]:
        params = jax.tree.map(jnp.copy, params)  # a copy of its own: the learner's buffers are donated at every step
        key = jax.random.fold_in(jax.random.key(config.seed), 2)
        rings = sequence_replay.new_sequences(row, own.environments, ring_length(config), learn.priority > 0)
        state = {"acting": begin_acting(key, own.environments), "replay": rings, "learner": begin_learning(params)}
        return state | ({"rating": Rating(jnp.float32(0), params)} if environment.num_players == 2 else {})

    def tell(stats: acting.ActingStats, state: Any) -> dict[str, Any]:
        return jax.tree.map(jnp.sum, stats)._asdict() | {"minibatches": state.steps}

    split = lambda step: jax.random.split(jax.random.fold_in(jax.random.key(config.seed), step + 3), learn.parts)
    where = {name: NamedSharding(mesh, at) for name, at in WHERE.items()}
    where = {name: where[name] for name in jax.eval_shape(begin, params)}
    return Run(
        network=network,
        model=model,
        params=params,
        begin=jax.jit(begin, out_shardings=where),
        act=act,
        update=update,
        tell=devices.place(tell, mesh, EVERYWHERE),
        keys=devices.place(split, mesh, SHARED),
    )


def make_acting(config: Config, environment: Any, search: Callable, mesh: Any) -> tuple[Callable, Callable, Any]:
    """Functions that begin episodes, and that act a chunk and store it; and the shapes of a stored step."""
    own, choose = config.acting, exploring(random_rate=config.acting.random_rate)
    if on_host(environment):
        if own.openings:
            raise ValueError(
                f"--acting.openings {own.openings}: episodes of Gymnasium begin as it resets them. Leave it out; "
                "--acting.random-rate makes them differ."
            )
        begin, act = host_acting.host_acting(environment, search, choose, steps=own.steps)
        add = jax.jit(sequence_replay.add, donate_argnums=0)
        cut = jax.jit(sequence_replay.cut_at_head, donate_argnums=0)
        began: list[bool] = []  # empty before the first chunk: the episodes of a restored replay do not go on

        def act_and_keep(params: Any, now: Any, replay: Any) -> tuple:
            now, steps, stats = act(params, now)
            replay = replay if began else cut(replay)
            began[:] = [True]
            return now, add(replay, steps), stats

        return begin, act_and_keep, host_acting.blank_host_transition(environment)
    search = search if environment.bounds is None else acting.by_sample(search)
    begin, act = acting.acting(environment, search, choose, steps=own.steps, openings=own.openings)

    def traced(params: Any, now: Any, replay: Any) -> tuple:
        now, steps, stats = act(params, now)
        return now, sequence_replay.add(replay, steps), stats

    shared = devices.on_every_device(traced, mesh, (EVERYWHERE, SHARED, SHARED), SHARED)
    return begin, jax.jit(shared, donate_argnums=(1, 2)), acting.blank_transition(environment)


def make_learner(
    config: Config, environment: Any, network: Any, search: Callable | None, mesh: Any
) -> tuple[Callable, Callable]:
    """Functions that begin learning, and that learn from some minibatches. `search`: of recorded states; None: none."""
    learn = config.learn
    evaluate = lambda params, seen: nets.for_rules(network)(params, seen)[1]
    begin, update = learner.muzero_learner(
        environment,
        network,
        batch_size=learn.batch_size,
        unroll=unrolled(config),
        steps=learn.returns,
        trace=learn.trace,
        weights=LossWeights(1.0, learn.value_weight, learn.reward_weight, learn.consistency),
        fresh=None if search is None else reanalyse(search, evaluate),
        share=learn.reanalyse,
        alpha=learn.priority,
        beta=learn.correction,
        weight_decay=learn.weight_decay,
        average_decay=learn.average_decay,
        clip_norm=learn.clip_norm,
        direction=DIRECTIONS[learn.optimiser](),
        loss=loss_for(config),
        devices=(devices.AXIS, mesh.size),
    )
    number = minibatches(config)
    learn_some = lambda state, replay, keys, rate: update(state, replay, keys, rate, number)
    takes, gives = (EVERYWHERE, SHARED, SHARED, EVERYWHERE), (EVERYWHERE, SHARED, EVERYWHERE)
    return begin, jax.jit(devices.on_every_device(learn_some, mesh, takes, gives), donate_argnums=(0, 1))


def loss_for(config: Config) -> Callable | None:
    """The loss for this kind of model; None: MuZero's."""
    if config.model != "stochastic":
        return None
    learn = config.learn
    weights = ChanceWeights(learn.value_weight, reconstruction=learn.reconstruction, entropy=learn.code_entropy)
    return functools.partial(stochastic_loss, chance_weights=weights)


def expected(run: Run, mesh: Any) -> dict[str, Any]:
    """The shapes of the state, and where its arrays belong."""
    put = lambda x, where: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, where))
    shapes = jax.eval_shape(run.begin, run.params)
    return {name: jax.tree.map(lambda x, w=WHERE[name]: put(x, w), part) for name, part in shapes.items()}
