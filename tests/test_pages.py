"""What pages point to: links and their sections, and the commands that they show."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from fedmpi.cli.main import app

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path.relative_to(ROOT)
    for pattern in ("*.md", "docs/**/*.md", "bench/**/*.md", "jobs/**/*.md", "results/*.md")
    for path in ROOT.glob(pattern)
)
FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
COMMAND = re.compile(r"(?:^|[\s`(/])fedmpi ((?:[^`\n#;&|]|`(?!`))+)", re.M)


def text_of(page):
    return (ROOT / page).read_text()


def anchors(page):
    """Return the names of a page's sections, as the forges make them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.M)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page):
    for target in LINK.findall(FENCE.sub("", text_of(page))):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, section = target.partition("#")
        there = (ROOT / page).parent / path if path else ROOT / page
        assert there.exists(), target
        if section and there.suffix == ".md":
            assert section in anchors(there), target


def problem(words):
    """Return what is wrong with the words after ``fedmpi``; None if the command and its options exist."""
    command, words = get_command(app), list(words)
    while words and hasattr(command, "list_commands") and not words[0].startswith("-"):
        name = words.pop(0)
        if name == "...":
            return None
        if name not in command.list_commands(None):
            return f"no command {name}"
        command = command.get_command(None, name)
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    asked = {word.partition("=")[0] for word in words if re.fullmatch(r"--[a-z][\w-]*(=.*)?", word)}
    unknown = sorted(asked - known - {"--help"})
    return f"no option {', '.join(unknown)}" if unknown else None


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=str)
def test_commands_exist(page):
    blocks = [found.group() for found in re.finditer(r"^```bash\n.*?^```", text_of(page), re.M | re.S)]
    spans = re.findall(r"`(fedmpi [^`]+)`", FENCE.sub("", text_of(page)))
    for found in COMMAND.finditer("\n".join([*blocks, *spans]).replace("\\\n", " ")):
        words = shlex.split(found.group(1).replace("'", " ").replace('"', " "))
        assert problem(words) is None, found.group(0)


def test_a_wrong_command_or_option_would_be_found():
    assert problem(["reprot", "RUNS"]) == "no command reprot"
    assert problem(["report", "--htlm", "x"]) == "no option --htlm"
    assert problem(["paper", "reproduction", "--cells", "x"]) is None


SHOWN = re.compile(r"^<!-- python results/means.py (.*) -->\n((?:\|.*\n)+)", re.M)
TABLES = [(page, *found.groups()) for page in PAGES for found in SHOWN.finditer(text_of(page))]


@pytest.mark.parametrize(
    ("page", "arguments", "shown"), TABLES, ids=[f"{page} {args}" for page, args, _ in TABLES]
)
def test_tables_of_committed_rows_are_what_the_script_prints(page, arguments, shown):
    file, *figures = arguments.split()
    assert runpy.run_path(str(ROOT / "results" / "means.py"))["table"](ROOT / file, *figures) == shown
