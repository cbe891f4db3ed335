"""`wenchang check URL`: the suite against a storage, without a line of code.

It works under a random name at the URL, and deletes only what it made. The exit status is 0 only
for the verdict *conforms* (with `--probe`: if the conditions are honoured), 1 for any other
verdict, and 2 where the check could not begin.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.storage import StorageError
from wenchang.storage.locations import StorageLocation
from wenchang.storage.registry import open_storage
from wenchang_conformance.locating import hooks_at, load_factory, shown_location
from wenchang_conformance.manifest import CONTRACT
from wenchang_conformance.probe import probe
from wenchang_conformance.report import table, worst_verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wenchang.storage import Storage
    from wenchang_conformance.hooks import HooksFactory, StorageHooks
    from wenchang_conformance.plugin import Collector

__all__ = ["main"]

_CONFORMS: Final = 0
_DOES_NOT: Final = 1
_CANNOT_TELL: Final = 2
_PYTEST_VARIABLES: Final = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD")


def main(arguments: Sequence[str] | None = None, *, out: TextIO | None = None) -> int:
    """Run the check that the command line asks for; return the exit status."""
    options = _parser().parse_args(arguments)
    stream = out or sys.stdout
    try:
        location = StorageLocation.parse(options.url, source="the command line")
        factory = None if options.hooks is None else _factory(options.hooks)
        # Whatever is wrong with the URL shows here, before a hundred cases fail for it.
        _close(open_storage(location))
        with hooks_at(location, factory=factory) as hooks:
            storage = hooks.open()
            try:
                if options.probe:
                    return _probe(storage, location, stream)
                storage.list_page("", None, 1)
            finally:
                _close(storage)
    except (StorageError, BackendUnavailableError, _UsageError) as error:
        _complain(str(error))
        return _CANNOT_TELL
    return _check(options, location, factory, stream)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="wenchang check",
        description="Prove that a storage keeps the wenchang storage contract.",
        epilog="Exit status: 0 if it conforms, 1 if not, 2 if the check could not begin.",
    )
    parser.add_argument("url", metavar="URL", help="the storage, e.g. s3://bucket/prefix")
    parser.add_argument(
        "--profile",
        choices=("quick", "ci", "deep"),
        default="quick",
        help="how much to prove and how hard to try (default: quick)",
    )
    parser.add_argument(
        "--probe",
        action="store_true",
        help="only see, within seconds, whether the endpoint honours conditions",
    )
    parser.add_argument(
        "--report",
        action="append",
        default=[],
        metavar="FILE",
        help="write a report: FILE.json, FILE.md or FILE.badge.json; may be repeated",
    )
    parser.add_argument("--hooks", metavar="MODULE", help="module (or module:attribute) with hooks")
    parser.add_argument(
        "--gaps", metavar="FILE", help="declared deviations, a conformance-gaps.toml"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="list every requirement")
    return parser


class _UsageError(Exception):
    """The command line cannot be carried out."""


def _complain(text: str) -> None:
    sys.stderr.write(f"wenchang check: {text}\n")


def _factory(name: str) -> HooksFactory:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return load_factory(name)
    except (ImportError, AttributeError) as error:
        msg = f"--hooks {name} cannot be loaded: {error}"
        raise _UsageError(msg) from error
    finally:
        sys.path.pop(0)


def _close(storage: Storage) -> None:
    close = getattr(storage, "close", None)
    if close is not None:
        close()


def _probe(storage: Storage, location: StorageLocation, out: TextIO) -> int:
    """Print what the endpoint makes of each condition."""
    answers = probe(storage)
    for answer in answers:
        word = "honoured" if answer.honoured else "IGNORED"
        print(f"  {word:<9} {answer.condition} {answer.detail}".rstrip(), file=out)
    honoured = all(answer.honoured for answer in answers)
    verdict = "honours conditions" if honoured else "does not honour every condition"
    print(f"{shown_location(location)} {verdict}", file=out)
    return _CONFORMS if honoured else _DOES_NOT


def _check(
    options: argparse.Namespace,
    location: StorageLocation,
    factory: HooksFactory | None,
    out: TextIO,
) -> int:
    """Run the suite and print verdict and table."""
    run = _Run(location, factory, out)
    with tempfile.TemporaryDirectory() as root, _undisturbed():
        arguments = [
            str(resources.files("wenchang_conformance").joinpath("url_cases.py")),
            f"--rootdir={root}",
            f"--config-file={os.devnull}",
            "--import-mode=importlib",
            "--capture=sys",
            "-pno:cacheprovider",
            "-pwenchang_conformance.plugin",
            f"--wenchang-profile={options.profile}",
            # Without a file of its own the run must not find the one of some project.
            f"--wenchang-gaps={options.gaps or Path(root) / 'none.toml'}",
        ]
        if options.gaps is None:
            (Path(root) / "none.toml").write_text("", encoding="utf-8")
        arguments += [f"--wenchang-report={Path(file).resolve()}" for file in options.report]
        status = pytest.main(arguments, plugins=[run])
    run.finish()
    if run.collector is None or not run.collector.subjects:
        _complain(f"the suite could not be run (pytest ended with {status})")
        return _CANNOT_TELL
    for subject in run.collector.subjects:
        for line in table(subject, everything=options.verbose):
            print(line, file=out)
    verdict = worst_verdict(run.collector.subjects)
    print(f"\n{shown_location(location)}: {verdict}", file=out)
    return _CONFORMS if verdict == "conforms" else _DOES_NOT


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let no setting or plugin of the environment change what the suite does."""
    before = {name: os.environ.pop(name, None) for name in _PYTEST_VARIABLES}
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


