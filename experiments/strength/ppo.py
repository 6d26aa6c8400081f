"""PPO by self-play on a board game, with the time and the network of a `jaxzero train` run; then matches against it.

    python experiments/strength/ppo.py --weights runs/connect_four --minutes 13
    python experiments/strength/ppo.py --weights runs/hex --minutes 60 --games 400 --folder runs/ppo_hex --json hex.json

Proximal policy optimisation (Schulman et al. 2017); the current policy plays both sides. Advantages are those of GAE
(Schulman et al. 2016), from the view of the player to move: what follows the opponent's move counts negatively. Minutes
count playing and learning, without compilation. The matches: network against network, and search against search, each
from openings of four random moves that are played with both colours. Ctrl-C while PPO learns keeps its weights
(--folder) and plays no match; later it keeps the matches that ended.
"""

import argparse
import dataclasses
import json
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxzero import models
from jaxzero.atomic_files import make_folder
from jaxzero.cli.circumstances import circumstances
from jaxzero.cli.evaluation_search import sees_decisive, to_win
from jaxzero.cli.interrupted_process import ending_at_once
from jaxzero.cli.playing.play import resolved, rules
from jaxzero.cli.playing.play_settings import SIZE, Player
from jaxzero.cli.training.network_setup import network
from jaxzero.cli.training.presets import BEFORE
from jaxzero.models.chance import select_rows
from jaxzero.nets import weights
from jaxzero.play import arena, match_programs
from jaxzero.runs import progress_display
from jaxzero.runs.run_folder import write_whole

GAMES, PLIES = 256, 64  # games in lock-step, and moves of each per iteration
EPOCHS, MINIBATCHES = 4, 16
CLIP, ENTROPY, VALUE = 0.2, 0.01, 0.5
LEARNING_RATE, GRADIENT = 5e-4, 0.5
OPENING_PLIES = 4  # random moves before each game of a match


class Step(NamedTuple):
    """A move of each game `[T, B, ...]`: observation and action, the mover's reward, and what came next."""

    observation: Any
    legal: Any
    action: Any
    log_probability: Any
    value: Any
    reward: Any
    ended: Any
    same_mover: Any


def logits_of(net, params, observation, legal):
    """The log-probabilities of legal moves, and the value."""
    logits, value = net(params, observation)
    return jnp.where(legal, logits, -1e9), value


def rollout(game, net, params, state, key):
    """Plays `PLIES` moves in every game; finished games begin anew."""

    def move(state, key):
        k_action, k_step, k_init = jax.random.split(key, 3)
        observation, legal = jax.vmap(game.observe)(state), jax.vmap(game.legal)(state)
        mover = jax.vmap(game.to_play)(state)
        logits, value = logits_of(net, params, observation, legal)
        action = jax.random.categorical(k_action, logits)
        log_probability = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], 1)[:, 0]
        after = jax.vmap(game.step)(state, action, jax.random.split(k_step, GAMES))
        ended = jax.vmap(game.terminal)(after)
        reward = jnp.take_along_axis(jax.vmap(game.rewards)(after), mover[:, None], 1)[:, 0]
        same = jax.vmap(game.to_play)(after) == mover
        fresh = jax.vmap(game.init)(jax.random.split(k_init, GAMES))
        step = Step(observation, legal, action, log_probability, value, reward, ended, same)
        return select_rows(ended, fresh, after), step

    state, steps = jax.lax.scan(move, state, jax.random.split(key, PLIES))
    _, last = net(params, jax.vmap(game.observe)(state))
    return state, steps, last


def advantages(steps: Step, last, gae_lambda: float):
    """GAE for the player to move: A = r + s·V' − V + λ·s·A', with s = −1 where the other player moves next."""

    def back(carry, step: Step):
        advantage, following = carry
        sign = jnp.where(step.ended, 0.0, jnp.where(step.same_mover, 1.0, -1.0))
        advantage = step.reward + sign * following - step.value + gae_lambda * sign * advantage
        return (advantage, step.value), advantage

    return jax.lax.scan(back, (jnp.zeros_like(last), last), steps, reverse=True)[1]


def loss(net, params, rows: Step, advantage, target):
    """The clipped surrogate, the squared error of the value, and the entropy."""
    logits, value = logits_of(net, params, rows.observation, rows.legal)
    log_policy = jax.nn.log_softmax(logits)
    ratio = jnp.exp(jnp.take_along_axis(log_policy, rows.action[:, None], 1)[:, 0] - rows.log_probability)
    gain = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    surrogate = jnp.minimum(ratio * gain, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * gain).mean()
    entropy = -jnp.sum(jnp.exp(log_policy) * log_policy, 1, where=rows.legal).mean()
    return -surrogate + VALUE * jnp.square(value - target).mean() - ENTROPY * entropy


class Learned(NamedTuple):
    """What PPO learned: parameters, number of positions, minutes, and the signal that ended it early, if one did."""

    params: Any
    positions: int
    minutes: float
    interrupted: str | None


