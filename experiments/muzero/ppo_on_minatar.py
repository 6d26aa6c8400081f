r"""PPO on gymnax's MinAtar games, by rejax, for comparison with MuZero's curve.

    python -m venv ppo && ppo/bin/python -m pip install rejax "gymnax<1"     # an environment of its own
    ppo/bin/python experiments/muzero/ppo_on_minatar.py --game Breakout-MinAtar --steps 1000000

Prints a line of JSON for each look: steps in the environment, seconds since the imports, compilation and looks
included, and the mean return of 128 episodes played with sampled actions, as in training. The policy is a perceptron on
the flattened image. Settings are those of rejax, except for 128 steps of each environment (64), 4 epochs (8), 8
minibatches (16), a learning rate of 0.001 (0.0003), and ReLU (swish).
"""

import argparse
import json
import time

import jax
import rejax


def main() -> None:
    """Trains, and prints its mean returns."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--game", default="Breakout-MinAtar", help="as gymnax knows it")
    parser.add_argument(
        "--steps",
        type=int,
        default=1_000_000,
        help="in the environment; between looks they are rounded up to multiples of 8,192",
    )
    parser.add_argument("--looks", type=int, default=10, help="how many")
    parser.add_argument("--learning-rate", type=float, default=1e-3, help="of Adam")
    parser.add_argument("--seed", type=int, default=0, help="of everything")
    given = parser.parse_args()
    began = time.monotonic()

    def told(mean, step) -> None:
        seconds = round(time.monotonic() - began, 1)
        print(json.dumps({"steps": int(step), "seconds": seconds, "mean": round(float(mean), 2)}), flush=True)

    algorithm = rejax.PPO.create(
        env=given.game,
        total_timesteps=given.steps,
        eval_freq=given.steps // given.looks,
        num_envs=64,
        num_steps=128,
        num_epochs=4,
        num_minibatches=8,
        learning_rate=given.learning_rate,
        gamma=0.99,
        gae_lambda=0.95,
        agent_kwargs={"activation": "relu", "hidden_layer_sizes": (64, 64)},
    )
    plain = algorithm.eval_callback

    def look(algorithm, state, key):
        lengths, returns = plain(algorithm, state, key)
        jax.debug.callback(told, returns.mean(), state.global_step)
        return lengths, returns

    jax.block_until_ready(jax.jit(algorithm.replace(eval_callback=look).train)(jax.random.key(given.seed)))


if __name__ == "__main__":
    main()
