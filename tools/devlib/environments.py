"""Making the virtual environments that everything runs in.

One environment for each purpose and Python version, under `.dev/`. Each carries a stamp of what it
was made from; when a dependency file changes, the environment is made anew, since an upgrade in
place can leave what a fresh machine would not have.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devlib import project
from devlib.console import DevError, clean_environ, run_quietly, timed

_FORMAT = "1"  # raised when this module makes environments differently


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What an environment holds.

    Attributes:
        name: the purpose, which names the folder.
        requirements: what to install from the package index.
        editable: our own packages, as arguments of `pip install -e`.
        constrained: whether `constraints.txt` applies. Emulators pin other versions than we do.
    """

    name: str
    requirements: tuple[str, ...] = ()
    editable: tuple[str, ...] = ()
    constrained: bool = True


def demo() -> Environment:
    """Return the environment of the demo: what a person who installs `wenchang` gets."""
    packages = project.packages()
    return Environment(
        name="demo",
        requirements=project.group("build"),
        editable=(
            packages["wenchang-core"].requirement("cli", "mcp"),
            packages["wenchang-sql"].requirement(),
        ),
    )


def _everything() -> tuple[str, ...]:
    return tuple(
        package.requirement("all") if "all" in package.extras else package.requirement()
        for package in project.packages().values()
    )


def test() -> Environment:
    """Return the environment of tests and static checks: every package with every extra."""
    return Environment(
        name="test", requirements=project.group("build", "test", "check"), editable=_everything()
    )


def other_python() -> Environment:
    """Return the environment for the tests of core on a further Python: what those import."""
    packages = project.packages()
    return Environment(
        name="core",
        requirements=project.group("build", "test"),
        editable=(
            packages["wenchang-core"].requirement("cli", "mcp", "files", "testing"),
            packages["wenchang-sql"].requirement(),
            packages["wenchang-conformance"].requirement(),
        ),
    )


def docs() -> Environment:
    """Return the environment that builds the documentation."""
    return Environment(name="docs", requirements=project.group("docs"))


def release() -> Environment:
    """Return the environment that builds and checks distributions."""
    return Environment(name="release", requirements=project.group("build", "release"))


def ensure(environment: Environment, python: Path | None = None) -> Path:
    """Make `environment` unless it is there and current; return its Python.

    Args:
        environment: what it holds.
        python: the interpreter to make it for; the running one by default.

    Raises:
        DevError: it could not be made. Nothing is left behind that a later call would mistake
            for a finished environment.
    """
    base = python or Path(sys.executable)
    version = _version_of(base)
    folder = project.MADE / f"{environment.name}-py{version}"
    inside = folder / "bin" / "python"
    stamp = folder / "wenchang-dev.stamp"
    wanted = _fingerprint(environment, base)
    with _alone(folder):
        if inside.exists() and stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
            return inside
        if folder.exists():
            shutil.rmtree(folder)
        with timed(f"making the environment {environment.name!r} for Python {version}"):
            try:
                _make(folder, base)
                _install(inside, environment)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
        stamp.write_text(wanted, encoding="utf-8")
    return inside


def _version_of(python: Path) -> str:
    if python == Path(sys.executable):
        return f"{sys.version_info.major}.{sys.version_info.minor}"
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    return run_quietly([python, "-I", "-c", ask], what=f"asking {python} for its version").strip()


def _fingerprint(environment: Environment, python: Path) -> str:
    parts = [_FORMAT, str(python.resolve()), *environment.requirements, "--", *environment.editable]
    files = [path / "pyproject.toml" for path in map(_folder_of, environment.editable)]
    if environment.constrained:
        files.append(project.CONSTRAINTS)
    parts += [file.read_text(encoding="utf-8") for file in files]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _folder_of(editable: str) -> Path:
    return Path(editable.partition("[")[0])


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a lock, so that two runs of dev.py never make one environment at once."""
    folder.parent.mkdir(exist_ok=True)
    with folder.with_name(folder.name + ".lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(folder: Path, python: Path) -> None:
    """Make an environment with pip in it, by the first way that this machine offers."""
    if _has(python, "ensurepip"):
        run_quietly([python, "-m", "venv", folder], what="python -m venv")
    elif uv := shutil.which("uv"):
        run_quietly([uv, "venv", "--seed", "--python", python, folder], what="uv venv")
    elif _has(python, "virtualenv"):
        run_quietly([python, "-m", "virtualenv", folder], what="virtualenv")
    elif virtualenv := shutil.which("virtualenv"):
        run_quietly([virtualenv, "--python", python, folder], what="virtualenv")
    elif _has(python, "venv") and _has(python, "pip"):
        # --target is allowed where the system's Python is marked as externally managed.
        run_quietly([python, "-m", "venv", "--without-pip", folder], what="python -m venv")
        (packages,) = folder.glob("lib/python3*/site-packages")
        run_quietly(
            [python, "-m", "pip", "install", "--quiet", "--target", packages, "pip"],
            what="installing pip",
        )
    else:
        raise DevError(
            f"This Python ({python}) can make no environment: it has neither ensurepip nor pip,\n"
            "and neither uv nor virtualenv is installed. Nothing was made. This helps:\n\n"
            f"    {_remedy(_version_of(python))}\n"
        )


def _has(python: Path, module: str) -> bool:
    """Say whether `python` can import `module`, asked outside this repository."""
    asked = subprocess.run(
        [python, "-c", f"import {module}"],
        cwd="/",
        env=clean_environ(),
        capture_output=True,
        check=False,
    )
    return asked.returncode == 0


_COMMANDS = {
    "debian": "apt-get install -y python{version}-venv",
    "ubuntu": "apt-get install -y python{version}-venv",
    "fedora": "dnf install -y python3-pip",
    "rhel": "dnf install -y python{version}-pip",
    "suse": "zypper install -y python3-pip",
    "arch": "pacman -S --noconfirm python-pip",
    "alpine": "apk add py3-pip",
}


def _remedy(version: str, os_release: Path = Path("/etc/os-release")) -> str:
    """Return the one command that gives this system's Python a way to make environments."""
    fields: dict[str, str] = {}
    if os_release.is_file():
        for line in os_release.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            fields[name] = value.strip('"')
    for family in [fields.get("ID", ""), *fields.get("ID_LIKE", "").split()]:
        if family in _COMMANDS:
            sudo = "" if os.getuid() == 0 else "sudo "
            return sudo + _COMMANDS[family].format(version=version)
    return "install uv, virtualenv or pip with this system's package manager"


def _install(python: Path, environment: Environment) -> None:
    pip: list[str | Path] = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        # Python compiles what it imports; of these packages that is a fraction.
        "--no-compile",
    ]
    if environment.constrained:
        pip += ["--constraint", project.CONSTRAINTS]
    env = clean_environ()
    what = f"installing the environment {environment.name!r}"
    if environment.requirements:
        run_quietly([*pip, *environment.requirements], what=what, env=env)
    if environment.editable:
        # One command, so that the packages find each other; the build backend is there already.
        editable = [word for package in environment.editable for word in ("--editable", package)]
        run_quietly([*pip, "--no-build-isolation", *editable], what=what, env=env)
