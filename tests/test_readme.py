"""The README's reference and the code say the same."""

from __future__ import annotations

import argparse
import ast
import re
from pathlib import Path

import pytest

from scrapy_simdup import crawlstats, verdict
from scrapy_simdup.alarms import KINDS
from scrapy_simdup.auditlog import FIELDS
from scrapy_simdup.cli import STATUSES, SUBCOMMANDS, add_subcommands
from scrapy_simdup.config import option_docs
from scrapy_simdup.downloadermiddleware import OVERRIDE_KEY, VERDICT_KEY
from scrapy_simdup.page.comparison import RULES

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """Text below a heading, up to the next one of any level."""
    match = re.search(
        rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", README, re.MULTILINE | re.DOTALL
    )
    assert match, f"no section {title!r}"
    return match[1]


def first_cells(text: str) -> list[str]:
    """Code words of the first column of all tables in *text*."""
    rows = re.findall(r"^\| (`[^|]*?) \|", text, re.MULTILINE)
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row)]


def test_every_setting_is_in_the_reference_and_no_other():
    assert first_cells(section("Settings")) == [name for name, _, _ in option_docs()]


@pytest.mark.parametrize(("name", "default"), [(n, d) for n, d, _ in option_docs()])
def test_the_reference_shows_the_default(name, default):
    row = re.search(rf"^\| `{name}` \| `([^`]*)` \|", README, re.MULTILINE)
    assert row, name
    assert ast.literal_eval(row[1]) == default


def test_every_meta_key_is_in_the_reference():
    assert first_cells(section("Request.meta keys")) == [OVERRIDE_KEY, VERDICT_KEY]


def test_every_stat_is_in_the_reference_and_no_other():
    assert first_cells(section("Stats")) == list(crawlstats.STATS)


def test_every_log_field_is_in_the_reference_and_no_other():
    assert set(first_cells(section("Dropped-page log"))) == set(FIELDS)


def test_every_field_of_a_verdict_and_every_skip_reason_is_in_the_reference():
    fields = set(verdict.Verdict.__dataclass_fields__)
    wanted = fields | {"is_duplicate"} | set(verdict.SKIP_REASONS)
    assert set(first_cells(section("Verdict"))) == wanted


def test_every_rule_is_in_the_reference_and_no_other():
    assert first_cells(section("Rules")) == list(RULES)


def test_every_alert_is_in_the_reference_and_no_other():
    assert first_cells(section("Alerts")) == list(KINDS)


def test_every_command_is_in_the_reference_and_no_other():
    assert sorted(first_cells(section("Commands"))) == sorted(SUBCOMMANDS)
    for status in STATUSES:
        assert f"{status} " in section("Commands")


def test_every_command_has_its_options_and_an_example_in_the_documentation():
    document = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", document, re.MULTILINE | re.DOTALL))
    assert list(parts) == list(SUBCOMMANDS)
    parser = argparse.ArgumentParser()
    add_subcommands(parser, lambda subparser: None)
    [action] = [action for action in parser._actions if action.dest == "subcommand"]
    assert isinstance(action.choices, dict)
    for name, subparser in action.choices.items():
        options = {
            option
            for one in subparser._actions
            for option in one.option_strings
            if option.startswith("--") and option != "--help"
        }
        assert set(re.findall(r"`(--[a-z-]+)", parts[name].split("```")[0])) == options, name
        assert f"$ scrapy simdup {name}" in parts[name], name


def test_every_stat_that_the_code_counts_is_documented():
    source = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "scrapy_simdup").glob("*.py"))
    counted = set(re.findall(r'count\(f?"([a-z_/{}.]+)"', source))
    assert counted, "the pattern finds the calls"
    patterns = [re.sub(r"<\w+>", r"[^/]+", re.escape(key)) for key in crawlstats.STATS]
    for key in counted:
        plain = re.sub(r"\{[^}]*\}", "x", key)
        assert any(re.fullmatch(pattern, plain) for pattern in patterns) or plain in {
            "revisit/x",
            "duplicate/x",
        }, key


def test_ci_runs_the_readmes_test_command():
    command = re.search(r"^python3 -m venv \.venv .*pytest.*$", README, re.MULTILINE)
    assert command
    assert command[0] in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def imports(path: Path) -> set[str]:
    """Modules that a file imports when it is run, type checking left out."""
    found: set[str] = set()

    class Visitor(ast.NodeVisitor):
        def visit_If(self, node: ast.If) -> None:
            if ast.unparse(node.test) != "TYPE_CHECKING":
                self.generic_visit(node)

        def visit_Import(self, node: ast.Import) -> None:
            found.update(alias.name for alias in node.names)

        def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
            found.add(node.module or "")

    Visitor().visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


PACKAGE = ROOT / "scrapy_simdup"
CORE = [
    *PACKAGE.glob("page/*.py"),
    *PACKAGE.glob("store/*.py"),
    *(
        PACKAGE / f"{n}.py"
        for n in (
            *("config", "verdict", "detector", "decision", "pairwise", "work", "errors"),
            *("alarms", "sites", "trial", "redecision", "replay", "explain", "upkeep", "doctor"),
            *("transfer", "logreader", "printable"),
        )
    ),
]
FACE = [path for path in PACKAGE.glob("*.py") if path not in CORE]


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.stem)
def test_the_core_knows_no_scrapy(path):
    assert not {m for m in imports(path) if m.split(".")[0] in {"scrapy", "twisted", "itemadapter"}}


@pytest.mark.parametrize("path", FACE, ids=lambda path: path.stem)
def test_the_face_knows_no_lmdb(path):
    assert not {m for m in imports(path) if m.split(".")[0] == "lmdb"}


@pytest.mark.parametrize("path", [*PACKAGE.glob("page/*.py")], ids=lambda path: path.stem)
def test_page_imports_nothing_above_itself(path):
    own = {m for m in imports(path) if m.startswith("scrapy_simdup")}
    assert all(m.startswith(("scrapy_simdup.page", "scrapy_simdup.errors")) for m in own)


@pytest.mark.parametrize("path", [*PACKAGE.glob("store/*.py")], ids=lambda path: path.stem)
def test_the_store_imports_nothing_above_itself(path):
    own = {m for m in imports(path) if m.startswith("scrapy_simdup")}
    allowed = tuple(f"scrapy_simdup.{room}" for room in ("store", "page", "errors", "work"))
    assert all(m.startswith(allowed) for m in own)


def test_every_test_that_reliability_names_is_there():
    text = (ROOT / "docs/reliability.md").read_text("utf-8")
    named = set(
        re.findall(r"`((?:damage|store|crawl|cli|report|page|test_)[\w/]*(?:\.py|/))`", text)
    )
    assert len(named) > 15
    places = ROOT / "tests", PACKAGE
    missing = {name for name in named if not any((place / name).exists() for place in places)}
    assert missing == set()
