"""Memory estimate: how much memory a run will take on a device, computed from shapes.

    parts = {"replay": jax.eval_shape(make_buffer), "tree": search_tree(policy, params, keys, state), ...}
    for name, taken in plan(parts): print(name, in_words(taken))
    check(parts, {"replay": Lower("--learn.capacity", capacity)}, jax.devices()[0])    # a ValueError if it will not fit

Only the named parts are counted: arrays that live through the run, and the search's tree. What a program needs
temporarily (a network's activations, copies that XLA makes) is not counted; `share` of `check` leaves room for it.
"""

import contextlib
import math
import os
import pathlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxzero.types import Keys, Params, State

__all__ = ["Lower", "available", "check", "in_words", "plan", "search_tree", "size"]


class Lower(NamedTuple):
    """How to make a part smaller.

    Attributes:
        flag: the setting to lower, e.g. "--learn.capacity".
        value: its present value, if the part grows in proportion to it; None: it does not.
    """

    flag: str
    value: int | None = None


def size(tree: Any) -> int:
    """Bytes of all arrays of a tree, abstract (`jax.ShapeDtypeStruct`) or not; PRNG keys count by their data.

    >>> import jax.numpy as jnp
    >>> size({"a": jax.ShapeDtypeStruct((10, 3), jnp.float32), "b": jax.ShapeDtypeStruct((7,), jnp.bool_)})
    127
    """

    def of(x: Any) -> int:
        x = x if hasattr(x, "dtype") else np.asarray(x)
        if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            x = jax.eval_shape(jax.random.key_data, x)
        return math.prod(x.shape) * x.dtype.itemsize

    return sum(of(x) for x in jax.tree.leaves(tree))


