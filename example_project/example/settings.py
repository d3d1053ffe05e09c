"""Settings of the example: what a project needs to crawl without near-duplicates."""

from __future__ import annotations

BOT_NAME = "example"
SPIDER_MODULES = ["example.spiders"]
NEWSPIDER_MODULE = "example.spiders"

# All that is needed. Duplicates are dropped before they reach the spider: their links are not
# followed, and their request's errback gets scrapy_simdup's DuplicatePage.
ADDONS = {"scrapy_simdup.Addon": 500}

# Gentler: the spider gets duplicates, too, and follows their links; their items are dropped.
# SIMDUP_ACTION = "drop_items"

# Gentlest: nothing is dropped. The verdict is in response.meta["simdup_verdict"], and in the field
# "simdup" of the items of duplicates.
# SIMDUP_ACTION = "tag"

# One run with another action needs no change here: scrapy crawl demo -s SIMDUP_ACTION=tag

# Where the items go; off, so that a crawl leaves nothing behind but the store and the log of
# dropped pages, both in .scrapy/simdup. Or, for one run: scrapy crawl demo -O items.jsonl
# FEEDS = {"items.jsonl": {"format": "jsonlines", "overwrite": True}}

ROBOTSTXT_OBEY = True
LOG_LEVEL = "INFO"

# Neither opens a port here.
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False

# The demo's server shares this process, and with it the interpreter's lock.
CONCURRENT_REQUESTS = 8
