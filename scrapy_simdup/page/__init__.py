"""From a page to its fingerprint: HTML → main text → features → simhash and sketch.

Knows neither Scrapy nor a store. Importing any module of this package is cheap: trafilatura, lxml
and jieba load when the first page needs them.
"""
