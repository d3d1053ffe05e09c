"""The report's charts, as SVG within the page.

By pygal: pure Python, and what it draws is plain SVG that takes its colours from the page's
variables, so one drawing serves light and dark, nothing needs a script, and a chart takes some
20 kB. Libraries whose charts are scripts (plotly, bokeh, vega) need 1 to 4 MB in the file, and most
of them ``eval``, which the report's content security policy forbids.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from scrapy_simdup.errors import SimdupError

if TYPE_CHECKING:
    from scrapy_simdup.report.data import Summary

_COLOURS = ("var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)")
_KINDS = (("near", "near-duplicates"), ("exact", "exact duplicates"), ("near_miss", "near misses"))


class MissingLibraryError(SimdupError):
    """The extra ``report`` is not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the report needs {name}: pip install 'scrapy-simdup[report]'")


def charts(summary: Summary) -> dict[str, str]:
    """SVG by name: ``distances``, ``scatter``, ``timeline``, ``hosts``; none that would be empty."""
    makers = {
        "distances": _distances,
        "scatter": _scatter,
        "timeline": _timeline,
        "hosts": _hosts,
    }
    drawn = {name: make(summary) for name, make in makers.items()}
    return {name: _svg(chart) for name, chart in drawn.items() if chart is not None}


def _distances(summary: Summary) -> Any:
    """How many pairs there are at each Hamming distance."""
    found = [(label, summary.distances[kind]) for kind, label in _KINDS if summary.distances[kind]]
    if not found:
        return None
    furthest = max(max(counts) for _, counts in found)
    chart = _pygal().StackedBar(**_settings(x_title="Hamming distance, bits", y_title="pairs"))
    chart.x_labels = [str(distance) for distance in range(furthest + 1)]
    for label, counts in found:
        chart.add(label, [counts[distance] for distance in range(furthest + 1)])
    return chart


def _scatter(summary: Summary) -> Any:
    """Resemblance against distance."""
    labels = {"duplicate": "duplicates", "near_miss": "near misses"}
    if not summary.points:
        return None
    chart = _pygal().XY(
        **_settings(
            x_title="Hamming distance, bits", y_title="resemblance", stroke=False, dots_size=2.5
        )
    )
    for group, label in labels.items():
        if group in summary.points:
            # Beside each other, not on each other: a distance is a whole number.
            points = sorted(summary.points[group].chosen)
            step = 0.7 / max(1, len(points))
            chart.add(
                label,
                [
                    (distance - 0.35 + n * step, round(y, 3))
                    for n, (distance, y) in enumerate(points)
                ],
            )
    return chart


def _timeline(summary: Summary) -> Any:
    """Pages that came in equal stretches of time."""
    if not summary.timeline:
        return None
    chart = _pygal().StackedBar(**_settings(y_title="pages", truncate_label=-1))
    chart.x_labels = [
        when if number % 12 == 0 else "" for number, (when, _, _) in enumerate(summary.timeline)
    ]
    chart.add("kept", [kept for _, kept, _ in summary.timeline])
    chart.add("duplicates", [duplicates for _, _, duplicates in summary.timeline])
    return chart


def _hosts(summary: Summary) -> Any:
    """The hosts with the most duplicates."""
    hosts = summary.busiest_hosts()
    if not hosts:
        return None
    chart = _pygal().HorizontalStackedBar(
        **_settings(x_title="pages", height=max(220, 70 + 26 * len(hosts)))
    )
    chart.x_labels = [_short(host) for host, _ in reversed(hosts)]
    for kind, label in (
        ("kept", "kept"),
        ("near", "near-duplicates"),
        ("exact", "exact duplicates"),
    ):
        chart.add(label, [counts[kind] for _, counts in reversed(hosts)])
    return chart


def _short(host: str) -> str:
    return host if len(host) <= 32 else f"{host[:30]}…"


def _settings(**own: Any) -> dict[str, Any]:
    from pygal.style import Style

    style = Style(
        background="transparent",
        plot_background="transparent",
        foreground="var(--text)",
        foreground_strong="var(--text)",
        foreground_subtle="var(--line)",
        guide_stroke_color="var(--line)",
        major_guide_stroke_color="var(--line)",
        colors=_COLOURS,
        font_family="inherit",
        label_font_size=12,
        major_label_font_size=12,
        legend_font_size=13,
        title_font_size=13,
        opacity=".85",
        transition="none",
    )
    return {
        "style": style,
        "js": [],
        "width": 720,
        "height": 320,
        "legend_at_bottom": True,
        "legend_box_size": 12,
        "no_data_text": "none",
        **own,
    }


def _pygal() -> Any:
    try:
        import pygal
    except ImportError as error:
        raise MissingLibraryError("pygal") from error
    # It finds map plugins, which we have not, by a protocol of which Python warns at every import.
    fixer = getattr(pygal, "PluginImportFixer", ())
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, fixer)]
    return pygal


def _svg(chart: Any) -> str:
    """A chart without what a script would need: pygal's own, and what it keeps for tooltips."""
    from lxml import etree

    tree = etree.fromstring(chart.render())
    for element in list(tree.iter(etree.Element)):
        name = etree.QName(element).localname
        if name == "script" or element.get("class", "").endswith("tooltip-overlay"):
            element.getparent().remove(element)
        elif name == "desc" and element.get("class") == "value":
            # The value, shown as one points at it, and read out.
            element.tag = f"{{{etree.QName(element).namespace}}}title"
            del element.attrib["class"]
        elif name == "desc":
            element.getparent().remove(element)
    etree.strip_tags(tree, etree.Comment)
    tree.set("role", "img")
    svg: str = etree.tostring(tree, encoding="unicode", with_tail=False)
    return svg
