"""Presets: settings that were found for some environments, and which preset is the default for a game."""

import dataclasses

from jaxzero.cli.muzero.settings import Acting, Budget, Config, Evaluate, Learn, Network

__all__ = ["OF_ONE_GAME", "PRESETS", "preset_for"]

# CartPole chose the settings of control, tic-tac-toe those of boards. Those of images are first guesses, from short
# runs of MinAtar Breakout.
IMAGE = Config(
    network=Network(channels=16, blocks=1, bins=41, limit=10.0),
    acting=Acting(environments=64, steps=16, simulations=16, range_floor=0.5),
    learn=Learn(capacity=262_144, reuse=4.0, learning_rate=4e-3, start=8192),
    budget=Budget(minutes=60.0),
)
BOARD = Config(
    network=Network(channels=16, blocks=1),
    acting=Acting(environments=128, steps=16, simulations=16, openings=16, random_rate=0.2),
    learn=Learn(
        batch_size=128,
        capacity=131_072,
        returns=42,
        reuse=4.0,
        value_weight=1.0,
        optimiser="muon",
        learning_rate=1e-2,
        average_decay=0.998,
        start=16_384,
    ),
    budget=Budget(minutes=60.0),
)
# Returns of 2048 reach tens of thousands: a wide support, on which 300 means 58,700. Many games in lock-step are
# quicker on a CPU. Why lines: experiments/muzero/README.md. n and lambda are Stochastic MuZero's, of 2022.
SIMULATOR_2048 = dataclasses.replace(
    IMAGE,
    network=Network(kind="lines", embedding=128, width=256, bins=121, limit=300.0),
    acting=dataclasses.replace(IMAGE.acting, environments=256, steps=8),
    learn=dataclasses.replace(IMAGE.learn, capacity=524_288, reuse=2.0, trace=0.5, value_weight=1.0),
)
PRESETS = {
    "control": Config(
        acting=Acting(range_floor=0.5),
        learn=Learn(returns=50, learning_rate=3e-3, average_decay=0.998),
        evaluate=Evaluate(every=6),
    ),
    "image": IMAGE,
    # A model has to be learned first: many minibatches, of short unrolls. See
    # experiments/strength/games_of_chance.md.
    "2048": dataclasses.replace(
        SIMULATOR_2048,
        learn=dataclasses.replace(
            SIMULATOR_2048.learn,
            batch_size=128,
            reuse=4.0,
            unroll=2,
            trace=1.0,
            optimiser="muon",
            learning_rate=1e-2,
            reconstruction=3.0,
            code_entropy=0.1,
        ),
    ),
    "2048_simulator": SIMULATOR_2048,
    # Returns reach about -500, which is 21 on the scale of the support. First guesses.
    "pendulum": Config(
        network=Network(bins=61, limit=30.0),
        acting=Acting(simulations=24, max_considered=8, range_floor=1.0),
        learn=Learn(returns=10, reuse=4.0, learning_rate=2e-3, average_decay=0.998),
        budget=Budget(minutes=15.0),
        evaluate=Evaluate(simulations=24),
    ),
    "board": BOARD,
    "tic_tac_toe": dataclasses.replace(
        BOARD,
        acting=dataclasses.replace(BOARD.acting, openings=6),
        learn=dataclasses.replace(
            BOARD.learn, batch_size=256, returns=9, reuse=8.0, optimiser="adamw", learning_rate=4e-3
        ),
        budget=Budget(minutes=3.0),
    ),
}
OF_ONE_GAME = ("2048", "pendulum", "tic_tac_toe")  # games with a preset of their own


def preset_for(game: str, model: str = Config.model) -> str:
    """The preset that is likely to be right, judged by the names alone.

    >>> [preset_for(x) for x in ("cartpole", "gymnax:Breakout-MinAtar", "connect_four", "tic_tac_toe", "2048")]
    ['control', 'image', 'board', 'tic_tac_toe', '2048']
    >>> preset_for("2048", "simulator")
    '2048_simulator'
    """
    if game == "2048" and model == "simulator":
        return "2048_simulator"
    if game in OF_ONE_GAME:
        return game
    if game.endswith("-MinAtar") or game.startswith("minatar-"):
        return "image"
    return "control" if game == "cartpole" or ":" in game else "board"
