"""Gymnasium's environments in a batch, for a loop on the host."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from jaxzero.extras import require

__all__ = ["HostEnvironment", "HostStep", "from_gymnasium"]


class HostStep(NamedTuple):
    """The results of one step of a batch, in NumPy arrays.

    Attributes:
        observations: the current ones: where an episode ended, the first observation of the next one.
        rewards: paid for the actions.
        terminated: the episode ended by its rules.
        truncated: the episode was cut by a limit, and not terminated in the same step.
        final_observations: what the actions led to: where an episode ended, its last observation, from which a
            truncated one is bootstrapped; elsewhere the same as `observations`.
    """

    observations: Shaped[np.ndarray, "B ..."]
    rewards: Float[np.ndarray, "B"]
    terminated: Bool[np.ndarray, "B"]
    truncated: Bool[np.ndarray, "B"]
    final_observations: Shaped[np.ndarray, "B ..."]


class HostEnvironment(NamedTuple):
    """A batch of environments that live on the host and keep their own states: nothing here can be traced.

    Attributes:
        id: the environment's name.
        num_envs: B, how many there are.
        num_actions: A, a Python int.
        observation_shape: shape of one observation.
        discount: γ per step.
        longest: steps in the longest episode; None: unknown.
        solved: the mean return at which it counts as solved; None: unknown.
        reset: `() -> observations [B, ...]`: begins anew everywhere. The first call seeds the environments, a
            later one goes on with the random numbers of the one before.
        step: `actions [B] -> HostStep`. Where an episode ends the next one begins in the same call.
        close: `() -> None`: ends what the environments hold, such as windows.
    """

    id: str
    num_envs: int
    num_actions: int
    observation_shape: tuple[int, ...]
    discount: float
    longest: int | None
    solved: float | None
    reset: Callable[[], Shaped[np.ndarray, "B ..."]]
    step: Callable[[Int[Any, "B"]], HostStep]
    close: Callable[[], None]
    num_players: int = 1
    legal: None = None
    symmetries: tuple = ()
    bounds: None = None


def from_gymnasium(name: str, num_envs: int, seed: int = 0, discount: float = 0.997, **options: Any) -> HostEnvironment:
    """A batch of one of Gymnasium's environments (1.1 or newer), stepped one after the other in this process.

    Gymnasium's vector environments begin a new episode in one of three ways. By default, the step after the end resets
    the environment, ignores its action and has no reward. Here automatic resets are switched off (`DISABLED`), and
    environments whose episodes ended are reset by a mask after their last observations were copied. So no observation
    is lost, and every step belongs to an episode.

    Args:
        name: Gymnasium's, e.g. "CartPole-v1"; "module:Name-v0" imports the module that registers it first.
        num_envs: B.
        seed: the seeds of all environments follow from it.
        discount: γ per step.
        options: passed on to the environment.

    Raises:
        ModuleNotFoundError: gymnasium, or what this environment needs beside it, is not installed.
        ValueError: Gymnasium knows no such environment; its actions are not discrete from 0 on; its observations are no
            array (`Box`).

    >>> environment = from_gymnasium("CartPole-v1", num_envs=3)
    >>> environment.reset().shape, environment.step(np.array([0, 1, 1])).rewards.tolist(), environment.solved
    ((3, 4), [1.0, 1.0, 1.0], 475.0)
    """
    if num_envs < 1:
        raise ValueError(f"from_gymnasium({name!r}, num_envs={num_envs}): give 1 or more.")
    envs = _make(name, num_envs, options)
    num_actions, observation_shape = _spaces(name, envs)
    # Unrelated numbers for neighbouring seeds: with seed + i, runs with neighbouring seeds would share environments.
    seeds = iter([np.random.SeedSequence(seed).generate_state(num_envs).tolist()])

    def reset() -> Shaped[np.ndarray, "B ..."]:
        return _seen(envs.reset(seed=next(seeds, None))[0])

    def step(actions: Int[Any, "B"]) -> HostStep:
        seen, rewards, terminated, truncated, _ = envs.step(np.asarray(actions))
        final = seen = _seen(seen)
        ended = terminated | truncated
        if ended.any():
            seen = _seen(envs.reset(options={"reset_mask": ended})[0])
        return HostStep(seen, rewards.astype(np.float32), terminated, truncated & ~terminated, final)

    spec = envs.spec
    return HostEnvironment(
        id=spec.id,
        num_envs=num_envs,
        num_actions=num_actions,
        observation_shape=observation_shape,
        discount=discount,
        longest=spec.max_episode_steps,
        solved=spec.reward_threshold,
        reset=reset,
        step=step,
        close=envs.close,
    )


def _make(name: str, num_envs: int, options: dict[str, Any]) -> Any:
    """Gymnasium's vector environment, which resets nothing by itself."""
    who = f"from_gymnasium({name!r})"
    require("gymnasium", who)
    import gymnasium
    from gymnasium.vector import AutoresetMode

    kwargs = {"autoreset_mode": AutoresetMode.DISABLED}
    try:
        return gymnasium.make_vec(name, num_envs, vectorization_mode="sync", vector_kwargs=kwargs, **options)
    except gymnasium.error.DependencyNotInstalled as error:
        raise ModuleNotFoundError(f"{who}: {error}") from error
    except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv, ModuleNotFoundError) as error:
        raise ValueError(
            f"{who}: no such environment. {error} Give a name that `gymnasium.pprint_registry()` lists, or "
            "'module:Name-v0' where a module has to be imported first."
        ) from error


def _spaces(name: str, envs: Any) -> tuple[int, tuple[int, ...]]:
    """A and the shape of an observation."""
    from gymnasium.spaces import Box, Discrete

    actions, observations = envs.single_action_space, envs.single_observation_space
    if not isinstance(actions, Discrete) or actions.start != 0:
        envs.close()
        raise ValueError(
            f"from_gymnasium({name!r}): its actions are {actions}, but only Discrete(n), numbered from 0, is "
            "supported. Use another, like 'CartPole-v1', or register it with a wrapper that numbers the actions "
            "(gymnasium.wrappers.TransformAction)."
        )
    if not isinstance(observations, Box):
        envs.close()
        raise ValueError(
            f"from_gymnasium({name!r}): its observations are {observations}, but only arrays, Box(...), are supported. "
            "Register it with a wrapper that flattens them (gymnasium.wrappers.FlattenObservation)."
        )
    return int(actions.n), tuple(observations.shape)


def _seen(observations: np.ndarray) -> Shaped[np.ndarray, "B ..."]:
    """The observations in the environment's type (pictures in bytes), but float64 as float32."""
    return observations.astype(np.float32) if observations.dtype == np.float64 else observations
