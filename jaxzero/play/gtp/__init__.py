"""The Go Text Protocol, version 2 (Farnebäck 2002), by which front ends and match runners talk to an engine.

https://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2/gtp2-spec.html

`Session` holds a conversation: `answer` takes one line and returns the text to be written. `serve` is the loop over two
streams. The commands are in `administration`, `setting_up`, `playing` and `judging`. A leaf: only `cli` imports it.
"""

from jaxzero.play.gtp.serving import serve
from jaxzero.play.gtp.session import Session

__all__ = ["Session", "serve"]
