"""Executed notebooks as pages: text, code and output."""

import html
import json
import pathlib
import re

import latex2mathml.converter

SETUP = '"google.colab" in sys.modules'  # marks the cell that only Colab needs
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def page(notebook: pathlib.Path) -> tuple[str, list[str]]:
    """The Markdown of an executed notebook, and the HTML to put in place of its `data-output` tags."""
    parts: list[str] = []
    outputs: list[str] = []
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(with_formulas(source, outputs))
        elif SETUP not in source:
            parts.append(f"```python\n{source}\n```")
            for output in cell["outputs"]:
                if shown := html_of(output):
                    parts.append(f'<div data-output="{len(outputs)}"></div>')
                    outputs.append(shown)
    return "\n\n".join(parts) + "\n", outputs


def html_of(output: dict) -> str:
    """An output of a cell as HTML; empty for the error stream."""
    if output["output_type"] == "stream":
        return _printed("".join(output["text"])) if output["name"] == "stdout" else ""
    data = {kind: "".join(text) for kind, text in output.get("data", {}).items() if isinstance(text, str | list)}
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            return _box(data[kind])
    if "image/png" in data:
        return _box(f'<img alt="What this cell shows" src="data:image/png;base64,{data["image/png"].strip()}">')
    return _printed(data.get("text/plain", ""))


def _box(shown: str) -> str:
    return f'<div class="output" data-search-exclude>{shown}</div>'


def _printed(text: str) -> str:
    return f'<pre class="printed" tabindex="0">{html.escape(ESCAPES.sub("", text))}</pre>' if text.strip() else ""


def with_formulas(text: str, outputs: list[str]) -> str:
    """TeX between dollar signs as MathML, which browsers draw by themselves; it joins the outputs."""

    def formula(tex: str, display: str, tag: str) -> str:
        outputs.append(latex2mathml.converter.convert(tex, display=display))
        return f'<{tag} data-output="{len(outputs) - 1}"></{tag}>'

    text = re.sub(r"\$\$(.+?)\$\$", lambda found: formula(found[1], "block", "div"), text, flags=re.DOTALL)
    return re.sub(r"(?<![\\`$])\$([^$`\n]+)\$", lambda found: formula(found[1], "inline", "span"), text)
