"""The one entrance works on a machine with nothing but Python, and says so where it cannot."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from devlib import environments, not_run, project, pythons, servers, testing
from devlib.console import DevError
from devlib.servers import gcs_proxy, kinds
from devlib.servers.process import Place, Process, free_port

ROOT = Path(__file__).resolve().parents[2]
DEV = ROOT / "dev.py"

LISTENER = """
import socket, sys, time
with socket.create_server(("127.0.0.1", int(sys.argv[1]))):
    print("here I am", flush=True)
    time.sleep(120)
"""


def dev(*arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, str(DEV), *arguments],
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


class TestTheEntrance:
    def test_it_parses_on_python_3_8(self):
        ast.parse(DEV.read_text(encoding="utf-8"), feature_version=(3, 8))

    @pytest.mark.parametrize("version", ["3.8", "3.9", "3.10"])
    def test_an_older_python_gets_one_sentence_that_names_the_version_needed(self, version):
        python = pythons.find(version)
        if python is None:
            pytest.skip(f"not applicable: there is no Python {version} on this machine")

        done = dev("test", python=str(python))

        assert done.returncode == 1
        assert done.stderr.startswith(f"dev.py needs Python 3.11 or newer; this is {version}.")
        assert len(done.stderr.splitlines()) == 1

    def test_every_verb_is_listed_with_what_it_does(self):
        done = dev("--help")

        assert done.returncode == 0
        for verb in ("demo", "test", "check", "servers", "docs", "bench", "release", "ci"):
            assert f"    {verb} " in done.stdout

    def test_an_unknown_argument_is_refused_except_by_test(self):
        assert dev("check", "--fast").returncode == 2

    def test_an_unknown_check_server_or_benchmark_is_answered_with_the_known_ones(self):
        with pytest.raises(DevError, match="There are: postgres, "):
            servers.chosen(["oracle"])
        done = dev("bench", "no-such-benchmark")
        assert done.returncode == 1
        assert "There is no benchmark 'no-such-benchmark'" in done.stderr

    def test_the_ci_script_is_the_verb_ci(self):
        script = ROOT / ".ci" / "run"

        assert os.access(script, os.X_OK)
        assert script.read_text(encoding="utf-8").rstrip().endswith("exec python3 dev.py ci")


class TestEnvironments:
    @pytest.fixture
    def made(self, monkeypatch, tmp_path):
        """Record the programs that would make an environment, instead of running them."""
        commands: list[list[str]] = []

        def record(command, **_):
            commands.append([str(word) for word in command])
            if "--without-pip" in commands[-1]:
                (tmp_path / "env" / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
            return "3.11"

        monkeypatch.setattr(environments, "run_quietly", record)
        monkeypatch.setattr(environments.shutil, "which", lambda name: None)
        return commands

    def has(self, monkeypatch, *modules):
        monkeypatch.setattr(environments, "_has", lambda python, module: module in modules)

    def test_the_standard_way_is_taken_where_ensurepip_is(self, made, monkeypatch, tmp_path):
        self.has(monkeypatch, "ensurepip", "venv", "pip", "virtualenv")
        environments._make(tmp_path / "env", Path(sys.executable))

        assert made == [[sys.executable, "-m", "venv", str(tmp_path / "env")]]

    def test_uv_makes_it_where_ensurepip_is_missing(self, made, monkeypatch, tmp_path):
        self.has(monkeypatch, "venv")
        monkeypatch.setattr(environments.shutil, "which", {"uv": "/opt/uv"}.get)
        environments._make(tmp_path / "env", Path(sys.executable))

        assert made[0][:3] == ["/opt/uv", "venv", "--seed"]

    def test_virtualenv_makes_it_next(self, made, monkeypatch, tmp_path):
        self.has(monkeypatch, "venv", "virtualenv", "pip")
        environments._make(tmp_path / "env", Path(sys.executable))

        assert made == [[sys.executable, "-m", "virtualenv", str(tmp_path / "env")]]

    def test_an_existing_pip_puts_itself_into_a_bare_environment(self, made, monkeypatch, tmp_path):
        self.has(monkeypatch, "venv", "pip")
        environments._make(tmp_path / "env", Path(sys.executable))

        assert "--without-pip" in made[0]
        assert made[1][1:5] == ["-m", "pip", "install", "--quiet"]

    def test_a_machine_with_none_of_them_gets_one_command_and_keeps_nothing(
        self, made, monkeypatch, tmp_path
    ):
        self.has(monkeypatch, "venv")
        monkeypatch.setattr(project, "MADE", tmp_path / "made")

        with pytest.raises(DevError, match="Nothing was made") as raised:
            environments.ensure(environments.Environment(name="bare"))

        assert "\n    " in str(raised.value)
        assert not list((tmp_path / "made").glob("bare-*/"))

    @pytest.mark.parametrize(
        ("release", "command"),
        [
            ('ID=debian\nVERSION_ID="12"\n', "apt-get install -y python3.11-venv"),
            ("ID=linuxmint\nID_LIKE=ubuntu\n", "apt-get install -y python3.11-venv"),
            ("ID=fedora\n", "dnf install -y python3-pip"),
            ("ID=alpine\n", "apk add py3-pip"),
            ("ID=someos\n", "install uv, virtualenv or pip with this system's package manager"),
        ],
    )
    def test_the_command_is_the_one_of_this_system(self, release, command, tmp_path):
        file = tmp_path / "os-release"
        file.write_text(release, encoding="utf-8")

        assert environments._remedy("3.11", file).removeprefix("sudo ") == command

    def test_a_changed_dependency_file_means_another_environment(self, monkeypatch, tmp_path):
        pins = tmp_path / "constraints.txt"
        monkeypatch.setattr(project, "CONSTRAINTS", pins)
        package = tmp_path / "package"
        package.mkdir()
        (package / "pyproject.toml").write_text("a", encoding="utf-8")
        wanted = environments.Environment(name="x", editable=(f"{package}[cli]",))
        python = Path(sys.executable)

        pins.write_text("one==1\n", encoding="utf-8")
        first = environments._fingerprint(wanted, python)
        assert environments._fingerprint(wanted, python) == first
        pins.write_text("one==2\n", encoding="utf-8")
        second = environments._fingerprint(wanted, python)
        (package / "pyproject.toml").write_text("b", encoding="utf-8")
        third = environments._fingerprint(wanted, python)

        assert len({first, second, third}) == 3

    def test_an_unconstrained_environment_does_not_depend_on_our_pins(self, monkeypatch, tmp_path):
        monkeypatch.setattr(project, "CONSTRAINTS", tmp_path / "missing.txt")
        emulator = environments.Environment(name="x", requirements=("y",), constrained=False)

        assert environments._fingerprint(emulator, Path(sys.executable))


class TestServers:
    def start(self, *arguments: str, **options) -> tuple[Process, int]:
        place, port = Place("listener"), free_port()
        command = [sys.executable, "-c", *arguments, str(port)]
        return Process(command, place=place, port=port, **options), port

    def test_a_server_is_ready_once_its_port_answers_and_gone_after_stop(self):
        server, port = self.start(LISTENER, ready_text="here I am")
        folder = server.place.path
        assert folder.is_dir()

        server.stop()

        assert not folder.exists()
        with pytest.raises(DevError, match="ended with"):
            # The port is free again: a server that dies at once is the only thing that answers.
            Process([sys.executable, "-c", "raise SystemExit(3)"], place=Place("dead"), port=port)

    @pytest.mark.parametrize("kill", [True, False], ids=["killed", "ended"])
    def test_a_server_that_is_started_again_runs_in_the_same_place_on_the_same_port(self, kill):
        server, _ = self.start(LISTENER, ready_text="here I am")
        kept = server.place.path / "kept"
        kept.touch()
        first = server._process

        server.restart(kill=kill)

        try:
            assert first.returncode == -(signal.SIGKILL if kill else signal.SIGTERM)
            assert server._process.poll() is None
            assert server._process.pid != first.pid
            assert kept.exists()
        finally:
            server.stop()

    def test_a_server_that_ends_early_is_reported_with_what_it_printed(self):
        with pytest.raises(DevError, match=r"ended with 1.*no licence"):
            self.start("raise SystemExit('no licence')")

    def test_a_server_that_ignores_the_end_is_killed(self):
        deaf = "import signal\nsignal.signal(signal.SIGUSR1, signal.SIG_IGN)\n" + LISTENER
        server, _ = self.start(deaf, ready_text="here I am", stop_signal=signal.SIGUSR1)
        server._patience = 0.2
        server.stop()

        assert server._process.returncode == -signal.SIGKILL

    def test_one_server_that_cannot_be_had_leaves_the_others_running(self):
        ended = []

        class Part:
            def stop(self):
                ended.append("good")

        def good(install):
            return kinds.Started(environ={"GOOD": "1"}, about="good", parts=(Part(),))

        def bad(install):
            raise DevError("no such program")

        def kind(name, start):
            return kinds.Kind(name=name, summary="", variables=(), start=start, needs="")

        with kinds.running([kind("bad", bad), kind("good", good)], install=False) as running:
            assert running.environ == {"GOOD": "1"}
            assert running.missing == {"bad": "no such program"}
            assert ended == []
        assert ended == ["good"]

    def test_a_package_of_the_system_is_never_installed_unasked(self, monkeypatch):
        from devlib.servers import apt

        monkeypatch.setattr(apt.shutil, "which", lambda name: "/usr/bin/apt-get")
        monkeypatch.setattr(apt, "run_quietly", lambda *a, **k: pytest.fail("it ran apt-get"))

        with pytest.raises(DevError, match="apt-get install -y"):
            apt.install("mariadb-server-core", allowed=False)

    @pytest.mark.parametrize(
        ("query", "status"),
        [
            ({"ifGenerationMatch": ["5"]}, None),
            ({"ifGenerationMatch": ["4"]}, 412),
            ({"ifGenerationNotMatch": ["5"]}, 304),
            ({"ifMetagenerationMatch": ["1"]}, None),
            ({"ifMetagenerationMatch": ["2"]}, 412),
            ({"ifGenerationMatch": ["5"], "ifMetagenerationMatch": ["2"]}, 412),
            ({}, None),
        ],
    )
    def test_the_proxy_for_gcs_judges_conditions(self, query, status):
        assert gcs_proxy.unmet(query, 5, 1) == status

    def test_the_table_of_variables_in_the_docstring_is_the_truth(self):
        for kind in servers.ALL:
            assert f"| {kind.name} | {', '.join(kind.variables)} |" in servers.__doc__


class TestTheReport:
    def report(self, tmp_path, skipped, **counts):
        file = tmp_path / "report.json"
        numbers = {"passed": 0, "failed": 0, "error": 0, **counts}
        file.write_text(json.dumps({"counts": numbers, "skipped": skipped}), encoding="utf-8")
        return file

    def test_a_skip_is_listed_as_not_run_with_its_reason(self, tmp_path, capsys):
        outcome = testing.Outcome()
        skipped = [["a", "no PostgreSQL here", True], ["b", "no PostgreSQL here", True]]
        outcome.add(0, self.report(tmp_path, skipped, passed=3))

        code = testing._close(outcome, {"mariadb": "not installed"}, testing.Choice(), 1)

        text = capsys.readouterr().out
        assert code == 0
        assert "2 tests: no PostgreSQL here" in text
        assert "server mariadb: not installed" in text
        assert text.splitlines()[-1] == "3 passed, 0 failed, 2 skipped"

    def test_a_complete_run_fails_when_anything_was_not_run(self, tmp_path):
        outcome = testing.Outcome()
        outcome.add(0, self.report(tmp_path, [["a", "no PostgreSQL here", True]], passed=3))

        assert testing._close(outcome, {}, testing.Choice(complete=True), 1) == 1

    def test_what_does_not_apply_is_no_gap(self, tmp_path):
        outcome = testing.Outcome()
        skipped = [["a", "unsupported: memory keeps nothing", False]]
        outcome.add(0, self.report(tmp_path, skipped, passed=1))

        assert testing._close(outcome, {}, testing.Choice(complete=True), 1) == 0

    def test_a_run_that_wrote_no_report_has_failed(self, tmp_path):
        outcome = testing.Outcome()
        outcome.add(0, tmp_path / "missing.json")

        assert outcome.code == 1

    def test_no_test_at_all_is_no_success(self, tmp_path):
        outcome = testing.Outcome()
        outcome.add(5, self.report(tmp_path, []))

        assert testing._close(outcome, {}, testing.Choice(), 1) == 5

    def test_one_failed_run_is_not_hidden_by_a_later_success(self, tmp_path):
        outcome = testing.Outcome()
        outcome.add(1, self.report(tmp_path, [], passed=1, failed=1))
        outcome.add(0, self.report(tmp_path, [], passed=1))

        assert outcome.code == 1
        assert (outcome.passed, outcome.failed) == (2, 1)

    @pytest.mark.parametrize(
        ("reason", "required", "gap"),
        [
            ("unsupported: memory keeps nothing", None, False),
            ("not applicable: there is no Python 3.8", None, False),
            ("not run: no postgres server", None, True),
            ("not run: the hook 'spawn' is not given", False, False),
            ("not run: the hook 'spawn' is not given", True, True),
        ],
    )
    def test_a_skip_is_a_gap_unless_it_does_not_apply_or_the_profile_does_not_ask(
        self, reason, required, gap
    ):
        case = json.dumps({"cases": [{"required": required}]})

        class Report:
            longrepr = ("file", 1, f"Skipped: {reason}")
            user_properties = () if required is None else (("wenchang", case),)

        assert not_run._is_gap(Report()) is gap


def test_what_only_the_first_python_runs_is_there():
    tests = project.packages()["wenchang-core"].folder / "tests"
    assert [name for name in testing.FIRST_PYTHON_ONLY if not (tests / name).exists()] == []
