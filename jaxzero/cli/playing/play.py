"""Play: in the terminal, in the browser, or by the Go Text Protocol."""

import dataclasses
import functools
import json
import os
import pathlib
import re
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import jax

import jaxzero as jz
from jaxzero import games, models
from jaxzero.cli.evaluation_search import draws, provable, seeing_decisive
from jaxzero.cli.playing import network_models, protocol, terminal_ui
from jaxzero.cli.playing.network_models import WEIGHTS, weights_file
from jaxzero.cli.playing.play_settings import (
    KOMI,
    PLAYOUTS,
    SIZE,
    Play,
    Player,
    komi,
    limits,
    means_trained,
    of_go_alone,
)
from jaxzero.cli.training.reporting.console import warnings_said
from jaxzero.cli.training.variant import learned_only
from jaxzero.compilation_cache import keep_programs
from jaxzero.models.chance import with_listed_outcomes
from jaxzero.nets import weights
from jaxzero.play.browser import board_json, local_server, server
from jaxzero.play.browser.sessions import Sessions
from jaxzero.play.engine import Engine
from jaxzero.play.engine_programs import Programs, playable, programs
from jaxzero.play.notation import has_board, names, side_of
from jaxzero.runs import progress_display


def resolved(player: Player) -> Player:
    """The player with its game filled in: where none was named, the game of its weights; without weights, go.

    Settings that were given, like a size, stay. A folder or a file may come from anywhere, so neither can make us
    import a module, with one exception: a run's folder may name a module of the current folder by its plain name.

    Raises:
        ValueError: weights whose game has to be named, or that are of no game for two; damaged settings of a run.
    """
    game, kept = player.game or "go", {}
    if learned_only(game):
        how = "jaxzero play --game 2048 plays it" if game == "2048" else "a run's report.html shows what was learned"
        raise ValueError(f"--game {game} has no opponent to play against: {how}.")
    path = pathlib.Path(player.weights)
    if player.weights not in ("", PLAYOUTS) and not means_trained(player.weights) and not player.game:
        kept = _settings_of(path) if path.is_dir() and (path / "config.json").is_file() else _of_file(path)
        game = str(kept["game"])
        if learned_only(game):
            how = "Give --game 2048, too." if game == "2048" else "A run's report.html shows what was learned."
            raise ValueError(f"{path}: these weights are of {game}, which has no opponent to play against. {how}")
        plain = game.rpartition(":")[0].isidentifier() and path.is_dir() and not path.samefile(".")
        if games.is_own(game) and not plain:
            raise ValueError(f"--weights {path}: these are of the game {game}. If you trust it, add --game {game}")
        of_go_alone(game, player.size, player.komi)
    size = kept.get("size", SIZE) if player.size is None else player.size
    komi = kept.get("komi", KOMI) if player.komi is None else player.komi
    return dataclasses.replace(player, game=game, size=size, komi=komi)


def _settings_of(folder: pathlib.Path) -> dict:
    """The settings that a run's folder keeps, as far as they concern the game."""
    file = folder / "config.json"
    try:
        kept = json.loads(file.read_bytes())
        found = {name: kept[name] for name in ("game", "size", "komi") if name in kept}
        numbers = type(found.get("size", 0)) is int and type(found.get("komi", 0)) in (int, float)
        fits = isinstance(found["game"], str) and numbers
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"{file} cannot be read: {type(error).__name__}. Name the game: --game ...") from error
    if not fits:
        raise ValueError(f"{file} does not name its game. Name it: --game ...")
    return found


def _of_file(path: pathlib.Path) -> dict:
    """The game of a weights file. For weights of Go it is our own Go, unless they were trained with pgx's rules."""
    about = weights.read_about(path)
    komi = {"komi": about["komi"]} if network_models.komi_of(about) is not None else {}
    sized = re.fullmatch(r"go_(\d+)x\1", str(about.get("game")))
    trained_on_pgx = re.search(r"--game[ =]go_", str(about.get("command", "")))
    if "rules" not in about and sized and not trained_on_pgx:
        return {"game": "go", "size": int(sized[1])} | komi
    game = network_models.game_of(about)
    return {"game": game, "size": int(sized[1])} | komi if game == "go" and sized else {"game": game}