class _Run:
    """The part of the run that pytest calls: hooks for the cases, progress, failures."""

    def __init__(
        self, location: StorageLocation, factory: HooksFactory | None, out: TextIO
    ) -> None:
        self._location = location
        self._factory = factory
        self._out = out
        self._total = 0
        self._done = 0
        self._live = out.isatty()
        self.collector: Collector | None = None

    @pytest.fixture
    def located_hooks(self) -> Iterator[StorageHooks]:
        """Make the hooks of a fresh namespace."""
        with hooks_at(self._location, factory=self._factory) as hooks:
            yield hooks

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: Any) -> None:
        """Take the place of pytest's own reporter."""
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        config.pluginmanager.unregister(reporter)
        config.wenchang_subject = shown_location(self._location)
        self.collector = config.pluginmanager.get_plugin("wenchang-conformance-collector")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Say what is about to be done."""
        self._total = len(session.items)
        print(
            f"Checking {shown_location(self._location)} against the storage contract {CONTRACT}: "
            f"{self._total} cases",
            file=self._out,
            flush=True,
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Show progress, and each failure as soon as it is there."""
        if report.failed:
            self._show_failure(report)
        if report.when == "teardown":
            self._done += 1
            self._show_progress(report.nodeid.rpartition("::")[2])

    def _show_progress(self, name: str) -> None:
        if self._live:
            text = f"[{self._done}/{self._total}] {name}"
            print(f"\r{text[:78]:<78}", end="", file=self._out, flush=True)
        elif self._done % max(1, self._total // 10) == 0:
            print(f"  {self._done} of {self._total} cases done", file=self._out, flush=True)

    def _show_failure(self, report: pytest.TestReport) -> None:
        self.finish()
        name = report.nodeid.rpartition("::")[2]
        crash = getattr(report.longrepr, "reprcrash", None)
        message = report.longreprtext if crash is None else crash.message
        print(f"\nFAILED {name}\n{message}", file=self._out)
        for title, text in report.sections:
            if title.startswith("wenchang"):
                print(f"--- {title} ---\n{text}", file=self._out)
        print(file=self._out, flush=True)

    def finish(self) -> None:
        """Leave the line of the progress."""
        if self._live:
            print(f"\r{'':<78}\r", end="", file=self._out, flush=True)
