"""A Scrapy project: its command line, default places, and settings that are wrong."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from crawl_site import SETTINGS, Crawl, Site, article, crawls, job, python, two_at_a_time

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

SPIDERS = """
from scrapy import Request, Spider

class Plain(Spider):
    name = "plain"

    @classmethod
    def handles_request(cls, request):  # so commands that are given an address find it
        return True

    async def start(self):
        for path in ("/a", "/a-copy"):
            yield Request({root!r} + path)

    def parse(self, response):
        '''Has a contract.

        @url {root}/a
        @returns items 1 1
        '''
        yield {{"url": response.url}}
"""
VISITS = ["/a", "/a-copy"]
#: The default places, whatever the runner of these tests says.
DEFAULT = {"SIMDUP_STORE": None, "SIMDUP_LOG": None}


def make_project(folder: Path, root: str) -> Path:
    package = folder / "proj"
    package.mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = proj.settings\n", "utf-8")
    (package / "__init__.py").write_text("", "utf-8")
    (package / "spiders.py").write_text(SPIDERS.format(root=root), "utf-8")
    settings = {**SETTINGS, "SPIDER_MODULES": ["proj.spiders"], "LOG_LEVEL": "INFO"}
    lines = "".join(f"{name} = {value!r}\n" for name, value in settings.items())
    (package / "settings.py").write_text(lines, "utf-8")
    return folder


def scrapy(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "scrapy", *arguments, cwd=project)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site({"/a": article(1), "/a-copy": article(1)}) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what must not be taken for a store or a log."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "file").write_text("a file", "utf-8")
    (folder / "damaged").mkdir()
    (folder / "damaged" / "data.mdb").write_bytes(b"not a database" * 1000)
    return folder


@pytest.fixture(scope="module")
def wrong(site: Site, folder: Path) -> dict[str, Crawl]:
    """Crawls that do not start, by what is wrong with them. The first one is right."""
    seeded = str(folder / "seeded")
    settings: dict[str, dict[str, Any]] = {
        "nothing": {"SIMDUP_STORE": seeded},
        "unknown setting": {"SIMDUP_MAXDISTANCE": 3},
        "action": {"SIMDUP_ACTION": "delete"},
        "number": {"SIMDUP_MAX_DISTANCE": "abc"},
        "store is a file": {"SIMDUP_STORE": str(folder / "file")},
        "store is damaged": {"SIMDUP_STORE": str(folder / "damaged")},
        "other configuration": {"SIMDUP_STORE": seeded, "SIMDUP_SEED": 1},
        "log": {"SIMDUP_LOG": str(folder / "file" / "log.jsonl")},
        "log is a folder": {"SIMDUP_LOG": str(folder)},
        "extractor": {"SIMDUP_EXTRACTOR": "no.such.extractor"},
    }
    jobs = [
        job("Visitor", setting, visits=VISITS, name=name.replace(" ", "-"))
        for name, setting in settings.items()
    ]
    return dict(zip(settings, crawls(folder, site, jobs), strict=True))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "unknown setting",
            "ConfigError: unknown setting SIMDUP_MAXDISTANCE: did you mean SIMDUP_MAX_DISTANCE?",
        ),
        ("action", "ConfigError: SIMDUP_ACTION = 'delete': must be one of drop, drop_items, tag"),
        ("number", "ConfigError: SIMDUP_MAX_DISTANCE = 'abc': must be a whole number from 0 to 11"),
        (
            "store is a file",
            "StoreError: SIMDUP_STORE: store '{folder}/file' is a file; a store is a folder of its",
        ),
        (
            "store is damaged",
            "StoreError: SIMDUP_STORE: store '{folder}/damaged' does not hold a readable store",
        ),
        (
            "other configuration",
            "StoreError: SIMDUP_STORE: store '{folder}/seeded' was made with another configuration",
        ),
        ("log", "ConfigError: SIMDUP_LOG: '{folder}/file/log.jsonl' cannot be written: "),
        ("log is a folder", "ConfigError: SIMDUP_LOG: '{folder}' cannot be written: "),
        ("extractor", "ConfigError: SIMDUP_EXTRACTOR = 'no.such.extractor': "),
    ],
)
def test_a_setting_that_is_wrong_stops_the_crawl_before_it_starts(
    wrong: dict[str, Crawl], folder: Path, name: str, message: str
) -> None:
    crawl = wrong[name]
    assert crawl.error is not None
    assert crawl.error.startswith(message.format(folder=folder))
    assert (crawl.arrived, crawl.failed) == ([], [])
    assert "Spider opened" not in [line["message"] for line in crawl.log]


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("store is damaged", "Restore a copy, move it away, or use another store"),
        ("other configuration", "Use the same options and versions, or another store"),
        ("log", "choose another path, or False for no log"),
    ],
)
def test_the_message_says_what_to_do(wrong: dict[str, Crawl], name: str, way_out: str) -> None:
    assert (wrong[name].error or "").endswith(way_out)


def test_the_message_says_in_what_a_configuration_differs(wrong: dict[str, Crawl]) -> None:
    error = wrong["other configuration"].error or ""
    assert re.search(r"\(seed: [0-9a-f]{16} here, 0 in the store\)", error)


def test_a_wrong_store_is_left_as_it_is(wrong: dict[str, Crawl], folder: Path) -> None:
    assert wrong["nothing"].error is None
    assert [path.name for path in (folder / "damaged").iterdir()] == ["data.mdb"]
    assert (folder / "damaged" / "data.mdb").read_bytes() == b"not a database" * 1000
    assert (folder / "file").read_text("utf-8") == "a file"


def test_scrapy_crawl_fails_if_a_setting_is_wrong(
    wrong: dict[str, Crawl], site: Site, folder: Path, tmp_path: Path
) -> None:
    project = make_project(tmp_path, site.root)
    store = f"SIMDUP_STORE={folder / 'seeded'}"
    before = len(site.visits)
    done = two_at_a_time(
        {
            "action": lambda: scrapy(project, "crawl", "plain", "-s", "SIMDUP_ACTION=delete"),
            "seed": lambda: scrapy(project, "crawl", "plain", "-s", store, "-s", "SIMDUP_SEED=1"),
        }
    )
    assert (done["action"].returncode, done["seed"].returncode) == (1, 1)
    action, seed = (result.stderr.splitlines()[-1] for result in done.values())
    assert action.endswith(
        "ConfigError: SIMDUP_ACTION = 'delete': must be one of drop, drop_items, tag"
    )
    assert "StoreError: SIMDUP_STORE: store " in seed
    assert seed.endswith("Use the same options and versions, or another store")
    assert len(site.visits) == before


@pytest.fixture(scope="module")
def project(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("projects") / "100%(sure)", site.root)


ODD_NAMES = {
    "plain": "plain",
    "..": "%2E%2E",
    "../100%(up)s/odd name": "..%2F100%25%28up%29s%2Fodd%20name",
}


@pytest.fixture(scope="module")
def placed(site: Site, project: Path) -> dict[str, Crawl]:
    pattern = {"SIMDUP_LOG": "logs/%(time)s/%(spider)s.jsonl"}
    jobs = [job("Visitor", DEFAULT, "", visits=VISITS, name=name) for name in ODD_NAMES]
    jobs.append(job("Visitor", pattern, "", visits=VISITS, name="a/b"))
    results = crawls(project, site, jobs)
    return {one["arguments"]["name"]: result for one, result in zip(jobs, results, strict=True)}


@pytest.mark.parametrize("name", ODD_NAMES)
def test_in_a_project_store_and_log_are_in_its_data_folder_whatever_the_spider_is_called(
    placed: dict[str, Crawl], project: Path, name: str
) -> None:
    crawl, folder = placed[name], ODD_NAMES[name]
    data = project / ".scrapy" / "simdup"
    (log,) = [path for path in data.glob("*.jsonl") if path.name.startswith(f"{folder}-")]
    assert re.fullmatch(re.escape(folder) + r"-dropped-\d{8}T\d{6}\.jsonl", log.name)
    (record,) = crawl.records(log)
    assert (record["spider"], record["url"]) == (name, "/a-copy")
    start, end = crawl.said("INFO")
    assert f"store {data / folder} holds 0 pages" in start
    assert end.endswith(f"; duplicates are listed in {log}")


def test_nothing_is_written_anywhere_else(placed: dict[str, Crawl], project: Path) -> None:
    data = project / ".scrapy" / "simdup"
    folders = {path.name for path in data.iterdir() if path.is_dir()}
    assert folders == set(ODD_NAMES.values())
    assert [path.name for path in project.parent.iterdir()] == [project.name]


def test_the_log_may_be_named_by_spider_and_time(placed: dict[str, Crawl], project: Path) -> None:
    (log,) = (project / "logs").glob("*/*.jsonl")
    assert re.fullmatch(r"\d{8}T\d{6}/a%2Fb\.jsonl", log.relative_to(project / "logs").as_posix())
    assert len(placed["a/b"].records(log)) == 1


def test_check_and_list_work_and_leave_nothing_behind(site: Site, tmp_path: Path) -> None:
    project = make_project(tmp_path, site.root)
    done = two_at_a_time(
        {"check": lambda: scrapy(project, "check"), "list": lambda: scrapy(project, "list")}
    )
    check, spiders = done["check"], done["list"]
    assert check.returncode == 0, check.stderr
    assert "Ran 1 contract in" in check.stderr
    assert (spiders.returncode, spiders.stdout, spiders.stderr) == (0, "plain\n", "")
    assert not (project / ".scrapy").exists()


def test_the_add_on_brings_nothing_heavy_into_other_commands(tmp_path: Path) -> None:
    """Scrapy imports it, and the command, whatever the user wants."""
    heavy = {"numpy", "lmdb", "trafilatura", "jieba", "msgspec"}
    code = (
        f"import sys, scrapy_simdup.addon, scrapy_simdup.command; print({heavy} & {{*sys.modules}})"
    )
    assert python("-c", code, cwd=tmp_path).stdout == "set()\n"


def test_commands_that_look_at_a_page_work_and_leave_nothing_behind(
    site: Site, tmp_path: Path
) -> None:
    project = make_project(tmp_path / "project", site.root)
    with (project / "proj" / "settings.py").open("a", encoding="utf-8") as settings:
        settings.write("SIMDUP_ENABLED = True\n")
    url = site.url(next(iter(site.pages)))
    done = two_at_a_time(
        {
            "shell": lambda: scrapy(project, "shell", "--nolog", "-c", "response.status", url),
            "fetch": lambda: scrapy(project, "fetch", "--nolog", url),
            "parse": lambda: scrapy(project, "parse", "--nolog", url),
        }
    )
    assert done["shell"].stdout.strip() == "200"
    assert "<html" in done["fetch"].stdout
    assert f"'url': '{url}'" in done["parse"].stdout
    assert not (project / ".scrapy" / "simdup").exists()


def test_parse_is_judged_if_its_command_line_says_so(site: Site, tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", site.root)
    url = site.url(next(iter(site.pages)))
    asked = scrapy(project, "parse", "-s", "SIMDUP_ENABLED=1", url)
    assert "simdup: checked 1 page: 1 unique" in asked.stderr
    assert (project / ".scrapy" / "simdup" / "plain" / "data.mdb").exists()
