"""The settings of `jaxzero train`. No jax here: `--help` and a mistyped flag are answered at once."""

import dataclasses
from typing import Literal

__all__ = [
    "FREE",
    "GAME_NAMES",
    "INPUTS",
    "MAPPED_SCALE",
    "TOGETHER",
    "VALUE_SCALE",
    "Config",
    "for_game",
    "with_value_weights",
]

Preset = Literal["auto", "laptop", "amx", "gpu", "pod"]
VALUE_SCALE = 0.5  # c_scale of the searches that judge networks, see `evaluation.to_win`
LEARNING_SCALE, MAPPED_SCALE = 1.0, 0.1  # c_scale of self-play: values as they are (the paper's), or mapped (mctx's)


@dataclasses.dataclass(frozen=True)
class Network:
    kind: Literal["mlp", "windows", "resnet"] = "windows"
    """mlp: fast on a CPU; windows: the same behind a layer of small windows, where the observation is a board; resnet:
    AlphaZero's, for accelerators."""
    hidden: tuple[int, ...] = (256, 256)
    """mlp, windows: width of each hidden layer."""
    window: int = 4
    """windows: side of a window; no more than a side of the board."""
    channels: int = 64
    """windows: what is seen in each; resnet: width of the tower."""
    blocks: int = 6
    """resnet: residual blocks."""
    stone_parity: bool = True
    """windows, resnet: where the observations of a game of two are two planes, those are taken for stones, and the
    network is also told whether their number is odd. Where each move adds a stone, that tells who moved first."""
    canonical: bool = True
    """Where a game names the form (Hex does), the second player's positions are shown as the first player's, so that a
    network need not learn everything twice."""
    input_features: bool = True
    """Where a game names some, the network sees them beside the board: in Connect Four squares that complete a line, in
    Hex distances from the edges."""


@dataclasses.dataclass(frozen=True)
class SelfPlay:
    games: int = 256
    """Games in lock-step."""
    plies: int = 8
    """Moves in each game per iteration."""
    simulations: int = 16
    """Simulations per move."""
    max_considered: int = 16
    """Actions that the Gumbel search considers at the root (no more than the game has)."""
    value_scale: float | None = None
    """c_scale of the Gumbel search: how much searched values weigh beside the priors. Default: 1 for values as they
    are, as in the paper, 0.1 for mapped ones, as in mctx."""
    rescale_values: bool | None = None
    """True (--selfplay.rescale-values): the values of a node are mapped to [0, 1] first, as mctx does. False
    (--selfplay.no-rescale-values): they weigh as they are, so that of moves that are about equally good none is
    preferred; a win should pay 1. Default: False for two players without chance, True elsewhere."""
    max_opening_plies: int = 0
    """Each game begins with a number of random moves, drawn uniformly from 0 to this. Use it with
    --selfplay.random-plies 0: that schedule starts after them, and its first move is always random."""
    random_plies: int = 8
    """The chance of a random move falls from 1 to `random_rate` over these plies, so that openings differ."""
    random_rate: float = 0.02
    """Chance of a random move later on."""
    trace: float = 0.9
    """Lambda of the value target: 1 for the game's outcome; below, it leans on the searched values."""
    bootstrap: Literal["mean", "greedy", "improved"] = "mean"
    """What a search says of a position: the mean of all its simulations, the value of its best move, or what its
    improved policy expects. Which is best depends on the game: see experiments/strength/what_was_tried/."""
    tolerance: float | None = None
    """Where a move was played that the search thinks worse than the best one by d, lambda falls by exp(-d / tolerance),
    for what follows says less about the position before. None: not at all."""
    window: int = 64
    """Plies that wait for the end of their game; longer games are bootstrapped from the root value."""
    prove: bool = True
    """The search proves wins, draws and losses; what is proven is the target, whatever was played afterwards."""
    stop_proven: bool = False
    """A game ends when the value of its position is proven."""
    dtype: Literal["bfloat16"] | None = None
    """The network's arithmetic while it plays, for accelerators and processors with units for bfloat16. None:
    float32."""


