"""Starting a server program on loopback and ending exactly that program again."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from devlib.console import DevError, clean_environ


def free_port() -> int:
    """Return a loopback port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def unprivileged(*names: str) -> str | None:
    """Return the account to run a server as: None for the present one, unless that is root.

    Database servers refuse to run as root; the first of `names` that exists takes over.
    """
    if os.getuid() != 0:
        return None
    for name in names:
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise DevError(f"running as root, and there is none of the accounts {', '.join(names)}")


class Place:
    """A temporary folder that belongs to the account the server runs as."""

    def __init__(self, name: str, user: str | None = None) -> None:
        self.user = user
        self.path = Path(tempfile.mkdtemp(prefix=f"wenchang-{name}-"))
        self.path.chmod(0o755)
        self.own(self.path)

    def own(self, path: Path) -> None:
        """Give `path` to the account of the server."""
        if self.user is not None:
            shutil.chown(path, self.user, pwd.getpwnam(self.user).pw_gid)

    def folder(self, name: str) -> Path:
        """Make a private folder inside."""
        made = self.path / name
        made.mkdir(mode=0o700)
        self.own(made)
        return made

    def remove(self) -> None:
        """Delete the folder with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)


def identity(user: str | None) -> dict[str, object]:
    """Return the arguments with which subprocess runs a program as `user`."""
    if user is None:
        return {}
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def once(command: Sequence[str | Path], place: Place, *, what: str) -> None:
    """Run a program to its end as the server's account, inside its folder.

    Raises:
        DevError: it failed; the text ends with what it printed last.
    """
    done = subprocess.run(
        [str(word) for word in command],
        cwd=place.path,
        env=clean_environ(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=120,
        check=False,
        **identity(place.user),  # type: ignore[call-overload] # one dict for user, group, groups
    )
    if done.returncode != 0:
        tail = " / ".join(done.stdout.strip().splitlines()[-4:])
        raise DevError(f"{what} failed with exit code {done.returncode}: {tail}")


class Process:
    """A running server: started by the constructor, ended by `stop`.

    The constructor returns once the port accepts connections and, where `ready_text` is given,
    the log holds that text. It raises DevError with the end of the log if the program ends before
    or takes longer than `timeout` seconds; nothing is left running then.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        place: Place,
        port: int,
        env: Mapping[str, str] | None = None,
        ready_text: str = "",
        stop_signal: signal.Signals = signal.SIGTERM,
        timeout: float = 60,
    ) -> None:
        self.place = place
        self._command = [str(word) for word in command]
        self._port = port
        self._env = clean_environ(env)
        self._ready_text = ready_text
        self._timeout = timeout
        self._stop_signal = stop_signal
        self._patience = 10.0
        self._name = Path(command[0]).name
        self._log = place.path / "server.log"
        self._log.touch()
        self._launch()

    def _launch(self) -> None:
        self._before = self._log.stat().st_size
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self.place.path,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **identity(self.place.user),  # type: ignore[call-overload] # as in once()
            )
        try:
            self._wait(time.monotonic() + self._timeout)
        except BaseException:
            self.stop()
            raise

    def restart(self, *, kill: bool) -> None:
        """End the program, by SIGKILL or as it wants to be ended, and start it again on what it left.

        Raises DevError as the constructor does.
        """
        if kill:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(self._patience)
        else:
            self._end()
        self._launch()

    def _wait(self, deadline: float) -> None:
        while True:
            if self._process.poll() is not None:
                raise DevError(
                    f"{self._name} ended with {self._process.returncode}: {self._tail()}"
                )
            if self._ready_text in self._text() and _accepts(self._port):
                return
            if time.monotonic() > deadline:
                raise DevError(f"{self._name} was not ready in time: {self._tail()}")
            time.sleep(0.02)

    def _text(self) -> str:
        """Return what was logged since the last start."""
        return self._log.read_bytes()[self._before :].decode("utf-8", errors="replace")

    def _tail(self) -> str:
        return " / ".join(self._text().strip().splitlines()[-4:]) or "it printed nothing"

    def stop(self) -> None:
        """End the program and everything it started, then delete its folder."""
        self._end()
        self.place.remove()

    def _end(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(self._stop_signal)
            try:
                self._process.wait(self._patience)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(10)
        # What it may have left behind; the group is ours alone, the session was made for it.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


def _accepts(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 0.5):
            return True
    except OSError:
        return False
