"""The settings of `jaxzero train`. No jax here: `--help` and a mistyped flag are answered at once."""

import dataclasses
from typing import Literal

__all__ = [
    "FREE",
    "GAME_INPUTS",
    "INPUTS",
    "MAPPED_SCALE",
    "TOGETHER",
    "VALUE_SCALE",
    "Config",
    "for_game",
    "with_value_weights",
]

Preset = Literal["auto", "laptop", "amx", "gpu", "pod"]
VALUE_SCALE = 0.5  # c_scale of the searches that judge networks, see `evaluation_search.to_win`
LEARNING_SCALE, MAPPED_SCALE = 1.0, 0.1  # c_scale of self-play: values as they are (the paper's), or mapped (mctx's)


@dataclasses.dataclass(frozen=True)
class Network:
    kind: Literal["mlp", "windows", "resnet"] = "windows"
    """mlp: fast on a CPU; windows: an MLP behind one convolution of small windows (without a board, only the MLP);
    resnet: AlphaZero's, for accelerators."""
    hidden: tuple[int, ...] = (256, 256)
    """mlp, windows: width of each hidden layer."""
    window: int = 4
    """windows: side of a window; at most that of the board."""
    channels: int = 64
    """windows: channels per window; resnet: channels of the tower."""
    blocks: int = 6
    """resnet: residual blocks."""
    stone_parity: bool = True
    """windows, resnet: the network also sees whether the number of stones is odd. Where each move adds a stone, this
    tells who moved first. Only for two-player games observed as two planes, taken for the stones."""
    canonical: bool = True
    """If the game has a canonical form (Hex does), show the second player's positions as the first player's, so that
    the network need not learn everything twice."""
    input_features: bool = True
    """If the game has input features, the network sees them with the board: in Connect Four squares that complete a
    line, in Hex distances from the edges."""


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
    """c_scale of the Gumbel search: weight of search values relative to the priors. Default: 1 for unscaled values, as
    in the paper; 0.1 for rescaled ones, as in mctx."""
    rescale_values: bool | None = None
    """True (--selfplay.rescale-values): the values of each node are rescaled to [0, 1], as in mctx. False
    (--selfplay.no-rescale-values): they are unscaled, so that nearly equal moves stay nearly equal; a win should pay 1.
    Default: False for two players without chance, True elsewhere."""
    max_opening_plies: int = 0
    """Each game begins with a number of random moves, drawn uniformly from 0 to this. Use it with
    --selfplay.random-plies 0: that schedule starts after them, and its first move is always random."""
    random_plies: int = 8
    """The probability of a random move falls from 1 to `random_rate` over these plies, so that openings differ."""
    random_rate: float = 0.02
    """Probability of a random move after `random_plies`."""
    trace: float = 0.9
    """Lambda of the value target: 1 uses the game's outcome; smaller values mix in search values."""
    bootstrap: Literal["mean", "greedy", "improved"] = "mean"
    """Search value of a position: the mean of all simulations, the value of the best move (greedy), or the expectation
    under the improved policy. Which is best depends on the game: see experiments/strength/what_was_tried/."""
    softness: float = 0.0
    """The share of the position's own search value in its value target, mixed in after lambda; 0: none."""
    tolerance: float | None = None
    """If the search values the played move below the best one by d, lambda is multiplied by exp(-d / tolerance): what
    follows says less about the position before. None: no reduction."""
    window: int = 64
    """Plies that wait for the end of their game; longer games bootstrap from the root value."""
    prove: bool = True
    """The search proves wins, draws and losses. A proven value is the target, whatever is played afterwards."""
    stop_proven: bool = False
    """End a game when the value of its position is proven."""
    dtype: Literal["bfloat16"] | None = None
    """The network's arithmetic in self-play. bfloat16 is for accelerators, and for CPUs with bfloat16 units. None:
    float32."""


