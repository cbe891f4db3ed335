"""From a parsed command line to the module that does the work."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

from devlib import environments, project, pythons
from devlib.console import DevError, clean_environ, heading, run, say


def run_verb(options: argparse.Namespace, rest: list[str]) -> int:
    """Run the verb that `options` names and return the exit code."""
    match options.verb:
        case "demo":
            return _demo(options.rest)
        case "test":
            from devlib import testing

            return testing.run_tests(
                testing.Choice(
                    pytest=tuple(rest),
                    all_pythons=options.all_pythons,
                    deep=options.deep,
                    servers=not options.no_servers,
                    coverage=options.coverage,
                    complete=options.complete,
                )
            )
        case "check":
            from devlib import checks

            return checks.run_checks(options.only)
        case "servers":
            return _servers(options.kinds, only_list=options.list, install=options.install)
        case "docs":
            from devlib import docs

            return docs.serve() if options.serve else docs.build()
        case "bench":
            return _bench(options.name, options.rest)
        case "release":
            from devlib import release

            return release.build()
        case "ci":
            return _ci()
    raise DevError(f"unknown verb {options.verb}")


def _demo(arguments: list[str]) -> int:
    script = project.ROOT / "examples" / "demo" / "run.py"
    python = environments.ensure(environments.demo())
    return run([python, script, *arguments], env=clean_environ())


def _bench(name: str | None, arguments: list[str]) -> int:
    folder = project.ROOT / "benchmarks"
    known = sorted(path.stem for path in folder.glob("[!_]*.py"))
    if name is None:
        say("Benchmarks: " + (", ".join(known) or "none"))
        return 0
    if name not in known:
        raise DevError(f"There is no benchmark {name!r}. There are: {', '.join(known)}.")
    python = environments.ensure(environments.test())
    return run([python, folder / f"{name}.py", *arguments], env=clean_environ())


def _servers(names: list[str], *, only_list: bool, install: bool) -> int:
    from devlib import servers

    kinds = servers.chosen(names)
    if only_list:
        for kind in kinds:
            say(f"{kind.name:15} {kind.summary}")
            say(f"{'':15} comes from: {kind.needs}")
            say(f"{'':15} exports: {', '.join(kind.variables)}")
        return 0
    heading("starting servers")
    with servers.running(kinds, install=install) as started:
        if not started.environ:
            return 1
        say("\nThe tests find them through these variables:\n")
        for name, value in started.environ.items():
            say(f"export {name}='{value}'")
        say("\nThey run until you press Ctrl-C.")
        ends = {signal.SIGINT, signal.SIGTERM}
        signal.pthread_sigmask(signal.SIG_BLOCK, ends)
        signal.sigwait(ends)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)
    return 1 if started.missing else 0


def _ci() -> int:
    """Run what CI runs, each step as a person would, and stop at the first that fails."""
    # Installing waits for the network and for one core: it goes on while servers and checks run.
    with ThreadPoolExecutor(1) as ahead:
        ahead.submit(_make_environments)
        return _ci_steps()


def _make_environments() -> None:
    """Make the environments that the steps of CI need, in the order in which they need them.

    If one cannot be made, the step that needs it tries once more and tells why.
    """
    environments.ensure(environments.test())
    for version in project.OTHER_PYTHONS:
        if python := pythons.find(version):
            environments.ensure(environments.other_python(), python)


def _ci_steps() -> int:
    from devlib import servers

    heading("servers")
    with servers.running(servers.ALL, install=True) as started:
        pass
    if started.missing:
        for name, reason in started.missing.items():
            say(f"{name}: {reason}")
        return 1
    os.environ["PYTHONUNBUFFERED"] = "1"
    for arguments in (["check"], ["test", "--all-pythons", "--complete"]):
        heading("python3 dev.py " + " ".join(arguments))
        code = run([sys.executable, project.ROOT / "dev.py", *arguments], env=clean_environ())
        if code != 0:
            return code
    return 0
