"""Pages that a coverage-guided fuzzer makes up, until one ends in an exception or takes too long.

    pip install atheris
    python benchmarks/fuzz.py [-max_total_time=600] [CORPUS…]

Arguments are libFuzzer's; the folders of a corpus may hold pages of your own. What is instrumented is
the way from a body to a profile (``analysis`` and ``page``). ``analysis`` takes whatever goes wrong for
a reason to skip the page, so exceptions are looked for below it: all but those that mean "no content"
are failures, as is a page that takes more than ten seconds.
"""

from __future__ import annotations

import sys
import time

import atheris

with atheris.instrument_imports(include=["scrapy_simdup"]):
    from scrapy_simdup.analysis import Declared
    from scrapy_simdup.config import Config
    from scrapy_simdup.page.content import ContentExtractor, NoContent
    from scrapy_simdup.page.fingerprint import Fingerprinter
    from scrapy_simdup.page.profiler import Profiler, Unfit

LONGEST = 10.0
CONFIG = Config()
EXTRACTOR = ContentExtractor(CONFIG.extractor, CONFIG.max_elements)
PROFILER = Profiler(Fingerprinter.of(CONFIG), CONFIG.views)


def one(data: bytes) -> None:
    began = time.process_time()
    try:
        content = EXTRACTOR.extract(Declared("text/html")(data))
        PROFILER.portrait(content)
    except NoContent as error:
        if error.reason == "extraction_failed":
            raise
    except Unfit:
        pass
    took = time.process_time() - began
    if took > LONGEST:
        raise TimeoutError(f"{took:.1f} s for {len(data)} bytes")


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
