"""The report: one HTML file that shows what a crawl has dropped, to be looked at and judged."""
