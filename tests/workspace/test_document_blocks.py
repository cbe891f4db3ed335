"""Every code block in the documentation does what a reader would see it do.

Each page gets a folder of its own, and its blocks run in it from top to bottom:

- `python` is executed; names live on to the next block of the page. A block that defines tests
  runs under pytest.
- Any language with `title="name"` is written to that file, for the blocks after it.
- `bash` and `console` are parsed, and each `wenchang` command in them must exist.
- `toml`, `json` and `yaml` are parsed.
- Other languages are listed below; a block without a language is a mistake.

A block that cannot run here says so in the line above: `<!-- not run: why -->`. It is parsed then.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("packages/*/README.md")),
    ROOT / "conformance" / "README.md",
    *sorted(ROOT.glob("examples/**/README.md")),
]
SHOWN_ONLY = {"text", "markdown", "sql", "mermaid", "diff", "ini", "http"}
SHELLS = {"bash", "console", "sh"}

_FENCE = re.compile(r"(?P<indent> *)```(?P<info>[^`]*)$")
_NOT_RUN = re.compile(r"<!--\s*not run:\s*(?P<reason>\S.*?)\s*-->")
_TITLE = re.compile(r'title="(?P<title>[^"]+)"')


@dataclass(frozen=True)
class Block:
    line: int
    language: str
    title: str | None
    text: str
    not_run: str | None


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page; a fence that never ends is a mistake."""
    found = []
    above = ""
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), 1))
    for number, line in lines:
        fence = _FENCE.fullmatch(line)
        if fence is None:
            above = line.strip() or above
            continue
        body = []
        for _, inside in lines:
            if inside.rstrip() == fence["indent"] + "```":
                break
            body.append(inside + "\n")
        else:
            raise AssertionError(f"{page}:{number}: the block does not end")
        words = fence["info"].split()
        title = _TITLE.search(fence["info"])
        reason = _NOT_RUN.search(above)
        found.append(
            Block(
                line=number + 1,
                language=words[0] if words else "",
                title=title["title"] if title else None,
                text=textwrap.dedent("".join(body)),
                not_run=reason["reason"] if reason else None,
            )
        )
        above = ""
    return found


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def commands(block: Block) -> list[str]:
    """Return the commands of a shell block; in a `console` block those after `$ `."""
    text = block.text.replace("\\\n", " ")
    lines = text.splitlines()
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [line for line in lines if line.strip() and not line.startswith("#")]


def wenchang_commands(line: str) -> list[list[str]]:
    """Return the words of each `wenchang` command in a line of shell."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return []  # a quote that ends on a later line; bash has judged the whole already
    found = []
    for index, word in enumerate(words):
        starts = (
            index == 0
            or words[index - 1] in {"|", "&&", "||", ";", "--"}
            or "=" in words[index - 1]
        )
        if word == "wenchang" and starts:
            found.append(words[index + 1 :])
    return found


def check_shell(block: Block) -> None:
    script = "\n".join(commands(block))
    bash = shutil.which("bash")
    assert bash, "bash is needed to read shell blocks"
    done = subprocess.run([bash, "-n"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for line in commands(block):
        for words in wenchang_commands(line):
            check_command(words)


def check_command(words: list[str]) -> None:
    """Walk down the command's groups; every name and long option must exist."""
    click = pytest.importorskip("click", reason="the command line is not installed here")
    from wenchang.cli.app import app

    command = app
    context = click.Context(app)
    for word in words:
        if isinstance(command, click.Group) and not word.startswith("-"):
            found = command.get_command(context, word)
            assert found is not None, f"there is no command {word!r}"
            command, context = found, click.Context(found, parent=context)
        elif command.ignore_unknown_options:
            return  # it hands its arguments on, to a program that reads them itself
        elif word.startswith("--"):
            known = {option for parameter in command.params for option in parameter.opts}
            known |= {o for parameter in command.params for o in parameter.secondary_opts}
            if command.context_settings.get("ignore_unknown_options"):
                continue  # handed on to another parser
            assert word.partition("=")[0] in known | {"--help", "--version"}, word


def check_data(block: Block) -> None:
    if block.language == "toml":
        tomllib.loads(block.text)
    elif block.language == "json":
        json.loads(block.text)
    elif block.language in {"yaml", "yml"}:
        yaml = pytest.importorskip("yaml", reason="PyYAML is not in this environment")
        yaml.safe_load(block.text)


RUNNER = """
import json, pathlib, sys
sys.path.insert(0, "")
space = {"__name__": "__main__"}
for page, line, source in json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")):
    exec(compile("\\n" * (line - 1) + source, page, "exec"), space)
"""


def run(command, cwd: Path) -> None:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def is_test(block: Block) -> bool:
    return re.search(r"^(class Test|def test_|    def test_)", block.text, re.MULTILINE) is not None


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_of_the_page_names_a_language_and_parses(page):
    for block in blocks(page):
        where = f"{name(page)}:{block.line}"
        known = SHOWN_ONLY | SHELLS | {"python", "toml", "json", "yaml", "yml"}
        assert block.language in known, f"{where}: language {block.language!r}"
        try:
            if block.language == "python":
                compile("\n" * (block.line - 1) + block.text, str(page), "exec")
            elif block.language in SHELLS:
                check_shell(block)
            else:
                check_data(block)
        except Exception as error:
            raise AssertionError(f"{where}: {error}") from error


WITH_PYTHON = [page for page in PAGES if any(b.language == "python" for b in blocks(page))]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name)
def test_the_python_of_the_page_runs(page, tmp_path):
    """Plain blocks run as one program, then those that define tests run under pytest."""
    program = []
    tests = []
    for block in blocks(page):
        if block.title is not None:
            target = tmp_path / block.title
            assert target.resolve().is_relative_to(tmp_path.resolve())
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.language == "python" and block.not_run is None:
            if is_test(block):
                tests.append(block)
            else:
                program.append((str(page), block.line, block.text))
    if program:
        listing = tmp_path / "blocks.json"
        listing.write_text(json.dumps(program), encoding="utf-8")
        run(["-c", RUNNER, str(listing)], tmp_path)
    for block in tests:
        file = tmp_path / f"test_line_{block.line}.py"
        file.write_text(block.text, encoding="utf-8")
        run(["-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)], tmp_path)


def test_a_reader_meets_no_page_outside_the_list():
    on_disk = set(ROOT.glob("docs/**/*.md"))

    assert on_disk <= set(PAGES)


def test_the_block_finder_sees_language_title_and_reason(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        '<!-- not run: needs an account -->\n```python\nx = 1\n```\n\n```toml title="a.toml"\nb = 2\n```\n',
        encoding="utf-8",
    )

    first, second = blocks(page)

    assert (first.language, first.not_run, first.text) == ("python", "needs an account", "x = 1\n")
    assert (second.language, second.title, second.not_run) == ("toml", "a.toml", None)
