"""The settings of `jaxzero train --model learned`, as records. No jax here: `--help` is answered at once."""

import dataclasses
from typing import Literal

from jaxzero.cli.training.settings import Hosts

__all__ = ["FREE", "Config", "Preset"]

Preset = Literal["auto", "control", "image", "board", "tic_tac_toe", "2048", "2048_simulator", "pendulum"]


@dataclasses.dataclass(frozen=True)
class Network:
    kind: Literal["auto", "mlp", "planes", "lines"] = "auto"
    """mlp: a vector as hidden state; planes: a board or image as hidden state, with convolutions; lines: likewise, with
    perceptrons along rows and columns. auto: mlp or planes, by the observation."""
    embedding: int = 64
    """mlp: numbers in the hidden state."""
    width: int = 128
    """Of hidden layers."""
    depth: int = 1
    """mlp: hidden layers in each of the three functions."""
    window: int = 0
    """mlp, of boards: side of the windows that the representation looks at first; 0: it sees the board flat."""
    channels: int = 16
    """planes, lines: planes of the hidden state. mlp: what is seen in each window."""
    blocks: int = 1
    """planes, lines: residual blocks in representation and dynamics each."""
    policy: Literal["gaussian", "factorised"] = "gaussian"
    """Of continuous actions: a normal distribution for each coordinate, or a categorical one over some values."""
    policy_bins: int = 11
    """factorised: values of each coordinate."""
    codes: int = 32
    """--model stochastic: outcomes that chance can have (Antonoglou et al. 2022: 32)."""
    squash: bool = False
    """Whether observations go through symlog first, for numbers that are far from 1."""
    normalisation: Literal["layer", "min_max"] = "layer"
    """Of the hidden state: layer norm, or MuZero's scaling to 0 ... 1."""
    head: Literal["auto", "win_draw_loss", "bounded", "hl_gauss", "two_hot"] = "auto"
    """How values and rewards are said. win_draw_loss: three classes, and bounded: a number in -1 ... 1, both for board
    games; two_hot and hl_gauss: a distribution over bins, on a transformed scale, for numbers of any size. auto:
    win_draw_loss for games of two, else two_hot."""
    bins: int = 41
    """hl_gauss, two_hot: how many."""
    limit: float = 20.0
    """hl_gauss, two_hot: the support reaches from -limit to limit, on the transformed scale of MuZero:
    sign(x) (sqrt(|x| + 1) - 1) + 0.001 x, where 20 means 422."""


@dataclasses.dataclass(frozen=True)
class Acting:
    environments: int = 32
    """Environments in lock-step."""
    steps: int = 16
    """Steps in each environment per iteration."""
    simulations: int = 16
    """Simulations per step, and per state that is searched anew."""
    max_considered: int = 16
    """Actions that the Gumbel search considers at the root (no more than there are, nor than simulations)."""
    range_floor: float = 0.01
    """The least range of values that the search stretches to 0 ... 1: lower ones are noise (EfficientZero: 0.01)."""
    openings: int = 0
    """Episodes begin after 0 to so many random actions, drawn anew for each episode."""
    random_rate: float = 0.0
    """Chance of a random action later on; returns are not carried over such actions."""


