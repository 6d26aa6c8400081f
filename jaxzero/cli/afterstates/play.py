"""Playing 2048, in the terminal or in the browser, with hints by values of afterstates."""

import functools
import secrets
import signal
import sys
import threading

import jax
import numpy as np

from jaxzero.cli.afterstates import terminal
from jaxzero.cli.afterstates.hints import looking
from jaxzero.cli.afterstates.play_settings import TRAIN, Play, weights_file
from jaxzero.compilation_cache import keep_programs
from jaxzero.nets.files.ntuple_weights import load_ntuples
from jaxzero.nets.weights import WeightsError
from jaxzero.play.browser.local_server import listening, serve
from jaxzero.play.game_2048 import server
from jaxzero.play.game_2048 import session as games
from jaxzero.play.game_2048.session import Look
from jaxzero.play.game_2048.tabs import tabs
from jaxzero.runs import progress_display

__all__ = ["main", "run"]

EVERY = 0.5  # seconds between moves, by default


def key_of(config: Play) -> np.ndarray:
    """The key that determines all tiles: from the seed, or random."""
    seed = secrets.randbits(32) if config.seed is None else config.seed
    return np.asarray(jax.random.key_data(jax.random.key(seed)))


def looker(config: Play) -> tuple[Look, str]:
    """The compiled function that rates moves, and its origin in words; exits where the weights do not fit."""
    file = weights_file(config)
    try:
        with progress_display.announced("Reading the weights"):
            network, weights, about = load_ntuples(file)
    except WeightsError as error:
        sys.exit(f"play: {error}\nHints of 2048 come from n-tuple networks. To train one:\n{TRAIN}")
    look = looking(network.value, weights, config.simulations)
    with progress_display.announced("Compiling the search" if config.simulations else "Compiling"):
        session = games.begin(key_of(config))
        games.play(session, look(session.now).best)
    whose = f"the weights of {config.weights}" if config.weights else "the weights that come with jaxzero"
    by = f"a search of {config.simulations:,} simulations with " if config.simulations else ""
    return look, f"{by}{whose} (step {about.get('step', 'unknown')})"


def in_terminal(config: Play) -> None:
    """Plays or watches in the terminal, until the user quits."""
    look, words = looker(config)
    terminal.say(f"2048, with hints by {words}, on {progress_display.device()}.")
    session = games.begin(key_of(config))
    if not config.watch:
        return terminal.play(session, look)
    session = terminal.watch(session, look, terminal.MOST, EVERY if config.delay is None else config.delay)
    terminal.show(session.now)


def in_browser(config: Play) -> None:
    """Serves the page until Ctrl-C or SIGTERM."""
    say, found = functools.partial(print, flush=True), {}
    try:  # before what takes long
        listener = listening(config.port, lambda request: server.answer(found["tabs"], request))
    except OSError as error:
        sys.exit(f"play: --port {config.port}: {error.strerror}. Leave --port out to have a free one.")
    look, words = looker(config)
    about = f"Hints by {words}, on {progress_display.device()}."
    found["tabs"] = tabs(key_of(config), look, about)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    say(f"2048. {about}")
    say(f"Open http://127.0.0.1:{listener.server_port}/ in a browser on this machine. Ctrl-C ends it.")
    serve(listener, stop)
    say("\nEnded.")


def main(config: Play) -> None:
    """Plays where the settings say."""
    keep_programs()
    in_browser(config) if config.browser else in_terminal(config)


def run(config: Play) -> None:
    """`jaxzero play --game 2048` with these settings."""
    try:
        main(config)
    except KeyboardInterrupt:  # while it reads or compiles
        print()
