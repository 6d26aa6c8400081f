"""Administrative commands (section 6.3.1): name, version, and the commands known. None of them needs an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxzero.play.gtp.session import Session

__all__ = ["COMMANDS"]


def _known_command(session: Session, words: list[str]) -> str:
    return str(bool(words) and words[0] in session.commands).lower()


def _quit(session: Session, words: list[str]) -> str:
    session.closed = True
    return ""


COMMANDS = {
    "protocol_version": lambda session, words: "2",
    "name": lambda session, words: "jaxzero",
    "version": lambda session, words: session.version,
    "known_command": _known_command,
    "list_commands": lambda session, words: "\n".join(sorted(session.commands)),
    "quit": _quit,
}
