"""The Go Text Protocol, version 2 (Farnebäck 2002): how front ends and match runners speak with an engine.

https://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2/gtp2-spec.html

`Session` holds a conversation: `answer` takes one line and gives what is to be written. `serve` is the loop over two
streams. The commands are in `administration`, `setting_up`, `playing` and `judging`. A leaf: only `cli` imports it.
"""

from jaxzero.play.gtp.serving import serve
from jaxzero.play.gtp.session import Session

__all__ = ["Session", "serve"]
