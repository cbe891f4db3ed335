"""What MkDocs leaves out for readers that are programs.

After each build: a Markdown twin beside every page (`concepts.html` has `concepts.md`), `llms.txt`
with one line a page in the order of the navigation, and `llms-full.txt` with all pages in one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_pages: list[Any] = []
_FENCE = re.compile(r"^(```|~~~)")


def on_nav(nav: Any, **_: Any) -> Any:
    """Remember the pages in the order that a reader meets them."""
    _pages[:] = nav.pages
    return nav


def on_post_build(config: Any, **_: Any) -> None:
    """Write the twins and the two files, once every page has its title."""
    site = Path(config["site_dir"])
    lines = [f"# {config['site_name']}", "", f"> {config['site_description']}"]
    whole = list(lines)
    section: str | None = None
    for page in _pages:
        source = page.file.src_uri
        text = page.file.content_string
        twin = site / source
        twin.parent.mkdir(parents=True, exist_ok=True)
        twin.write_text(text, encoding="utf-8")
        above = page.parent.title if page.parent else "Start"
        if above != section:
            section = above
            lines += ["", f"## {section}", ""]
        lines.append(f"- [{page.title}]({source}): {_first_sentence(text)}")
        whole += ["", f"<!-- {source} -->", "", text.strip()]
    (site / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (site / "llms-full.txt").write_text("\n".join(whole) + "\n", encoding="utf-8")


def _first_sentence(text: str) -> str:
    """Return the first sentence of a page's first paragraph, without markup for links."""
    paragraph: list[str] = []
    fenced = False
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif fenced or line.startswith(("#", "|", "<!--", "!!!", "- ", ">")):
            if paragraph:
                break
        elif line.strip():
            paragraph.append(line.strip())
        elif paragraph:
            break
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(paragraph))
    return re.split(r"(?<=[.!?:])\s", plain, maxsplit=1)[0]
