"""Discovery with real distributions on disk: each error, and no plug-in in another's way."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pickle
import subprocess
import sys
import textwrap
import types

import pytest

from wenchang.storage import (
    BackendBroken,
    BackendConflict,
    BackendDescriptor,
    BackendIncompatible,
    BackendNotInstalled,
    DiscoveryError,
    StorageConfigurationError,
    StorageLocation,
    UnknownBackend,
    find_backend,
    list_backends,
    open_storage,
)
from wenchang.storage import registry as registry_module

GOOD = """
    from dataclasses import dataclass
    from wenchang.storage import BackendDescriptor

    LOADED = True

    @dataclass(frozen=True, kw_only=True)
    class Options:
        region: str = "here"

    class Nothing:
        def __init__(self, location): self.location, self.options = location, location.options_as(Options)
        def get(self, key): return None
        def put(self, key, data, metadata): return "1"
        def put_if_version(self, key, data, metadata, expected): return "1"
        def delete_if_version(self, key, expected): return None
        def list_page(self, prefix, start_after, limit): return []

    BACKEND = BackendDescriptor(
        name="{name}", contract="{contract}", summary="keeps nothing", options=Options, open=Nothing
    )
"""


def good(name, contract="1.0"):
    """Return the source of a module with one backend."""
    return textwrap.dedent(GOOD).replace("{name}", name).replace("{contract}", contract)


class Site:
    """A folder on `sys.path` with distributions of the test's making."""

    def __init__(self, folder):
        self.folder = folder

    def distribution(self, name, entry_points, *, version="1.2", metadata=None, module=None):
        """Write the metadata of a distribution, as an installer does."""
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = "\n".join(f"{key} = {value}" for key, value in entry_points.items())
        (info / "entry_points.txt").write_text(f"[wenchang.storage]\n{lines}\n", encoding="utf-8")
        if metadata is None:
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        if metadata:
            (info / "METADATA").write_text(metadata, encoding="utf-8")
        return info

    def module(self, name, source):
        (self.folder / f"{name}.py").write_text(textwrap.dedent(source), encoding="utf-8")

    def backend(self, name, *, distribution=None, contract="1.0", module=None, version="1.2"):
        """Write a distribution with one good backend."""
        distribution = distribution or f"wenchang-{name}"
        module = module or distribution.replace("-", "_")
        self.distribution(distribution, {name: f"{module}:BACKEND"}, version=version)
        self.module(module, good(name, contract))

    def broken(self, name, source, attribute="BACKEND"):
        """Write a distribution whose module is `source`."""
        self.distribution(f"{name}-plugin", {name: f"{name}_plugin:{attribute}"})
        self.module(f"{name}_plugin", source)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """An interpreter in which nothing is installed but what the test writes, and pip."""
    bare = [path for path in sys.path if "site-packages" not in path]
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), *bare])
    before = set(sys.modules)
    site = Site(folder)
    monkeypatch.setitem(sys.modules, "pip", types.ModuleType("pip"))
    sys.modules["pip"].__spec__ = object()
    yield site
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(str(tmp_path)):
            del sys.modules[name]


def state_of(name):
    return {line.name: line.state for line in list_backends()}.get(name)


def the_error(kind, name, **arguments):
    with pytest.raises(kind) as caught:
        open_storage(f"{name}://x", source="--storage", **arguments)
    text = str(caught.value)
    assert "--storage" in text
    assert "nstalled here" in text
    assert text.count(sys.executable) == 1
    assert type(pickle.loads(pickle.dumps(caught.value))) is kind
    return caught.value


class TestOpening:
    def test_a_backend_is_found_by_the_scheme_and_given_location_and_options(self, site):
        site.backend("acme")
        storage = open_storage(
            "acme://there?region=x", source="WENCHANG_STORAGE", provider="Wenchang_Acme"
        )
        assert storage.location.address == "there"
        assert storage.location.source == "WENCHANG_STORAGE"
        assert storage.options.region == "x"

    def test_a_location_that_was_parsed_before_is_opened_as_it_is(self, site):
        site.backend("acme")
        location = StorageLocation.parse("acme://there", options={"region": "y"})
        assert open_storage(location).location is location
        with pytest.raises(TypeError):
            open_storage(location, options={"region": "z"})

    def test_init_fail_an_unknown_option_is_refused_before_anything_is_opened(self, site):
        site.backend("acme")
        with pytest.raises(StorageConfigurationError, match="It has: region"):
            open_storage("acme://there?colour=red")

    def test_only_the_named_backend_is_imported(self, site):
        site.backend("acme")
        site.backend("other")
        open_storage("acme://x")
        assert "wenchang_acme" in sys.modules
        assert "wenchang_other" not in sys.modules

    def test_finding_a_backend_opens_nothing(self, site):
        site.backend("acme")
        descriptor = find_backend("acme")
        assert isinstance(descriptor, BackendDescriptor)
        assert descriptor.summary == "keeps nothing"

    def test_what_the_backend_itself_raises_is_passed_on(self, site):
        site.broken(
            "acme",
            good("acme")
            + "def refuse(location):\n    raise OSError('no such folder')\n"
            + "object.__setattr__(BACKEND, 'open', refuse)\n",
        )
        with pytest.raises(OSError, match="no such folder"):
            open_storage("acme://x")