def plan(parts: Mapping[str, Any], shared: Collection[str] = (), devices: int = 1) -> list[tuple[str, int]]:
    """Bytes that each part takes on one device, the largest first.

    Args:
        parts: by name, trees of arrays, abstract or not.
        shared: names of the parts that are shared out among the devices; the others are on each of them.
        devices: how many there are.

    Raises:
        ValueError: a name in `shared` that is no part.

    >>> import jax.numpy as jnp
    >>> rows = jax.ShapeDtypeStruct((1_000_000, 6, 7, 2), jnp.float32)
    >>> plan({"params": jax.ShapeDtypeStruct((84, 256), jnp.float32), "replay": rows}, shared=["replay"], devices=4)
    [('replay', 84000000), ('params', 86016)]
    """
    unknown = sorted(set(shared) - set(parts))
    if unknown:
        raise ValueError(f"plan: shared={unknown} are no parts. Use names out of {sorted(parts)}.")
    taken = {name: -(-size(tree) // (devices if name in shared else 1)) for name, tree in parts.items()}
    return sorted(taken.items(), key=lambda part: -part[1])


def search_tree(policy: Callable, params: Params, keys: Keys, state: State) -> Any:
    """The abstract tree of a search policy: traces the policy, computes nothing. All may be abstract.

    >>> import jax.numpy as jnp, jaxzero as jz
    >>> from jaxzero import games, models
    >>> game = games.from_pgx("tic_tac_toe")
    >>> network = lambda params, observation: (jnp.zeros((len(observation), 9)), jnp.zeros(len(observation)))
    >>> keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), 1024))
    >>> state = jax.eval_shape(jax.vmap(game.init), keys)
    >>> tree = search_tree(jz.gumbel(models.perfect(game, network), 32), (), keys, state)
    >>> size(tree) // 1024 // 33 < 500  # bytes per game and node, game states included
    True
    """
    return jax.eval_shape(policy, params, keys, state).tree


def available(device: Any) -> int | None:
    """Bytes that programs may use on this `jax.Device`; None if unknown.

    On an accelerator the limit of its allocator (`bytes_limit`). On the CPU the smaller of the machine's memory and the
    limit of control groups; CPU devices of one process share it equally.
    """
    if device.platform == "cpu":
        limits = [x for x in (_physical(), _granted()) if x is not None]
        return min(limits) // len(jax.local_devices(backend="cpu")) if limits else None
    stats = None
    with contextlib.suppress(jax.errors.JaxRuntimeError, NotImplementedError):  # where the backend keeps none
        stats = device.memory_stats()
    return (stats or {}).get("bytes_limit")


def check(
    parts: Mapping[str, Any],
    hints: Mapping[str, Lower],
    device: Any,
    share: float = 0.9,
    shared: Collection[str] = (),
    devices: int = 1,
) -> None:
    """Refuse what will not fit, before it is allocated. If the available memory is unknown, nothing is refused.

    Args:
        parts: by name, trees of arrays, abstract or not.
        hints: by name of a part, how to make it smaller.
        device: one of the devices.
        share: of the available memory, which the parts may take together.
        shared: names of the parts that are shared out among the devices; the others are on each of them.
        devices: how many there are.

    Raises:
        ValueError: the parts take more; lists them by size, and says what to lower, and to what. Also a hint for what
            is no part.
    """
    unknown = sorted(set(hints) - set(parts))
    if unknown:
        raise ValueError(f"check: hints for {unknown}, which are no parts. Use names out of {sorted(parts)}.")
    taken, limit = plan(parts, shared, devices), available(device)
    total = sum(amount for _, amount in taken)
    if limit is None or total <= share * limit:
        return
    listed = ", ".join(f"{name} {in_words(amount)}" for name, amount in taken)
    where = f" on each of {devices} devices" if devices > 1 else ""
    raise ValueError(
        f"The run needs {in_words(total)} of memory{where} ({listed}), and may use {in_words(share * limit)}: "
        f"{share:.0%} of the {in_words(limit)} of device {device.id} ({device.device_kind}). "
        + _remedy(taken, hints, share * limit)
    )


def _remedy(taken: list[tuple[str, int]], hints: Mapping[str, Lower], room: float) -> str:
    """What to lower: the flag of the largest part that has one, with a value that fits, if lowering it is enough."""
    hinted = [(name, amount) for name, amount in taken if name in hints and amount]
    if not hinted:
        return "Use a smaller network, fewer games, or a device with more memory."
    (name, amount), others = hinted[0], sum(amount for _, amount in taken) - hinted[0][1]
    flag, value = hints[name]
    if value is None:
        return f"Lower {flag}."
    fits = _rounded(int(value * (room - others) / amount))
    if fits >= 1:
        return f"Lower {flag} from {value} to {fits}."
    more = dict.fromkeys(hints[name].flag for name, _ in hinted[1:]) or ["the network"]
    return f"No value of {flag} is small enough: lower {' and '.join(more)}, too, or use a device with more memory."


def _rounded(number: int) -> int:
    """Rounded down to two digits, for people: 123,456 is 120,000."""
    step = 10 ** max(len(str(number)) - 2, 0)
    return number // step * step


def in_words(number: float) -> str:
    """Bytes in words, for people.

    >>> in_words(512), in_words(3_500_000), in_words(12 * 2**30)
    ('512 B', '3.3 MiB', '12.0 GiB')
    """
    unit = min(max(int(number).bit_length() - 1, 0) // 10, 4)
    return f"{number / 1024**unit:.1f} {' KMGT'[unit]}iB" if unit else f"{number:.0f} B"


def _physical() -> int | None:
    with contextlib.suppress(AttributeError, ValueError, OSError):  # where the system does not tell
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _granted(system: pathlib.Path = pathlib.Path("/")) -> int | None:
    """The least limit of this process's control groups and of those above them, of either version; None: no limit.

    In a container the path of the group may be the host's, which is not mounted; the mount's own folder then holds the
    container's limit.
    """
    limits = []
    with contextlib.suppress(OSError):
        for line in (system / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            below, file = ("memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
            mount = system / "sys/fs/cgroup" / below
            group = mount / path.strip("/")
            limits += [_number(folder / file) for folder in (group, *group.parents) if folder.is_relative_to(mount)]
    return min((limit for limit in limits if limit is not None), default=None)


def _number(file: pathlib.Path) -> int | None:
    """The number in a file; None for "max", and if there is no such file."""
    with contextlib.suppress(OSError, ValueError):
        return int(file.read_text())
    return None
