#!/usr/bin/env python3
"""The one entrance for everyone who works on this repository.

    python3 dev.py demo       watch two agents share one memory
    python3 dev.py test       run every test this machine can run

It needs Python 3.11 or newer and nothing else: it makes its own environments under `.dev/`.
This file parses on Python 3.8, so that an older interpreter gets a sentence, not a traceback.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

NEEDED = (3, 11)


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    top = argparse.ArgumentParser(
        prog="dev.py",
        description="Work on wenchang: demo, tests, checks, servers, docs, benchmarks, releases.",
    )
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)

    demo = verbs.add_parser("demo", help="two agents share one memory: the main job on real input")
    demo.add_argument("rest", nargs=argparse.REMAINDER, help="arguments for the demo itself")

    test = verbs.add_parser(
        "test",
        help="run the tests, with every server that can be had here",
        description="Any further argument goes to pytest; a path runs only that.",
    )
    test.add_argument("--all-pythons", action="store_true", help="core on 3.12 and 3.13 as well")
    test.add_argument("--deep", action="store_true", help="the full sizes instead of those for CI")
    test.add_argument("--no-servers", action="store_true", help="start no server")
    test.add_argument("--coverage", action="store_true", help="measure branches and report them")
    test.add_argument(
        "--complete", action="store_true", help="fail if anything was not run (CI does)"
    )

    check = verbs.add_parser("check", help="lint, format, types, layers, declared dependencies")
    check.add_argument("only", nargs="*", help="names of single checks; none means all")

    servers = verbs.add_parser("servers", help="start the test servers and print how to reach them")
    servers.add_argument("kinds", nargs="*", help="which ones; none means all")
    servers.add_argument("--list", action="store_true", help="only say what there is")
    servers.add_argument(
        "--install", action="store_true", help="install what needs root as well (Debian packages)"
    )

    docs = verbs.add_parser(
        "docs", help="build the documentation, with llms.txt and Markdown twins"
    )
    docs.add_argument("--serve", action="store_true", help="serve it on a loopback port")

    bench = verbs.add_parser("bench", help="run a benchmark by name; without a name, list them")
    bench.add_argument("name", nargs="?", help="a script in benchmarks/")
    bench.add_argument("rest", nargs=argparse.REMAINDER, help="arguments for the benchmark")

    verbs.add_parser("release", help="build every distribution and check it; publishes nothing")
    verbs.add_parser("ci", help="what CI runs: servers, check, test; fails if anything was not run")
    return top


def main(arguments: list[str]) -> int:
    """Run one verb and return the exit code."""
    if sys.version_info < NEEDED:
        here = ".".join(str(part) for part in sys.version_info[:3])
        needed = ".".join(str(part) for part in NEEDED)
        text = f"dev.py needs Python {needed} or newer; this is {here} ({sys.executable})."
        print(text, file=sys.stderr)
        return 1
    options, rest = parser().parse_known_args(arguments)
    if rest and options.verb != "test":
        parser().error("unrecognized arguments: " + " ".join(rest))

    sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))
    from devlib import verbs  # needs the version checked above
    from devlib.console import DevError

    # Told to end, it unwinds like on Ctrl-C, so that no server stays behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return verbs.run_verb(options, rest)
    except DevError as error:
        print(str(error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