@dataclasses.dataclass(frozen=True)
class Learn:
    batch_size: int = 1024
    """Rows per minibatch."""
    reuse: float = 4.0
    """How often each position is sampled, on average. Sets the number of minibatches."""
    policy_temperature: float = 1.0
    """Temperature of the policy targets; above 1, priors stay softer than the search's policies."""
    value_loss: Literal["squared", "score"] = "squared"
    """squared: (z - v)^2, as in AlphaZero; score: cross-entropy of the expected score, which also learns from confident
    mistakes."""
    value_weight: float = 1.0
    """Weight of the value loss."""
    optimiser: Literal["adamw", "muon"] = "adamw"
    """muon: updates of kernels are nearly orthogonal matrices; its 0.04 corresponds to AdamW's 0.008."""
    learning_rate: float = 8e-3
    """Learning rate after the warm-up. It depends on the minibatches so far, not on time."""
    warmup: int = 200
    """Minibatches of linear warm-up."""
    hold: int = 3000
    """After this many minibatches, the learning rate falls as 1 / sqrt(minibatches)."""
    weight_decay: float = 1e-3
    """L2, decoupled (AdamW)."""
    average_decay: float = 0.9999
    """Decay of the moving average of the parameters, which is evaluated. It starts lower: until 90,000 minibatches the
    average covers about the last ninth of them."""
    playing_decay: float | None = None
    """Decay of a shorter average for self-play, so that values learned late in a game soon reach its opening. None:
    self-play uses the average above."""
    capacity: int = 400_000
    """Rows that the replay buffer holds."""
    newest: float = 0.6
    """Sample from this newest share of all positions so far (the early ones are the worst)."""
    start: int = 10_000
    """Positions to collect before learning begins."""
    dtype: Literal["bfloat16"] | None = None
    """Arithmetic of the network's layers in learning. bfloat16 is for CPUs with bfloat16 units; sums and parameters
    stay float32. None: float32."""
    parts: int = 8
    """Games and replay are split into this many parts, shared by the devices: a multiple of their number."""


@dataclasses.dataclass(frozen=True)
class Budget:
    minutes: float = 13.0
    """Minutes of self-play and learning. Compilation and the final evaluation do not count."""
    steps: int = 0
    """Stop after this many iterations (0: no limit)."""


@dataclasses.dataclass(frozen=True)
class Evaluate:
    games: int = 100
    """Games against each opponent, half with each colour, after two random moves; 0: none."""
    simulations: int | None = None
    """Our simulations per move. Default: 200; 16 in games that list their chance outcomes, like backgammon."""
    rollouts: int | None = None
    """UCT's simulations per move, each a random playout. Default: 1,000; 100 with more than 64 actions, as in Go; 4 in
    games that list their chance outcomes, which are long."""
    position_simulations: tuple[int, ...] = (64, 600)
    """Simulations on exactly solved positions."""
    every: int | None = None
    """Iterations between evaluations during training: mistakes, and a match against the network of the previous one; 0:
    none. Default: one after each twelfth of the budget."""


@dataclasses.dataclass(frozen=True)
class Hosts:
    coordinator: str = ""
    """Several hosts: "detect" under Slurm, Kubernetes, Open MPI and on Cloud TPU, else host:port of process 0."""
    processes: int = 0
    """Number of processes, one per host; with host:port."""
    process: int = -1
    """Index of this process, from 0; with host:port."""


@dataclasses.dataclass(frozen=True)
class Config:
    """A training run."""

    game: str = "connect_four"
    """A game of pgx, go (any size), hex_7x7 (or another size), or your own as module:attribute (a jaxzero.games.Game).
    For cartpole, 2048, gymnax:NAME and gymnasium:NAME see --model learned --help."""
    size: int = 9
    """go: board size."""
    komi: float = 7.0
    """go: white's points for moving second."""
    model: Literal["rules", "learned"] = "rules"
    """rules: searches use the rules of the game, as AlphaZero. learned: they use a learned model, as MuZero. Settings
    of learned, stochastic (learned chance) and simulator (one player): --model learned --help."""
    preset: Preset = "auto"
    """Defaults of the other settings: laptop (two cores), amx (two cores with bfloat16 matrix units, as in Intel's
    Xeons since 2023), gpu (one or a few) or pod (many); auto: by the hardware. For Connect Four, laptop and amx change
    selfplay.bootstrap, selfplay.tolerance and learn.playing_decay, amx also network.hidden. For Go and Othello, all set
    selfplay.trace 1, for Go also selfplay.window 128."""
    folder: str = ""
    """The run's folder. Default: runs/<the game's id>."""
    weights: str = ""
    """Initial weights: a weights file, a run's folder, or `trained` for the network that comes with jaxzero. They
    determine the network, so leave --network.* out; the run keeps a copy. Default: an untrained network."""
    seed: int = 0
    """Random seed."""
    save_minutes: float = 3.0
    """Minutes between checkpoints."""
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


GAME_INPUTS = "canonical", "input_features"  # the same names in the settings, in `Game`, and in `nets.Network`
INPUTS = "stone_parity", *GAME_INPUTS  # settings of the network that only some games allow


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