@dataclasses.dataclass(frozen=True)
class Learn:
    batch_size: int = 1024
    """Rows per minibatch."""
    reuse: float = 4.0
    """How often a position is learned from, on average: minibatches follow from it."""
    policy_temperature: float = 1.0
    """Of the policies that are learned; above 1 priors stay softer than the search's policies."""
    value_loss: Literal["squared", "score"] = "squared"
    """squared: (z - v)^2, AlphaZero's; score: cross-entropy of the expected score, which learns from what is sure and
    wrong."""
    value_weight: float = 1.0
    """Of the value loss."""
    optimiser: Literal["adamw", "muon"] = "adamw"
    """muon: steps of kernels are nearly orthogonal matrices; 0.04 is for it what 0.008 is for AdamW."""
    learning_rate: float = 8e-3
    """After the warm-up: a function of the minibatches so far, never of the time."""
    warmup: int = 200
    """Minibatches of linear warm-up."""
    hold: int = 3000
    """After so many minibatches the learning rate falls, as one over the root of their number."""
    weight_decay: float = 1e-3
    """L2, decoupled (AdamW)."""
    average_decay: float = 0.9999
    """Of the moving average of the parameters, which is evaluated. It begins lower: until 90,000 minibatches the
    average is over about the last ninth of them."""
    playing_decay: float | None = None
    """Of a shorter average, which plays, so that values that were learned late in a game soon reach its opening. None:
    what is evaluated plays, too."""
    capacity: int = 400_000
    """Rows that the replay buffer holds."""
    newest: float = 0.6
    """Sample from this newest share of all positions so far (the early ones are the worst)."""
    start: int = 10_000
    """Positions to have before learning begins."""
    dtype: Literal["bfloat16"] | None = None
    """The arithmetic of the network's layers while it learns, for processors with units for bfloat16; sums and
    parameters stay float32. None: float32."""
    parts: int = 8
    """Games and replay are kept in so many parts, which the devices share out: a multiple of their number."""


@dataclasses.dataclass(frozen=True)
class Budget:
    minutes: float = 13.0
    """Wall-clock for self-play and learning. Compiling is not counted, nor the evaluation at the end."""
    steps: int = 0
    """Stop after this many iterations (0: no limit)."""


@dataclasses.dataclass(frozen=True)
class Evaluate:
    games: int = 100
    """Against each opponent, half of them with each colour, from openings of two random moves; 0: none."""
    simulations: int | None = None
    """Simulations per move of ours. Default: 200; 16 where the outcomes of chance are listed, as in backgammon."""
    rollouts: int | None = None
    """Simulations per move of UCT, a random playout each. Default: 1,000; 100 with more than 64 actions, as in Go; 4
    where the outcomes of chance are listed, for these games are long."""
    position_simulations: tuple[int, ...] = (64, 600)
    """Simulations on the exact positions."""
    every: int | None = None
    """Iterations between two looks at how it goes: mistakes, a match against the network of the last look; 0: none.
    Default: a look after each twelfth of the budget of minutes."""


@dataclasses.dataclass(frozen=True)
class Hosts:
    coordinator: str = ""
    """Several hosts: "detect" under Slurm, Kubernetes, Open MPI and on Cloud TPU, else host:port of process 0."""
    processes: int = 0
    """How many processes there are, one per host; with host:port."""
    process: int = -1
    """Which of them this is, from 0; with host:port."""