def rules(player: Player, size: int, komi: float) -> games.Game:
    """The game of the settings, on a board of this size."""
    return games.by_name(player.game, size, komi)


def engine(player: Player, size: int, komi: float) -> tuple[Engine, str]:
    """An engine for these settings, and a description of what it plays with.

    Raises:
        ValueError: weights that are not for this game.
    """
    game = rules(player, size, komi)
    if game.num_players < 2:
        raise ValueError(f"--game {player.game} is for one player: there is no opponent to play against.")
    file = player.weights
    along = network_models.comes_along(game, player.game) if not file or means_trained(file) else None
    if means_trained(file) and not along:
        named = player.game if player.game in ("go", game.id) else f"{player.game} ({game.id})"
        raise ValueError(
            f"--weights {file}: no network comes with jaxzero for --game {named} with these rules. Leave --weights out."
        )
    if not (file or along) or file == PLAYOUTS:
        if player.average_symmetries:
            why = "" if file else f"no network comes with jaxzero for {game.id} with these rules, and "
            raise ValueError(
                f"--average-symmetries: {why}random playouts have nothing to average. Give --weights FILE, or "
                "leave the flag out."
            )
        model, rule = models.rollout(game, player.rollouts), proving(game, jz.ucb1(of_playouts(player)))
        build = spreading(jz.uct, rule, capacity=player.capacity)
        words = f"random playouts, {player.rollouts} per simulation"
        return Engine(game, searches(game, model, build), seed=player.seed), words
    path = along or pathlib.Path(file)
    if not weights_file(path).exists():
        raise ValueError(f"--weights {path}: no {WEIGHTS} in this folder. Give a run's folder, or a file.")
    network = network_models.load(path, game, player.average_symmetries)
    whose = "that comes with jaxzero" if along else f"of {path}"
    how = ", with a learned model" if network.learned else ""
    learned_with = network_models.komi_of(network.about)
    other = player.game == "go" and learned_with not in (None, komi)
    how += f", trained with komi {learned_with:g}" if other else ""
    how += f", averaged over {len(game.symmetries)} symmetric forms" if player.average_symmetries else ""
    words = f"the network {whose} (step {network.about.get('step', 'unknown')}){how}"
    return network_engine(player, game, network), words


def of_playouts(player: Player) -> float:
    """UCB1's constant, for win rates."""
    return 0.5 if player.exploration is None else player.exploration


def network_engine(player: Player, game: games.Game, network: network_models.NetworkModel) -> Engine:
    """PUCT with a network.

    The nodes of a learned model hold no positions, and its search knows the legal moves of the root only. So the
    tree is not kept for the next position, and nothing is proven in it.
    """
    rule = jz.puct() if player.exploration is None else jz.puct(player.exploration)
    rule = rule if network.learned else proving(game, rule)
    fixed = dict(dirichlet_fraction=0.0, act=jz.most_visited, capacity=player.capacity)
    build = spreading(jz.alphazero, rule, **fixed)
    if network.learned:
        search = lambda n, stop, least=0: build(network.model, n, stop, least)
        made = forgetful(programs(game, search, search))._replace(playable=playable(game))
    else:
        made = searches(game, network.model, build)
    return Engine(game, made, network.params, seed=player.seed)


def spreading(policy: Callable, rule: jz.Rule, **fixed: Any) -> Callable:
    """`(model, simulations, stop, least) -> policy` of this kind, whose root gives each legal move `least` visits."""

    def build(model: jz.Model, n: int, stop: Any, least: Any = 0) -> Callable:
        return policy(model, n, rule=rule, root_rule=jz.root.minimum_visits(rule, least), stop=stop, **fixed)

    return build


