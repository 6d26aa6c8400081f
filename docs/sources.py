"""Maps files of the repository to pages of the site, and rewrites the links between them.

Everything is written once: in README, in the pages and notebooks of `notebooks/`, in the pages of `experiments/`. The
site uses these files. README is divided by its headings, each of which belongs to a page.
"""

import pathlib
import posixpath
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOB = "https://github.com/jaxzero/jaxzero/blob/main/"
COLAB = "https://colab.research.google.com/github/jaxzero/jaxzero/blob/main/"
BADGE = "Open in Colab"  # the only link to Colab; in the text, notebooks link to each other

# The sections of README on each page; "" is the text before the first heading.
README = {
    "index.md": ("", "Install", "Ten lines", "Where to go on"),
    "how_to/commands.md": ("Commands",),
    "how_to/library.md": ("Use it as a library",),
    "explanation/concepts.md": ("The five concepts", "Where things are", "The papers behind it"),
    "benchmarks/index.md": ("How fast, how strong",),
}
TITLES = {
    "how_to/commands.md": "Commands",
    "how_to/library.md": "Use it as a library",
    "explanation/concepts.md": "Concepts",
    "benchmarks/index.md": "How fast, how strong",
}
# Files that become one page each.
PAGES = {
    "notebooks/README.md": "tutorials/index.md",
    "notebooks/train_your_own_game.md": "how_to/train_your_own_game.md",
    "notebooks/train_your_own_environment.md": "how_to/train_your_own_environment.md",
    "notebooks/choosing.md": "how_to/choosing.md",
    "notebooks/extending.md": "how_to/extending.md",
    "notebooks/gtp.md": "how_to/gtp.md",
    "notebooks/trained_networks.md": "how_to/trained_networks.md",
    "notebooks/coming_from_mctx.md": "how_to/coming_from_mctx.md",
    "notebooks/features.md": "explanation/features.md",
    "notebooks/theory.md": "explanation/theory.md",
    "notebooks/accelerators.md": "explanation/accelerators.md",
    "experiments/gallery/README.md": "gallery.md",
    "experiments/README.md": "benchmarks/experiments.md",
    "experiments/train.md": "benchmarks/train.md",
    "experiments/strength/README.md": "benchmarks/strength.md",
    "experiments/strength/matches.md": "benchmarks/matches.md",
    "experiments/strength/what_was_tried/README.md": "benchmarks/what_was_tried/index.md",
    "experiments/strength/what_was_tried/connect_four.md": "benchmarks/what_was_tried/connect_four.md",
    "experiments/strength/what_was_tried/hex.md": "benchmarks/what_was_tried/hex.md",
    "experiments/strength/what_was_tried/honest_priors.md": "benchmarks/what_was_tried/honest_priors.md",
    "experiments/strength/what_was_tried/input_features.md": "benchmarks/what_was_tried/input_features.md",
    "experiments/strength/what_was_tried/othello_and_go.md": "benchmarks/what_was_tried/othello_and_go.md",
    "experiments/strength/what_was_tried/value_targets.md": "benchmarks/what_was_tried/value_targets.md",
    "experiments/strength/games_of_chance.md": "benchmarks/games_of_chance.md",
    "experiments/muzero/README.md": "benchmarks/muzero.md",
    "experiments/bench/README.md": "benchmarks/time_and_memory.md",
    "experiments/compat/README.md": "benchmarks/compat.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    ".github/SECURITY.md": "project/security.md",
}
NOTEBOOKS = {
    path.relative_to(ROOT).as_posix(): f"tutorials/{path.stem}.md" for path in sorted(ROOT.glob("notebooks/*.ipynb"))
}
PICTURES = {
    path.relative_to(ROOT).as_posix(): f"pictures/{path.name}"
    for path in sorted(ROOT.glob("notebooks/pictures/**/*"))
    if path.suffix in (".svg", ".png")
}


def sections() -> dict[str, str]:
    """README by its headings; the text before the first under ""."""
    parts = re.split(r"(?m)^## (.*)$", (ROOT / "README.md").read_text("utf-8"))
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2]))}


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def readme_page(anchor: str) -> str:
    """The page with the section of README at this anchor."""
    homes = {slug(heading): page for page, headings in README.items() for heading in headings}
    return homes.get(anchor, "index.md")


def rewritten(text: str, source: str, page: str) -> str:
    """The text of `source` with links that work on `page`: to other pages, to pictures, else to the repository."""

    def link(found: re.Match) -> str:
        target, hash_, anchor = found[2].partition("#")
        if not target:
            there = f"{_relative(readme_page(anchor), page)}#" if source == "README.md" else "#"
            return f"{found[1]}({there}{anchor})"
        outside = "" if plain_end(found).endswith(BADGE) else COLAB
        file = target.removeprefix(BLOB).removeprefix(outside)
        if file == target:
            if "://" in target:
                return found[0]
            file = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        return f"{found[1]}({_address(file, anchor, page)}{hash_}{anchor})"

    def plain_end(found: re.Match) -> str:
        return found.string[: found.start()]

    return outside_code(without_badges(text), lambda plain: re.sub(r"(\])\(([^)\s]+)\)", link, plain))


def with_code(text: str, source: str) -> str:
    """The gallery, with each script below its link: `[Code](script.py)` on a line of its own."""

    def script(found: re.Match) -> str:
        code = (ROOT / source).with_name(found[1]).read_text("utf-8")
        return f"{found[0]}\n\n```python\n{code}```"

    return re.sub(r"(?m)^\[Code\]\(([^)]+\.py)\)$", script, text)


def _address(file: str, anchor: str, page: str) -> str:
    if file == "README.md":
        return _relative(readme_page(anchor), page)
    there = (PAGES | NOTEBOOKS | PICTURES).get(file)
    if there is None:
        if not (ROOT / file).exists():
            raise FileNotFoundError(f"{page}: a link to {file}, which is not there")
        return BLOB + file
    return _relative(there, page)


def _relative(there: str, page: str) -> str:
    return posixpath.relpath(there, posixpath.dirname(page) or ".")


def without_badges(text: str) -> str:
    """Replaces pictures from other servers by their text; removes those that only show a version."""
    text = re.sub(r"(?m)^(\[!\[[^\]]*\]\(https://img\.shields\.io[^)]*\)\]\([^)]*\) ?)+\n", "", text)
    return re.sub(r"\[!\[([^\]]*)\]\(https?://[^)]*\)\]", r"[\1]", text)


def outside_code(text: str, change) -> str:
    """Applies `change` to the text outside fenced blocks."""
    parts = re.split(r"(?m)^(```.*?^```\s*?$)", text, flags=re.DOTALL)
    return "".join(part if part.startswith("```") else change(part) for part in parts)


def commonmark(text: str) -> str:
    """With the blank line that Python-Markdown wants before a list."""

    def change(plain: str) -> str:
        lines: list[str] = []
        for line in plain.split("\n"):
            item = re.match(r"( *)([-*]|\d+\.) ", line)
            before = lines[-1] if lines else ""
            if item and before.strip() and not re.match(r" *([-*]|\d+\.) |  +\S|\|", before):
                lines.append("")
            lines.append(line)
        return "\n".join(lines)

    return outside_code(text, change)