class TestMissing:
    @pytest.mark.parametrize(
        ("name", "requirement"),
        [
            ("sqlite", '"wenchang[sql]"'),
            ("postgresql", '"wenchang[postgres]"'),
            ("mysql", '"wenchang[mysql]"'),
            ("mariadb", '"wenchang[mysql]"'),
            ("s3", '"wenchang[s3]"'),
            ("gs", '"wenchang[gcs]"'),
            ("az", '"wenchang[azure]"'),
            ("memory", "--force-reinstall wenchang-core"),
        ],
    )
    def test_a_backend_of_ours_names_the_extra_to_install(self, site, name, requirement):
        site.backend("acme")
        text = str(the_error(BackendNotInstalled, name))
        assert text.endswith(f"{sys.executable} -m pip install {requirement}")
        assert "Installed here: acme." in text

    @pytest.mark.parametrize(
        ("name", "meant"),
        [("acmee", "acme"), ("ss3", "s3"), ("azure", "az"), ("postgres", "postgresql")],
    )
    def test_a_misspelt_name_gets_a_suggestion(self, site, name, meant):
        site.backend("acme")
        assert f"Did you mean '{meant}'?" in str(the_error(UnknownBackend, name))

    def test_a_name_like_no_other_gets_the_command_that_lists_them(self, site):
        text = str(the_error(UnknownBackend, "x" * 300))
        assert "Did you mean" not in text
        assert "Installed here: none" in text
        assert text.endswith(f"{sys.executable} -m wenchang.storage")
        assert len(text) < 300

    def test_without_pip_the_command_is_for_uv(self, site, monkeypatch):
        monkeypatch.setattr(registry_module.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(BackendNotInstalled) as caught:
            open_storage("s3://x")
        command = f'uv pip install --python {sys.executable} "wenchang[s3]"'
        assert str(caught.value).endswith(command)

    def test_a_backend_installed_after_a_failure_is_found_at_once(self, site):
        the_error(UnknownBackend, "acme")
        site.backend("acme")
        assert open_storage("acme://x") is not None

    def test_a_backend_installed_within_the_resolution_of_the_clock_is_found(self, site):
        os.utime(site.folder, (1_000_000_000, 1_000_000_000))
        assert importlib.util.find_spec("wenchang_acme") is None
        the_error(UnknownBackend, "acme")
        site.backend("acme")
        os.utime(site.folder, (1_000_000_000, 1_000_000_000))
        assert open_storage("acme://x") is not None

    def test_a_plug_in_repaired_after_a_failure_is_loaded_at_once(self, site):
        site.broken("acme", "import no_such_sdk_at_all")
        the_error(BackendNotInstalled, "acme")
        site.module("no_such_sdk_at_all", "")
        site.module(
            "acme_plugin",
            good("acme") + "\n# longer than before\n",
        )
        assert open_storage("acme://x") is not None

    def test_a_missing_sdk_names_the_package_and_the_distribution_to_install(self, site):
        site.broken("acme", "import no_such_sdk.client")
        error = the_error(BackendNotInstalled, "acme")
        assert "'no_such_sdk'" in str(error)
        assert str(error).endswith(f"{sys.executable} -m pip install acme-plugin")
        assert isinstance(error.__cause__, ModuleNotFoundError)

    def test_a_missing_sdk_of_a_backend_of_ours_names_the_extra(self, site):
        site.distribution("wenchang-s3", {"s3": "our_s3:BACKEND"})
        site.module("our_s3", "import no_such_sdk")
        assert str(the_error(BackendNotInstalled, "s3")).endswith('install "wenchang[s3]"')

    def test_an_sdk_that_is_missing_only_when_the_storage_is_opened_is_named_too(self, site):
        site.broken(
            "acme",
            """
            from dataclasses import make_dataclass
            from wenchang.storage import BackendDescriptor

            def open_it(location):
                import no_such_sdk

            BACKEND = BackendDescriptor(
                name="acme", contract="1.0", summary="", options=make_dataclass("O", []), open=open_it
            )
            """,
        )
        assert "'no_such_sdk'" in str(the_error(BackendNotInstalled, "acme"))
        assert find_backend("acme").name == "acme"


class TestBroken:
    @pytest.mark.parametrize(
        ("source", "cause"),
        [
            ("from os import no_such_name", ImportError),
            ("import acme_plugin.nothing", ModuleNotFoundError),
            ("import wenchang.no_such_module", ModuleNotFoundError),
            ("def broken(:", SyntaxError),
            ("raise SystemExit(3)", SystemExit),
            ("raise RuntimeError('hunter2')", RuntimeError),
            ("raise BaseException", BaseException),
            ("class E(BaseException): pass\nraise E", BaseException),
            ("1 / 0", ZeroDivisionError),
            ("OTHER = 1", AttributeError),
            ("import wenchang.storage as s; BACKEND = s.BackendDescriptor(name='acme')", TypeError),
        ],
    )
    def test_a_plug_in_that_cannot_be_loaded_is_broken_with_the_cause_chained(
        self, site, source, cause
    ):
        site.broken("acme", source)
        error = the_error(BackendBroken, "acme")
        assert isinstance(error.__cause__, cause)
        for part in ("acme-plugin 1.2", "acme_plugin:BACKEND"):
            assert part in str(error)
        assert "hunter2" not in str(error)

    @pytest.mark.parametrize("source", ["BACKEND = 'text'", "class BACKEND: name = 'acme'"])
    def test_something_that_is_no_descriptor_is_broken(self, site, source):
        site.broken("acme", source)
        assert "not a BackendDescriptor" in str(the_error(BackendBroken, "acme"))

    def test_a_descriptor_of_another_name_is_broken(self, site):
        site.broken("acme", good("emca"))
        assert "'emca'" in str(the_error(BackendBroken, "acme"))

    def test_a_backend_that_opens_no_storage_is_broken(self, site):
        source = good("acme")
        site.broken("acme", source.replace("open=Nothing", "open=lambda location: None"))
        assert "no storage" in str(the_error(BackendBroken, "acme"))

    def test_an_interrupt_while_a_plug_in_loads_is_not_swallowed(self, site):
        site.broken("acme", "raise KeyboardInterrupt")
        with pytest.raises(KeyboardInterrupt):
            open_storage("acme://x")

    def test_no_broken_plug_in_or_metadata_stops_another(self, site):
        site.broken("bad", "raise SystemExit")
        site.broken("worse", "def (")
        for number, text in enumerate([b"\xff\xfe", b"[wenchang.storage\nx", b"a = b = c\n\x00"]):
            info = site.distribution(f"mangled{number}", {})
            (info / "entry_points.txt").write_bytes(text)
        site.distribution("unnamed", {"anon": "anon_plugin:BACKEND"}, metadata="")
        site.module("anon_plugin", good("anon"))
        info = site.distribution("garbled", {"noise": "anon_plugin:BACKEND"})
        (info / "METADATA").write_bytes(b"\xff\xfe\x00")
        (site.folder / "empty-1.0.dist-info").mkdir()
        site.backend("acme")
        assert open_storage("acme://x") is not None
        assert open_storage("anon://x") is not None
        states = {line.name: line.state for line in list_backends()}
        assert states["acme"] == states["anon"] == "ok"
        assert states["bad"] == states["worse"] == "broken"

    def test_a_distribution_that_raises_anything_hides_only_itself(self, site, monkeypatch):
        class Unreadable:
            entry_points = property(lambda self: 1 / 0)

        class Nameless:
            metadata = property(lambda self: 1 / 0)
            entry_points = (
                importlib.metadata.EntryPoint("anon", "anon_plugin:BACKEND", "wenchang.storage"),
            )

        site.backend("acme")
        site.module("anon_plugin", good("anon"))
        real = list(importlib.metadata.distributions())
        monkeypatch.setattr(
            importlib.metadata, "distributions", lambda: [Unreadable(), Nameless(), *real]
        )
        assert open_storage("acme://x") is not None
        assert open_storage("anon://x") is not None
        assert state_of("anon") == "ok"


class TestIncompatible:
    @pytest.mark.parametrize(
        ("contract", "outdated"),
        [("0.9", "wenchang-acme"), ("2.0", "wenchang-core"), ("10.0", "wenchang-core")],
    )
    def test_another_major_version_is_refused_and_the_older_side_is_to_be_upgraded(
        self, site, contract, outdated
    ):
        site.backend("acme", contract=contract)
        text = str(the_error(BackendIncompatible, "acme"))
        assert contract in text
        assert text.endswith(f"pip install --upgrade {outdated}")
        assert state_of("acme") == "incompatible"

    def test_another_minor_version_is_compatible(self, site):
        site.backend("acme", contract="1.7")
        assert open_storage("acme://x") is not None


class TestConflict:
    @pytest.fixture
    def two(self, site):
        site.backend("acme", distribution="acme-one")
        site.backend("acme", distribution="acme-two")
        return site

    def test_two_distributions_with_one_name_are_a_conflict_that_names_both(self, two):
        text = str(the_error(BackendConflict, "acme"))
        assert "acme-one 1.2" in text
        assert "acme-two 1.2" in text
        assert "provider = " in text
        assert "acme_one" not in sys.modules

    @pytest.mark.parametrize("provider", ["acme-one", "ACME_One", "acme.one"])
    def test_the_provider_settles_a_conflict(self, two, provider):
        storage = open_storage("acme://x", provider=provider)
        assert type(storage).__module__ == "acme_one"
        assert find_backend("acme", provider="acme-two") is not None

    def test_a_provider_that_is_none_is_refused(self, two):
        text = str(the_error(UnknownBackend, "acme", provider="acme-three"))
        assert "acme-one 1.2, acme-two 1.2" in text

    def test_a_conflict_concerns_no_other_backend(self, two):
        two.backend("other")
        assert open_storage("other://x") is not None
        lines = [line for line in list_backends() if line.name == "acme"]
        assert [line.state for line in lines] == ["conflict", "conflict"]
        assert [line.distribution for line in lines] == ["acme-one", "acme-two"]

    def test_one_distribution_seen_twice_through_stale_metadata_is_no_conflict(
        self, site, tmp_path, monkeypatch
    ):
        site.backend("acme", version="2.0")
        stale = Site(tmp_path / "stale")
        stale.folder.mkdir()
        stale.distribution("Wenchang.Acme", {"acme": "gone_module:BACKEND"}, version="1.0")
        monkeypatch.setattr(sys, "path", [*sys.path, str(stale.folder)])
        assert open_storage("acme://x") is not None
        (line,) = (line for line in list_backends() if line.name == "acme")
        assert (line.state, line.version) == ("ok", "2.0")


class TestListing:
    def test_every_backend_is_listed_with_distribution_version_state_and_summary(self, site):
        site.backend("acme")
        site.broken("bad", "raise SystemExit")
        site.broken("poor", "import no_such_sdk")
        lines = {line.name: line for line in list_backends()}
        assert list(lines) == sorted(lines)
        good, bad, poor, s3 = (lines[name] for name in ("acme", "bad", "poor", "s3"))
        assert (good.distribution, good.version, good.state) == ("wenchang-acme", "1.2", "ok")
        assert (good.summary, good.problem) == ("keeps nothing", "")
        assert (bad.distribution, bad.state, bad.summary) == ("bad-plugin", "broken", "")
        assert "entry point" in bad.problem
        assert poor.state == "not installed"
        assert "'no_such_sdk'" in poor.problem
        assert (s3.distribution, s3.version, s3.state) == ("wenchang-s3", "", "not installed")
        assert "wenchang[s3]" in s3.problem

    def test_an_interrupt_while_the_list_is_made_is_not_swallowed(self, site):
        site.broken("acme", "raise KeyboardInterrupt")
        with pytest.raises(KeyboardInterrupt):
            list_backends()

    def test_the_module_lists_the_backends_with_the_standard_library_alone(self):
        done = subprocess.run(
            [sys.executable, "-m", "wenchang.storage"],
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=True,
        )
        assert done.stderr == ""
        assert "\ns3\t" in done.stdout


class TestDescriptors:
    def test_a_descriptor_that_cannot_be_right_is_refused_where_it_is_made(self):
        def make(**changes):
            fields = {
                "name": "acme",
                "contract": "1.0",
                "summary": "",
                "options": StorageLocation,
                "open": print,
            }
            return BackendDescriptor(**fields | changes)

        assert make().unsupported == {}
        for wrong in ({"name": "Acme"}, {"name": ""}, {"contract": "1"}, {"contract": "one.two"}):
            with pytest.raises(ValueError):
                make(**wrong)
        for wrong in ({"options": dict}, {"options": "Options"}, {"open": None}):
            with pytest.raises(TypeError):
                make(**wrong)
        with pytest.raises(TypeError):
            make(unsupported={"a": "b"}).unsupported["a"] = "c"


def test_importing_wenchang_and_its_storage_loads_nothing_but_the_standard_library():
    script = """
        import sys
        before = set(sys.modules)
        import wenchang, wenchang.storage
        new = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(sorted(new - set(sys.stdlib_module_names) - {"wenchang"}), "importlib.metadata" in sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["[]", "False"]


def test_each_of_the_five_errors_is_a_discovery_error():
    kinds = {UnknownBackend, BackendNotInstalled, BackendBroken, BackendConflict}
    assert set(DiscoveryError.__subclasses__()) == kinds | {BackendIncompatible}
