"""The demo site: its texts, its pages with the truth about them, and a server for them."""

from example.site.page import FORMS, Page
from example.site.pages import all_pages
from example.site.server import SiteServer

__all__ = ["FORMS", "Page", "SiteServer", "all_pages"]