def train(game, net, params, minutes: float, seed: int, gae_lambda: float) -> Learned:
    """PPO for some minutes; Ctrl-C and SIGTERM end it after an iteration."""
    optimiser = optax.chain(optax.clip_by_global_norm(GRADIENT), optax.adam(LEARNING_RATE, eps=1e-5))

    def iteration(params, opt_state, state, key):
        k_play, k_learn = jax.random.split(key)
        state, steps, last = rollout(game, net, params, state, k_play)
        advantage = advantages(steps, last, gae_lambda)
        rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (steps, advantage, advantage + steps.value))

        def minibatch(carry, some):
            params, opt_state = carry
            gradient = jax.grad(lambda p: loss(net, p, *jax.tree.map(lambda x: x[some], rows)))(params)
            updates, opt_state = optimiser.update(gradient, opt_state, params)
            return (optax.apply_updates(params, updates), opt_state), None

        order = jax.vmap(lambda k: jax.random.permutation(k, GAMES * PLIES))(jax.random.split(k_learn, EPOCHS))
        learned, _ = jax.lax.scan(minibatch, (params, opt_state), order.reshape(EPOCHS * MINIBATCHES, -1))
        return *learned, state

    state = jax.vmap(game.init)(jax.random.split(jax.random.key(seed), GAMES))
    opt_state = optimiser.init(params)
    print("Compiling PPO ...", flush=True)
    compiled = jax.jit(iteration).lower(params, opt_state, state, jax.random.key(0)).compile()
    with progress_display.interruptible() as interrupted:
        began, number, told, spent = time.monotonic(), 0, 0.0, 0.0
        while spent < 60 * minutes and not interrupted():
            if spent - told > 30:
                told = spent
                print(f"{spent / 60:.1f} of {minutes:g} minutes, {number * GAMES * PLIES:,} positions", flush=True)
            params, opt_state, state = compiled(
                params, opt_state, state, jax.random.fold_in(jax.random.key(seed + 1), number)
            )
            jax.block_until_ready(params)
            number += 1
            spent = time.monotonic() - began
        return Learned(params, number * GAMES * PLIES, spent / 60, interrupted())


def matches(game, model, ours, theirs, count: int, simulations: int, keep: Callable[[str, dict], None]) -> None:
    """Plays `ours` against `theirs`: networks without search, and with it. `keep(name, result)` saves each match."""
    search = to_win(game, model, simulations)
    keys = jax.random.split(jax.random.key(7), count // 2)
    match = match_programs.between(game, OPENING_PLIES)
    for name, policy in {"raw": arena.raw_network(model), f"{simulations} simulations": search}.items():
        program = match_programs.program(policy)
        seats = match((program, program), (ours, theirs), keys)
        share = float(seats.points.mean())
        interval = arena.wilson(share, count)
        print(f"against PPO, {name}: {share:.1%} of the points of {count} games", interval, flush=True)
        keep(name, {"share": share, "interval": interval, "score": [int(x.sum()) for x in seats.score]})


def settings() -> argparse.ArgumentParser:
    """The flags."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--weights", type=pathlib.Path, required=True, help="a file or a folder of `jaxzero train`")
    parser.add_argument("--minutes", type=float, default=13.0, help="of PPO")
    parser.add_argument("--gae-lambda", type=float, default=0.95, help="PPO's λ")
    parser.add_argument("--games", type=int, default=400, help="of each match")
    parser.add_argument("--simulations", type=int, default=64, help="per move, with search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=pathlib.Path, help="where PPO's weights go")
    parser.add_argument("--json", type=pathlib.Path, help="where the results go")
    return parser


def check(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Ends the program if a flag has no meaning: now, not after an hour of learning."""
    if given.games < 2 or given.games % 2:
        parser.error(f"--games {given.games}: use an even number, as each opening is played with both colours.")
    if given.simulations < 1:
        parser.error(f"--simulations {given.simulations}: 1 or more")
    if not 0 < given.minutes < float("inf"):
        parser.error(f"--minutes {given.minutes:g}: above 0, like 13")
    if not 0 <= given.gae_lambda <= 1:
        parser.error(f"--gae-lambda {given.gae_lambda:g}: from 0 to 1, like 0.95")
    for name, path in (("--json", given.json), ("--folder", given.folder)):
        if path is not None and path.exists():
            parser.error(f"{name} {path} exists: name a new one")


def make_folders(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Makes the folders for what will be written."""
    for name, folder in (("--json", given.json and given.json.parent), ("--folder", given.folder)):
        try:
            if folder is not None:
                make_folder(folder)
        except OSError as error:
            parser.error(f"{name}: the folder {folder} cannot be made: {error.strerror}. Name another one")


def main() -> None:
    """Trains PPO, and plays the run's network against it."""
    given = (parser := settings()).parse_args()
    check(parser, given)
    try:
        player = resolved(Player(weights=str(given.weights)))
        game = rules(player, player.size or SIZE, player.komi or 0.0)
        net, ours, about = weights.load(given.weights, game)
    except (ValueError, ImportError, OSError) as error:
        parser.error(f"--weights: {error}")
    if game.num_players != 2:
        parser.error(f"{game.id} has {game.num_players} players, but this PPO is for games of two")
    make_folders(parser, given)
    fresh = network(dataclasses.replace(BEFORE.network, **about["network"]), game, jax.random.key(given.seed))[1]
    found = train(game, net, fresh, given.minutes, given.seed, given.gae_lambda)
    if given.folder:
        kept = {"game": game.id, "rules": about.get("rules", game.id), "network": about["network"], "by": "PPO"}
        weights.save(given.folder / "weights.safetensors", found.params, kept, game=game)
        print(f"PPO's weights are in {given.folder}", flush=True)
    if found.interrupted:
        print(f"{found.interrupted} after {found.minutes:.1f} of {given.minutes:g} minutes: no matches are played.")
        sys.exit(130)
    results = circumstances() | {"minutes": given.minutes, "opening_plies": OPENING_PLIES}
    results |= {"decisive_moves": sees_decisive(game), "seed": given.seed, "games": given.games}
    results |= {"gae_lambda": given.gae_lambda, "positions": found.positions, "network": about}

    def keep(name: str, result: dict[str, Any]) -> None:
        results[name] = result
        if given.json:
            write_whole(given.json, json.dumps(results, indent=1) + "\n")

    matches(game, models.perfect(game, net), ours, found.params, given.games, given.simulations, keep)


if __name__ == "__main__":
    ending_at_once(main)
