"""``ADDONS = {"scrapy_simdup.Addon": 500}``: all that a project needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_simdup.downloadermiddleware import SimdupDownloaderMiddleware
from scrapy_simdup.pipeline import SimdupItemPipeline
from scrapy_simdup.spidermiddleware import SimdupSpiderMiddleware

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

#: After retry (550), redirects and decompression, before scrapy-poet (543).
DOWNLOADER_MIDDLEWARE_ORDER = 545
#: Next to the engine: the last to see an item before the pipelines.
SPIDER_MIDDLEWARE_ORDER = 10
#: Before pipelines that change or store items.
ITEM_PIPELINE_ORDER = 100


class Addon:
    """Enables the three components, where the project has not placed them itself."""

    def update_settings(self, settings: BaseSettings) -> None:
        for setting, component, order in (
            ("DOWNLOADER_MIDDLEWARES", SimdupDownloaderMiddleware, DOWNLOADER_MIDDLEWARE_ORDER),
            ("SPIDER_MIDDLEWARES", SimdupSpiderMiddleware, SPIDER_MIDDLEWARE_ORDER),
            ("ITEM_PIPELINES", SimdupItemPipeline, ITEM_PIPELINE_ORDER),
        ):
            settings.setdefault_in_component_priority_dict(setting, component, order)