@dataclasses.dataclass(frozen=True)
class Config:
    """A training run."""

    game: str = "connect_four"
    """One that pgx knows, go (of any size), or your own as module:attribute (a jaxzero.games.Game). cartpole, 2048,
    gymnax:NAME and gymnasium:NAME are learned otherwise: see --model learned --help."""
    size: int = 9
    """go: points on a side."""
    komi: float = 7.0
    """go: white's points for moving second."""
    model: Literal["rules", "learned"] = "rules"
    """What searches look ahead with: the rules of the game, or a model that is learned, too, as MuZero's. That has
    settings of its own, as have stochastic (learned chances) and simulator (one player): --model learned --help."""
    preset: Preset = "auto"
    """Where the other defaults come from: laptop (two cores), amx (two cores with matrix units for bfloat16, which
    Intel's Xeons have since 2023), gpu (one or a few) or pod (many); auto: by looks. laptop and amx have settings of
    their own for Connect Four: selfplay.bootstrap, selfplay.tolerance and learn.playing_decay, amx network.hidden, too;
    all have selfplay.trace 1 for Go and Othello, and for Go selfplay.window 128."""
    folder: str = ""
    """Where the run lives. Default: runs/<the game's id>."""
    weights: str = ""
    """Begin with what another run has learned: a file of weights or a run's folder, or `trained` for the network that
    comes with jaxzero. The network is then theirs, so leave --network.* out; the run keeps a copy. Default: an
    untrained network."""
    seed: int = 0
    """Everything random follows from it."""
    save_minutes: float = 3.0
    """Time between checkpoints."""
    network: Network = Network()
    selfplay: SelfPlay = SelfPlay()
    learn: Learn = Learn()
    budget: Budget = Budget()
    evaluate: Evaluate = Evaluate()
    hosts: Hosts = Hosts()


MANY_ACTIONS = 64  # games with more actions have long playouts
TOGETHER = ("selfplay.rescale_values", "selfplay.value_scale")  # the default of one depends on the other
FREE = ("budget", "evaluate", "save_minutes", "folder", "hosts", "preset")  # may differ when a run is continued


def with_value_weights(selfplay: SelfPlay, rescale: bool) -> SelfPlay:
    """The settings of self-play with `rescale_values` and `value_scale` filled in.

    Danihelka et al. 2022, "Policy improvement by planning with Gumbel": c_scale = 1, values as they are. mctx:
    c_scale = 0.1, the values of each node mapped to [0, 1].

    Args:
        selfplay: the settings.
        rescale: whether values are mapped where the settings do not say.

    >>> filled = [with_value_weights(SelfPlay(), rescale) for rescale in (False, True)]
    >>> [(own.rescale_values, own.value_scale) for own in filled]
    [(False, 1.0), (True, 0.1)]
    """
    rescale = rescale if selfplay.rescale_values is None else selfplay.rescale_values
    usual = MAPPED_SCALE if rescale else LEARNING_SCALE
    scale = usual if selfplay.value_scale is None else selfplay.value_scale
    return dataclasses.replace(selfplay, rescale_values=rescale, value_scale=scale)


GAME_NAMES = "canonical", "input_features"  # the same names in the settings, in `Game`, and in `nets.Network`
INPUTS = "stone_parity", *GAME_NAMES  # settings of the network that only some games allow


def for_game(config: Config, num_actions: int, *, chance: bool, rescale: bool, inputs: set[str]) -> Config:
    """The settings with the game's defaults filled in, and inputs that the network cannot have switched off.

    Args:
        config: the settings.
        num_actions: of the game.
        chance: whether it lists outcomes of chance.
        rescale: whether self-play maps values to [0, 1], see `with_value_weights`.
        inputs: which of `INPUTS` its networks can have: the parity of stones, a canonical form, input features.

    >>> filled = [
    ...     for_game(Config(), n, chance=False, rescale=False, inputs={"stone_parity"} if n < 50 else set())
    ...     for n in (7, 82)
    ... ]
    >>> [(one.evaluate.rollouts, one.network.stone_parity) for one in filled]
    [(1000, True), (100, False)]
    """
    asked = config.evaluate
    many = 4 if chance else 1000 if num_actions <= MANY_ACTIONS else 100
    simulations = (16 if chance else 200) if asked.simulations is None else asked.simulations
    rollouts = many if asked.rollouts is None else asked.rollouts
    # Saved as it is used, so that runs of other games, from before this setting existed, go on without a flag.
    can = {name: getattr(config.network, name) and name in inputs for name in INPUTS}
    network = dataclasses.replace(config.network, **can)
    evaluate = dataclasses.replace(asked, simulations=simulations, rollouts=rollouts)
    selfplay = with_value_weights(config.selfplay, rescale)
    return dataclasses.replace(config, network=network, selfplay=selfplay, evaluate=evaluate)
