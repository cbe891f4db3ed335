"""`dev.py docs`: the site, a Markdown twin of each page, `llms.txt` and `llms-full.txt`.

MkDocs builds the site; `tools/mkdocs_hooks.py` adds the rest while it knows the navigation.
"""

from __future__ import annotations

from devlib import environments, project
from devlib.console import clean_environ, run, say
from devlib.servers.process import free_port

SITE = project.MADE / "site"


def build() -> int:
    """Build the site into `.dev/site`; a broken link or a page without a place fails."""
    python = environments.ensure(environments.docs())
    command = [python, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", SITE]
    code = run(command, cwd=project.ROOT, env=_environ())
    if code == 0:
        say(f"The documentation is in {SITE}; begin with {SITE / 'index.html'}.")
    return code


def serve() -> int:
    """Serve the site on a free loopback port and follow changes, until Ctrl-C."""
    python = environments.ensure(environments.docs())
    address = f"127.0.0.1:{free_port()}"
    command = [python, "-m", "mkdocs", "serve", "--dev-addr", address]
    return run(command, cwd=project.ROOT, env=_environ())


def _environ() -> dict[str, str]:
    # The theme prints an advertisement of its own otherwise, in the middle of our output.
    return clean_environ({"NO_MKDOCS_2_WARNING": "1"})
