"""The settings of `jaxzero train --model learned`, as records. No jax here: `--help` is answered at once."""

import dataclasses
from typing import Literal

from jaxzero.cli.training.settings import Hosts

__all__ = ["FREE", "Config", "Preset"]

Preset = Literal["auto", "control", "image", "board", "tic_tac_toe", "2048", "2048_simulator", "pendulum"]


@dataclasses.dataclass(frozen=True)
class Network:
    kind: Literal["auto", "mlp", "planes", "lines"] = "auto"
    """mlp: the hidden state is a vector; planes: a board or image, with convolutions; lines: the same, with MLPs along
    rows and columns. auto: mlp or planes, by the observation."""
    embedding: int = 64
    """mlp: size of the hidden state."""
    width: int = 128
    """Width of hidden layers."""
    depth: int = 1
    """mlp: hidden layers in each of the three functions."""
    window: int = 0
    """mlp, for boards: side of the windows in the representation's first layer; 0: the board is flattened."""
    channels: int = 16
    """planes, lines: planes of the hidden state. mlp: channels per window."""
    blocks: int = 1
    """planes, lines: residual blocks in representation and in dynamics."""
    policy: Literal["gaussian", "factorised"] = "gaussian"
    """For continuous actions, per coordinate. gaussian: a normal distribution; factorised: a categorical one over some
    values."""
    policy_bins: int = 11
    """factorised: values per coordinate."""
    codes: int = 32
    """--model stochastic: number of chance outcomes (Antonoglou et al. 2022: 32)."""
    squash: bool = False
    """Apply symlog to observations, for numbers far from 1."""
    normalisation: Literal["layer", "min_max"] = "layer"
    """Normalisation of the hidden state: layer norm, or MuZero's scaling to 0 ... 1."""
    head: Literal["auto", "win_draw_loss", "bounded", "hl_gauss", "two_hot"] = "auto"
    """Output of values and rewards. For board games: win_draw_loss (three classes) or bounded (a number in -1 ... 1).
    For numbers of any size: two_hot or hl_gauss (a distribution over bins, on a transformed scale). auto: win_draw_loss
    for two-player games, else two_hot."""
    bins: int = 41
    """hl_gauss, two_hot: number of bins."""
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
    """Simulations per step, and per reanalysed state."""
    max_considered: int = 16
    """Actions that the Gumbel search considers at the root (no more than the actions or the simulations)."""
    range_floor: float = 0.01
    """Smallest range of values that the search rescales to 0 ... 1; smaller ones are noise (EfficientZero: 0.01)."""
    openings: int = 0
    """Each episode begins with a number of random actions, drawn uniformly from 0 to this."""
    random_rate: float = 0.0
    """Probability of a random action after the opening; returns are cut at such actions."""


