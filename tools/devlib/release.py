"""`dev.py release`: build every distribution and check it as the one who installs it would.

Nothing is published. The files lie in `.dev/release/dist` afterwards.
"""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from pathlib import Path

from devlib import environments, project
from devlib.console import DevError, clean_environ, heading, run_quietly, say

OUT = project.MADE / "release" / "dist"


def build() -> int:
    """Build, check and install the distributions; return 0 if all of it succeeded.

    Raises:
        DevError: at the first thing that is not right, with what it is.
    """
    python = environments.ensure(environments.release())
    packages = list(project.packages().values())
    shutil.rmtree(OUT, ignore_errors=True)
    heading("building")
    for folder in [project.ROOT, *(package.folder for package in packages)]:
        command = [python, "-m", "build", "--no-isolation", "--outdir", OUT, folder]
        run_quietly(command, what=f"building {folder.name}", env=clean_environ())
    files = sorted(OUT.iterdir())
    heading("checking")
    run_quietly([python, "-m", "twine", "check", "--strict", *files], what="twine check")
    for package in packages:
        _check_wheel(package)
    _check_bare_wheel()
    heading("installing the wheels into an environment of their own")
    _prove(packages)
    heading("news since the last release")
    for package in packages:
        pyproject = package.folder / "pyproject.toml"
        version = project.table(pyproject)["project"]["version"]
        command = [python, "-m", "towncrier", "build", "--draft", "--version", version]
        where = ["--dir", package.folder, "--config", pyproject]
        text = run_quietly([*command, *where], what="towncrier").strip()
        say(f"   {package.distribution}: {_news(text)}")
    say(f"\n{len(files)} files are ready in {OUT}.")
    return 0


def _wheel(distribution: str) -> Path:
    (wheel,) = OUT.glob(f"{distribution.replace('-', '_')}-[0-9]*.whl")
    return wheel


def _check_wheel(package: project.Package) -> None:
    """Refuse a wheel that lacks its types or licence, or that carries more than its package."""
    names = zipfile.ZipFile(_wheel(package.distribution)).namelist()
    if f"{package.module}/py.typed" not in names:
        raise DevError(f"{package.distribution}: the wheel has no py.typed")
    if not any(name.endswith("licenses/LICENSE") for name in names):
        raise DevError(f"{package.distribution}: the wheel has no LICENSE")
    top = {name.partition("/")[0] for name in names}
    stray = {name for name in top if name != package.module and not name.endswith(".dist-info")}
    if stray:
        raise DevError(f"{package.distribution}: the wheel also holds {', '.join(sorted(stray))}")
    (archive,) = OUT.glob(f"{package.distribution.replace('-', '_')}-[0-9]*.tar.gz")
    with tarfile.open(archive) as sdist:
        if not any(name.endswith(f"src/{package.module}/__init__.py") for name in sdist.getnames()):
            raise DevError(f"{package.distribution}: the source distribution has no source")
    say(f"   {package.distribution}: {len(names)} files")


def _check_bare_wheel() -> None:
    names = zipfile.ZipFile(_wheel("wenchang")).namelist()
    code = [name for name in names if ".dist-info/" not in name]
    if code:
        raise DevError(f"wenchang is to have no code of its own, but holds {', '.join(code)}")
    say(f"   wenchang: {len(names)} files, none of them code")


def _prove(packages: list[project.Package]) -> None:
    """Install all wheels and use them: import each, and run the command."""
    wheels = [str(path) for path in sorted(OUT.glob("*.whl"))]
    folder = project.MADE / "release"
    for old in folder.glob("proof-*/"):
        shutil.rmtree(old)  # it knows the wheels by name, not by what they hold now
    environment = environments.Environment(name="release/proof", requirements=tuple(wheels))
    python = environments.ensure(environment)
    for package in packages:
        command = [python, "-I", "-c", f"import {package.module}"]
        run_quietly(command, what=f"importing {package.module}", cwd=folder)
    command = [python.with_name("wenchang"), "version"]
    say("   " + run_quietly(command, what="wenchang version", cwd=folder).strip())


def _news(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    return f"{len(lines)} entries" if lines else "none"