def searches(game: games.Game, model: jz.Model, build: Callable) -> Programs:
    """The programs of an engine that plays by the rules; `build`: `(model, simulations, stop, least) -> policy`.

    Decisive moves are seen at every position, where the game names them.

    In a game that draws, the tree is not kept for the next position. If the game lists its outcomes, the tree has nodes
    for them, and nobody tells the engine which one occurred. If not, an edge holds the outcome that the search drew,
    which is seldom the one that occurred.
    """
    model = seeing_decisive(game, model)
    search = lambda n, stop, least=0: with_listed_outcomes(lambda model: build(model, n, stop, least), model, game)
    made = programs(game, search, search)
    return forgetful(made) if draws(game) else made


def forgetful(made: Programs) -> Programs:
    """The same programs, but none of them keeps a tree for the next position."""
    return made._replace(advance=lambda tree, action: made.forgotten(tree))


def proving(game: games.Game, rule: jz.Rule) -> jz.Rule:
    """The rule, with proofs where the game allows them."""
    return jz.avoid_proven(rule) if provable(game) else rule


# --------------------------------------------------------------------------------------------------------- the browser
def browser(config: Play, thinker: Engine, words: str) -> None:
    """Serves the page until Ctrl-C or SIGTERM."""
    player, stop = config.player, threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    say_now = functools.partial(print, flush=True)
    # Compiling cannot be interrupted; whoever opens the page meanwhile sees the board.
    settings = dict(second=config.second, seed=player.seed, komi=komi(player), **limits(player))
    tell = lambda text: None if stop.is_set() else say_now(text)  # after Ctrl-C only the end is announced
    play = Sessions(thinker, **settings, tell=tell)
    about = f"Against {words}, on {progress_display.device()}."
    page = tree_page(thinker)
    try:
        listener = local_server.listening(config.port, lambda request: server.answer(play, request, about, page))
    except OSError as error:
        play.close(0)
        print(f"play: --port {config.port}: {error.strerror}. Leave --port out to have a free one.", file=sys.stderr)
        sys.stderr.flush()
        os._exit(1)  # a normal exit would wait for what still compiles
    say_now(f"{play.layout['title']}: {about[0].lower()}{about[1:]}")
    say_now(f"Open http://127.0.0.1:{listener.server_port}/ in a browser on this machine. Ctrl-C ends it.")
    local_server.serve(listener, stop)
    say_now("\nEnded.")
    if not play.close(patience=2):
        os._exit(0)


def tree_page(thinker: Engine) -> Callable:
    """Draws search trees of this game as pages."""
    draw = []

    def page(tree: jz.Tree) -> str:
        from jaxzero import viz  # imported only when somebody looks at a tree

        if not draw:
            positions = jax.tree.structure(tree.state) == jax.tree.structure(thinker.state)  # learned models have none
            pictured = positions and (has_board(thinker.game) or thinker.game.draw is not None)
            draw.append(viz.drawer(thinker.game, thinker.first) if pictured else None)
        sides = board_json.layout(thinker.game)["sides"]
        called = [sides[side_of(thinker.game, player, thinker.first)] for player in range(len(sides))]
        return viz.tree(tree, names=names(thinker.game), draw=draw[0], players=called).html

    return page


def main(config: Play) -> None:
    """Plays where the settings say: protocol, browser or terminal."""
    if config.gtp:
        return protocol.main(config)
    keep_programs()
    try:
        config = dataclasses.replace(config, player=resolved(config.player))
        with warnings_said():
            thinker, words = engine(config.player, config.player.size, config.player.komi)
    except (ValueError, ImportError) as error:
        sys.exit(f"play: {error}")
    if config.browser:
        return browser(config, thinker, words)
    terminal_ui.say(f"{board_json.layout(thinker.game)['title']} against {words}, on {progress_display.device()}.")
    with progress_display.announced("Compiling the search"):
        thinker.warm_up()
    thinker.clear(number=0)  # forget the search of the warm-up
    try:
        terminal_ui.play(thinker, config.player, limits(config.player), config.second)
    finally:
        thinker.rest()  # a thinking thread must not outlive the program


def run(config: Play) -> None:
    """`jaxzero play` with these settings."""
    try:
        main(config)
    except (KeyboardInterrupt, EOFError):
        print()