@dataclasses.dataclass(frozen=True)
class Learn:
    batch_size: int = 256
    """Windows per minibatch."""
    reuse: float = 8.0
    """How often each step begins a sampled window, on average. Sets the number of minibatches."""
    unroll: int = 5
    """K: steps that the loss unrolls the model. No effect with --model simulator."""
    returns: int = 10
    """n: steps of the n-step returns."""
    trace: float = 1.0
    """Lambda of the returns: 1 for n-step returns, smaller for TD(lambda) over n steps."""
    reanalyse: float = 0.0
    """Share of each minibatch that is searched again, for fresh policies and bootstrap values."""
    priority: float = 0.0
    """Exponent of priorities |value - return|; 0: windows are sampled uniformly. MuZero: 1 on Atari, 0 on boards."""
    correction: float = 1.0
    """Exponent of the importance weights for priorities."""
    value_weight: float = 0.25
    """Weight of the value loss."""
    reward_weight: float = 1.0
    """Weight of the reward loss."""
    consistency: float = 0.0
    """Weight of the self-supervised consistency loss (EfficientZero: 2)."""
    reconstruction: float = 0.0
    """--model stochastic: weight of predicting observations, for rewards that tell little about chance."""
    code_entropy: float = 0.0
    """--model stochastic: weight of an entropy bonus on codes, so that the encoder does not commit early."""
    optimiser: Literal["adamw", "muon"] = "adamw"
    """muon: updates of kernels are nearly orthogonal matrices; its 0.01 corresponds to AdamW's 0.004."""
    learning_rate: float = 2e-3
    """Learning rate after the warm-up. It depends on the minibatches so far, not on time."""
    warmup: int = 100
    """Minibatches of linear warm-up."""
    hold: int = 3000
    """After this many minibatches, the learning rate falls as 1 / sqrt(minibatches)."""
    weight_decay: float = 1e-4
    """L2, decoupled from the gradient."""
    average_decay: float = 0.995
    """Decay of the moving average of the parameters, for acting, reanalysis and evaluation."""
    clip_norm: float = 5.0
    """Gradients are clipped to this norm."""
    capacity: int = 65_536
    """Steps that the replay holds, over all environments."""
    start: int = 2048
    """Steps to collect before learning begins."""
    parts: int = 8
    """Environments and replay are split into this many parts, shared by the devices: a multiple of their number."""


@dataclasses.dataclass(frozen=True)
class Budget:
    minutes: float = 5.0
    """Minutes of acting and learning. Compilation and the final evaluation do not count."""
    steps: int = 0
    """Stop after this many iterations (0: no limit)."""
    until: float | None = None
    """Stop when an evaluation during training reaches this mean return. Default: the return that counts as solved."""


@dataclasses.dataclass(frozen=True)
class Evaluate:
    episodes: int = 50
    """Greedy episodes of each evaluation during training."""
    final: int = 200
    """Greedy episodes at the end, different from those during training."""
    simulations: int = 16
    """Simulations per step of greedy episodes."""
    longest: int = 10_000
    """Steps after which an episode is cut off."""
    games: int = 100
    """Board games: games against each opponent at the end, half with each colour; 0: none."""
    rollouts: int = 100
    """Board games: UCT's simulations per move, each a random playout by the true rules."""
    position_simulations: tuple[int, ...] = (64,)
    """Connect Four and tic-tac-toe: simulations on exactly solved positions."""
    every: int | None = None
    """Iterations between evaluations during training; 0: none. Default: the preset's, else after each twelfth of the
    budget."""


@dataclasses.dataclass(frozen=True)
class Config:
    """A training run."""

    game: str = "cartpole"
    """cartpole, pendulum, 2048, gymnax:NAME, gymnasium:NAME, a two-player game of pgx, or your own as module:attribute
    (a jaxzero.environments.Environment or a jaxzero.games.Game)."""
    model: Literal["learned", "stochastic", "simulator"] = "learned"
    """Model of the search. learned: MuZero, which averages over chance; stochastic: Stochastic MuZero, which learns
    chance outcomes, too; simulator: the environment itself, as AlphaZero, without learned dynamics. (`--model rules`:
    AlphaZero for board games, and n-tuples for 2048.)"""
    preset: Preset = "auto"
    """Defaults of the other settings: control (a few numbers are observed), image (MinAtar), board (two-player games),
    tic_tac_toe, 2048, 2048_simulator, pendulum; auto: by the game's name and the model, and control for your own
    environments."""
    folder: str = ""
    """The run's folder. Default: runs/<the environment's id>-learned, or -simulator."""
    seed: int = 0
    """Random seed."""
    save_minutes: float = 3.0
    """Minutes between checkpoints."""
    network: Network = Network()
    acting: Acting = Acting()
    learn: Learn = Learn()
    budget: Budget = Budget()
    evaluate: Evaluate = Evaluate()
    hosts: Hosts = Hosts()


FREE = ("budget", "evaluate", "save_minutes", "folder", "hosts", "preset")  # may differ when a run is continued
