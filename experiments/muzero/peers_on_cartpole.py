r"""The time that other libraries take to learn CartPole-v1 without its rules: mujax and muax, run as their pages say.

    python -m venv peers && peers/bin/python -m pip install mujax muax          # an environment of their own
    python experiments/muzero/peers_on_cartpole.py --python peers/bin/python --limit 300 --save

Each seed is a process of its own. Seconds count from its start until a mean of ten episodes first reached 475, or until
the limit. That is easier than the goal of `cartpole_seeds.py`, 495 over fifty episodes.
mujax: `mujax --env CartPole-v1 --size S gmz --num-simulations 16`; the last ten episodes of its evaluator, which takes
new parameters before each. muax: the training script of its page, with 50 simulations; the tests of ten episodes that
it runs itself, noise at the root included.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

RESULTS = pathlib.Path(__file__).parent.parent / "results" / "muzero_peers_on_cartpole.json"
WANTED, EPISODES = 475.0, 10


def mujax(seed: int, tell) -> None:
    """Trains, and prints steps and mean return."""
    from mujax import cli, loggers

    last, steps = [], [0]

    def write(self, step, scalars):
        steps[0] = int(scalars.get("actor/actor_steps", steps[0]))
        found = [x for name, x in scalars.items() if name.startswith("evaluator/") and name.endswith("return")]
        if found:
            last.append(float(found[0]))
            if len(last) >= EPISODES:
                tell(steps[0], sum(last[-EPISODES:]) / EPISODES)

    loggers.ConsoleWriter.write = write
    cli.main(["--env", "CartPole-v1", "--size", "S", "--seed", str(seed), "gmz", "--num-simulations", "16"])


def muax(seed: int, tell) -> None:
    """The same."""
    import gymnasium
    import muax
    from muax import nn
    from muax import train as training

    test, steps = training.test, [0]

    def told(*given, **rest):
        mean = test(*given, **rest)
        tell(steps[0], float(mean))
        return mean

    class Counting(gymnasium.Wrapper):
        def step(self, action):
            steps[0] += 1
            return super().step(action)

    training.test = told
    support, embedding, actions, discount = 10, 8, 2, 0.99
    full = 2 * support + 1
    model = muax.MuZero(
        nn._init_representation_func(nn.Representation, embedding),
        nn._init_prediction_func(nn.Prediction, actions, full),
        nn._init_dynamic_func(nn.Dynamic, embedding, actions, full),
        policy="muzero",
        discount=discount,
        optimizer=muax.model.optimizer(
            init_value=0.02, peak_value=0.02, end_value=0.002, warmup_steps=5000, transition_steps=5000
        ),
        support_size=support,
    )
    with tempfile.TemporaryDirectory() as folder:
        muax.fit(
            model,
            env=Counting(gymnasium.make("CartPole-v1", render_mode="rgb_array")),
            test_env=gymnasium.make("CartPole-v1", render_mode="rgb_array"),
            name="CartPole-v1",
            max_episodes=1000,
            max_training_steps=10000,
            tracer=muax.PNStep(10, discount, 0.5),
            buffer=muax.TrajectoryReplayBuffer(500),
            k_steps=10,
            sample_per_trajectory=1,
            num_trajectory=32,
            tensorboard_dir=folder,
            model_save_path=folder,
            save_name="params",
            random_seed=seed,
        )


PEERS = {"mujax": mujax, "muax": muax}
SAID_VERSIONS = (*PEERS, "jax", "jaxlib", "mctx", "numpy", "flax", "dm-haiku", "optax", "gymnasium")


def one_seed(python: str, name: str, seed: int, limit: float) -> dict:
    """Runs a process until it is good enough or its time is over."""
    began, told = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        errors = pathlib.Path(folder) / "errors"
        program = [os.path.abspath(python), "-u", str(pathlib.Path(__file__).resolve())]
        command = [*program, "--one", name, "--seed", str(seed)]
        with (
            errors.open("w") as said,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True, cwd=folder) as process,
        ):
            timer = threading.Timer(limit, process.kill)
            timer.start()
            for line in process.stdout:
                if line.startswith("{"):
                    told.append(json.loads(line) | {"seconds": round(time.monotonic() - began, 1)})
                    if told[-1]["mean"] >= WANTED:
                        break
            seconds, reached = time.monotonic() - began, bool(told) and told[-1]["mean"] >= WANTED
            if reached:
                process.kill()
            timer.cancel()
        if process.returncode > 0 and not reached:
            sys.exit(f"{name} failed after {seconds:.0f} s:\n{errors.read_text()[-2000:]}")
    best = max(told, key=lambda row: row["mean"], default=None)
    last = told[-1] if told else None
    return {
        "seed": seed,
        "reached": reached,
        "ended": process.returncode == 0,
        "seconds": round(seconds, 1),
        "last": last,
        "best": best,
    }


def versions_of(python: str) -> dict[str, str]:
    """The versions in another environment that matter.

    Raises:
        ValueError: it has no such Python, no pip, or not all peers.
    """
    try:
        listed = subprocess.check_output([python, "-m", "pip", "list", "--format", "json"], text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ValueError(f"{python} -m pip list: {error}. Give the Python of an environment with pip") from error
    found = {row["name"].lower(): row["version"] for row in json.loads(listed)}
    for name in PEERS:
        if name not in found:
            raise ValueError(f"{name} is not installed for {python}: {python} -m pip install {' '.join(PEERS)}")
    return {name: found[name] for name in SAID_VERSIONS if name in found}


def main() -> None:
    """Measures both; called with --one, it is one of the processes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", help="of the environment where both are installed")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each seed")
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--save", action="store_true", help="write a new file beside those of the other experiments")
    parser.add_argument("--one", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        PEERS[given.one](given.seed, lambda steps, mean: print(json.dumps({"steps": steps, "mean": mean}), flush=True))
        return
    if not given.python:
        parser.error("--python: give the Python of an environment with mujax and muax")
    try:
        versions = versions_of(given.python)
    except ValueError as error:
        parser.error(f"--python: {error}")
    measured(given, versions)


def measured(given: argparse.Namespace, versions: dict[str, str]) -> None:
    """Runs the seeds, one after the other; with --save each is written when it ends."""
    # Not above: the processes of the peers run in an environment without jaxzero.
    from jaxzero.atomic_files import free_name
    from jaxzero.cli.circumstances import circumstances
    from jaxzero.runs.run_folder import write_whole

    file, found = None, circumstances() | {"versions": versions, "limit": given.limit}
    for name in PEERS:
        found[name] = {"version": versions[name], "seeds": []}
        for seed in range(given.seeds):
            found[name]["seeds"].append(one_seed(given.python, name, seed, given.limit))
            print(name, found[name]["seeds"][-1], flush=True)
            if given.save:
                file = file or free_name(RESULTS)
                write_whole(file, json.dumps(found, indent=1) + "\n")
    if given.save:
        print(f"Written to {file}")


if __name__ == "__main__":
    main()