@dataclasses.dataclass(frozen=True)
class Learn:
    batch_size: int = 256
    """Windows per minibatch."""
    reuse: float = 8.0
    """How often a step is learned from as the beginning of a window, on average: minibatches follow from it."""
    unroll: int = 5
    """K: steps that the model is unrolled in the loss; --model simulator: none, whatever stands here."""
    returns: int = 10
    """n: steps of the returns."""
    trace: float = 1.0
    """Lambda of the returns: 1 for n-step returns, below for TD(lambda) over n steps."""
    reanalyse: float = 0.0
    """Share of each minibatch that is searched anew, for fresh policies and fresh values to bootstrap from."""
    priority: float = 0.0
    """Exponent of priorities |value - return|; 0: windows are drawn uniformly. MuZero: 1 on Atari, 0 on boards."""
    correction: float = 1.0
    """Exponent of the weights that make up for priorities."""
    value_weight: float = 0.25
    """Of the value loss."""
    reward_weight: float = 1.0
    """Of the reward loss."""
    consistency: float = 0.0
    """Weight of the self-supervised consistency loss (EfficientZero: 2)."""
    reconstruction: float = 0.0
    """--model stochastic: weight of the observations that the model says, where rewards hardly tell what chance did."""
    code_entropy: float = 0.0
    """--model stochastic: weight of the entropy of the codes, so that the encoder is not sure too soon."""
    optimiser: Literal["adamw", "muon"] = "adamw"
    """muon: steps of kernels are nearly orthogonal matrices; 0.01 is for it what 0.004 is for AdamW."""
    learning_rate: float = 2e-3
    """After the warm-up: a function of the minibatches so far, never of the time."""
    warmup: int = 100
    """Minibatches of linear warm-up."""
    hold: int = 3000
    """After so many minibatches the learning rate falls, as one over the root of their number."""
    weight_decay: float = 1e-4
    """L2, decoupled from the gradient."""
    average_decay: float = 0.995
    """Of the moving average of the parameters, which acts, searches anew and is evaluated."""
    clip_norm: float = 5.0
    """Gradients longer than this are shortened to it."""
    capacity: int = 65_536
    """Steps that the replay holds, over all environments."""
    start: int = 2048
    """Steps to have before learning begins."""
    parts: int = 8
    """Environments and replay are kept in so many parts, which the devices share out: a multiple of their number."""


@dataclasses.dataclass(frozen=True)
class Budget:
    minutes: float = 5.0
    """Wall-clock for acting and learning. Compiling is not counted, nor the evaluation at the end."""
    steps: int = 0
    """Stop after this many iterations (0: no limit)."""
    until: float | None = None
    """Stop when the mean return of a look reaches this. Default: the return at which the environment is solved."""


@dataclasses.dataclass(frozen=True)
class Evaluate:
    episodes: int = 50
    """Greedy episodes of a look at how good it has become."""
    final: int = 200
    """Greedy episodes at the end, others than those of the looks."""
    simulations: int = 16
    """Simulations per step of greedy episodes."""
    longest: int = 10_000
    """Steps after which an episode is left, where the environment has no limit of its own."""
    games: int = 100
    """Board games: games against each opponent at the end, half of them with each colour; 0: none."""
    rollouts: int = 100
    """Board games: simulations per move of UCT, a random playout each, by the true rules."""
    position_simulations: tuple[int, ...] = (64,)
    """Connect Four and tic-tac-toe: simulations on positions whose exact values are known."""
    every: int | None = None
    """Iterations between two looks; 0: none. Without a preset's: a look after each twelfth of the budget of minutes."""


@dataclasses.dataclass(frozen=True)
class Config:
    """A training run."""

    game: str = "cartpole"
    """cartpole, pendulum, 2048, gymnax:NAME, gymnasium:NAME, a game of two that pgx knows, or your own as
    module:attribute (a jaxzero.environments.Environment or a jaxzero.games.Game)."""
    model: Literal["learned", "stochastic", "simulator"] = "learned"
    """What searches look ahead with. learned: MuZero, which averages over chance; stochastic: Stochastic MuZero, which
    learns its outcomes, too; simulator: the environment itself, as AlphaZero, and no dynamics are learned. (`--model
    rules`: AlphaZero for board games, and n-tuples for 2048.)"""
    preset: Preset = "auto"
    """Where the other defaults come from: control (a few numbers are observed), image (MinAtar), board (games of two),
    tic_tac_toe, 2048, 2048_simulator, pendulum; auto: by the game's name and the model, and control for environments of
    your own."""
    folder: str = ""
    """Where the run lives. Default: runs/<the environment's id>-learned, or -simulator."""
    seed: int = 0
    """Everything random follows from it."""
    save_minutes: float = 3.0
    """Time between checkpoints."""
    network: Network = Network()
    acting: Acting = Acting()
    learn: Learn = Learn()
    budget: Budget = Budget()
    evaluate: Evaluate = Evaluate()
    hosts: Hosts = Hosts()


FREE = ("budget", "evaluate", "save_minutes", "folder", "hosts", "preset")  # may differ when a run is continued
