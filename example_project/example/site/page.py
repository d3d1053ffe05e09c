"""One page of the demo site, with the truth about it."""

from __future__ import annotations

from dataclasses import dataclass, field

#: What each form is. The pages of one story are duplicates of each other, whatever their form.
FORMS = {
    "original": "an article as the paper printed it",
    "copy": "the same bytes at another address",
    "session": "the same page with a session id in its address and in a hidden field",
    "tracking": "the same bytes at an address with tracking parameters",
    "print": "the print version: the text and nothing around it",
    "mirror": "the same text in another site's template",
    "refreshed": "the same page with another date, advertisement and counter",
    "edited": "one sentence was changed",
    "extended": "one paragraph was added",
    "gbk": "served as GBK bytes",
    "big5": "served as Big5 bytes, declared in the page only",
    "list": "a page of teasers and links",
    "sibling": "one template and boilerplate, but different content",
    "product": "like the others of its shop but for name, model, colour and price",
    "quote": "quotes an article at length inside a longer text of its own",
    "short": "fewer than 20 words",
    "redirect": "sends the crawler elsewhere",
}


@dataclass(frozen=True)
class Page:
    """A path (with its query), what the server answers there, and what a crawl should make of it.

    ``story`` names the content that the page shows: of all pages with the same story, exactly one
    should pass. Pages without a story must always pass.
    """

    path: str
    form: str
    body: bytes
    story: str | None = None
    status: int = 200
    headers: dict[str, str] = field(
        default_factory=lambda: {"Content-Type": "text/html; charset=utf-8"}
    )
