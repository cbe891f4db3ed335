"""`dev.py check`: everything that is judged without running the product."""

from __future__ import annotations

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from devlib import environments, project
from devlib.console import DevError, clean_environ, heading, say

_TYPED_TESTS = "tests/typing/outside_backend.py"


def _commands(python: Path) -> dict[str, list[list[str]]]:
    """Return the checks by name; each is one or more commands that must all succeed."""
    tool = {
        name: str(python.with_name(name))
        for name in ("ruff", "mypy", "basedpyright", "lint-imports", "deptry")
    }
    pyright = [tool["basedpyright"], "--pythonpath", str(python)]
    return {
        "lint": [[tool["ruff"], "check", "--output-format=concise", "."]],
        "format": [[tool["ruff"], "format", "--check", "."]],
        "types": [[tool["mypy"]], [tool["mypy"], "dev.py", "tools/devlib", _TYPED_TESTS]],
        "public-types": [[*pyright], [*pyright, _TYPED_TESTS]],
        "layers": [[tool["lint-imports"], "--no-logo"]],
        "dependencies": [
            [
                tool["deptry"],
                str(package.folder / "src"),
                "--no-ansi",
                "--config",
                str(package.folder / "pyproject.toml"),
            ]
            for package in project.packages().values()
        ],
    }


def run_checks(only: list[str]) -> int:
    """Run the checks, all of them even after one has failed; return 1 if any failed.

    Raises:
        DevError: a name in `only` is no check; the text lists those there are.
    """
    python = environments.ensure(environments.test())
    commands = _commands(python)
    for name in only:
        if name not in commands:
            raise DevError(f"There is no check {name!r}. There are: {', '.join(commands)}.")
    env = clean_environ({"MYPYPATH": str(project.ROOT / "tools"), "NO_COLOR": "1"})
    heading("checks")
    names = only or list(commands)
    # Each uses one core; the two slow ones, of types, run side by side.
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda name: _run(commands[name], env), names)
        failed = [
            name for name, result in zip(names, results, strict=True) if not _told(name, result)
        ]
    say()
    say(f"{len(failed)} of {len(names)} checks failed" if failed else "all checks passed")
    return 1 if failed else 0


@dataclass(frozen=True, slots=True)
class _Result:
    """What the commands of one check came to."""

    passed: bool
    output: str
    seconds: float


def _run(commands: list[list[str]], env: dict[str, str]) -> _Result:
    """Run the commands of one check, all of them; keep the output of those that fail."""
    begin = time.monotonic()
    failed = []
    for command in commands:
        done = subprocess.run(
            command,
            cwd=project.ROOT,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode != 0:
            failed.append(done.stdout)
    return _Result(not failed, "".join(failed), time.monotonic() - begin)


def _told(name: str, result: _Result) -> bool:
    """Say how a check ended, and return whether it passed."""
    say(f"   {name:14} {'ok' if result.passed else 'failed'}  ({result.seconds:.1f} s)")
    if not result.passed:
        say("\n".join(f"      {line}" for line in result.output.strip().splitlines()))
    return result.passed
