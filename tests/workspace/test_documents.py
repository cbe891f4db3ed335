"""Every page of the documentation has its place, and every link between pages leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(DOCS.rglob("*.md")),
    *sorted(ROOT.glob("packages/*/README.md")),
    ROOT / "conformance" / "README.md",
]
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchor(title: str) -> str:
    """Return the anchor that GitHub and MkDocs give to a heading."""
    plain = re.sub(r"[`*_]", "", title).strip().lower()
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", plain))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_inside_the_repository_leads_to_a_file_and_a_heading(page):
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    broken = []
    for match in _LINK.finditer(text):
        target, _, fragment = match["target"].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists():
            broken.append(match["target"])
        elif fragment and file.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            explicit = f'id="{fragment}"' in file.read_text(encoding="utf-8")
            if fragment not in map(anchor, headings) and not explicit:
                broken.append(match["target"])

    assert broken == []


def test_every_page_is_in_the_navigation_and_every_entry_is_a_page():
    listed = re.findall(
        r":\s+(\S+\.md)\s*$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE
    )
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]

    assert sorted(listed) == sorted(pages)


# What people look for by these names; a page may be called a little differently.
WANTED = {
    "concepts": "guide/concepts.md",
    "reference": "guide/reference.md",
    "storage and operations": "guide/storage-and-operations.md",
    "identity and multi-tenant authentication": "guide/identity.md",
    "seed curated content": "guide/curated-content.md",
    "index cost": "guide/index-cost.md",
    "files per entity": "guide/files-per-entity.md",
    "customizing the prompts": "guide/prompts.md",
    "where the guidance goes": "guide/guidance.md",
    "tool schemas": "guide/tool-schemas.md",
    "the index cache": "guide/index-cache.md",
    "erasing an entity": "guide/erasing.md",
    "threads": "guide/threads.md",
    "telemetry": "guide/telemetry.md",
    "integrate: a new server": "guide/integrate-new-server.md",
    "integrate: an existing server": "guide/integrate-existing-server.md",
    "integrate: without MCP": "guide/integrate-without-mcp.md",
    "status and compatibility": "guide/status.md",
    "differences": "guide/differences.md",
}


@pytest.mark.parametrize("page", WANTED.values(), ids=WANTED)
def test_mem_106_the_pages_that_adopters_look_for_exist_and_say_something(page):
    text = (DOCS / page).read_text(encoding="utf-8")

    assert text.startswith("# ")
    assert len(text.split()) > 60
