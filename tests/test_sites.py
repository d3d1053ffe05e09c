from __future__ import annotations

import pytest
from material import page, story

from scrapy_simdup import Detector
from scrapy_simdup.sites import host_of, site_of


@pytest.mark.parametrize(
    ("url", "host", "site"),
    [
        ("https://www.news.bbc.co.uk/x", "www.news.bbc.co.uk", "bbc.co.uk"),
        ("http://EXAMPLE.com:80/", "example.com", "example.com"),
        ("https://example.com:8443/", "example.com:8443", "example.com"),
        ("https://a.github.io/", "a.github.io", "a.github.io"),
        ("http://127.0.0.1:8000/a", "127.0.0.1:8000", "127.0.0.1:8000"),
        ("http://localhost:8000/a", "localhost:8000", "localhost:8000"),
        ("http://[::1]:8000/a", "::1:8000", "::1:8000"),
        ("https://co.uk/", "co.uk", "co.uk"),
        ("https://www.münchen.de/", "www.münchen.de", "münchen.de"),
        ("https://www.xn--mnchen-3ya.de/", "www.xn--mnchen-3ya.de", "xn--mnchen-3ya.de"),
        ("http://[::1/x", "http://[::1/x", "http://[::1/x"),
        ("http://example.com:port/", "http://example.com:port/", "example.com"),
        ("", "", ""),
        ("no address", "", ""),
    ],
)
def test_host_and_site_of(url, host, site):
    assert (host_of(url), site_of(url)) == (host, site)


TALE = page("A tale", story(1))
COPY = TALE + " "  # other bytes, the same text

URLS = {
    "first": "https://www.example.com/a",
    "same site": "https://blog.example.com/b",
    "other site": "https://example.org/c",
    "third site": "https://example.net/d",
}


@pytest.mark.parametrize("again", [TALE, COPY], ids=["same bytes", "same text"])
@pytest.mark.parametrize(
    ("scope", "kinds"),
    [
        ("all", ["unique", "exact", "exact", "exact"]),
        ("same-site", ["unique", "exact", "unique", "unique"]),
        ("cross-site", ["unique", "unique", "exact", "exact"]),
    ],
)
def test_scope_says_which_pages_may_be_duplicates_of_each_other(scope, kinds, again):
    with Detector(None, scope=scope) as detector:
        found = [
            detector.check(url, TALE if name == "first" else again) for name, url in URLS.items()
        ]
        assert [verdict.kind for verdict in found] == kinds
        # Of several with the same text it is one within the scope.
        more = detector.check("https://shop.example.org/e", again)
    assert more.kind == "exact"
    is_same = site_of(more.duplicate_of) == "example.org"
    assert is_same == (scope == "same-site")


def test_another_scope_judges_anew(tmp_path):
    first, other = URLS["first"], URLS["other site"]
    near = page("A tale", story(1) + " And a last word.")
    for scope, kind in (("all", "near"), ("same-site", "unique"), ("all", "revisit")):
        with Detector(tmp_path / "pages", scope=scope) as detector:
            detector.check(first, TALE)
            assert detector.check(other, near).kind == kind
