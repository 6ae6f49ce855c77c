"""
Plots as SVG, written by hand, readable on light and on dark pages.

of_document() draws the tables of docs/performance.md and tests/bench/results.md, so a plot shows
the table's figures under the table's names, and nothing else. of_run() draws the JSON report of
one run of claimd-bench.
"""

import html
import math

from bench_lib import tables

BLUE, GREY = "#2f6fde", "#9aa5b1"
COLOURS = (BLUE, "#d9622b", "#2e9e5b", "#9a4fc4", "#c79a1b", "#5b6b7b")
STYLE = """<style>
.page{fill:#ffffff}.ink{fill:#1f2933}.soft{fill:#616e7c}
.grid{stroke:#e4e7eb}.axis{stroke:#9aa5b1}
.line{fill:none;stroke-width:2;stroke-linejoin:round}
@media (prefers-color-scheme:dark){.page{fill:#11161c}.ink{fill:#e4e7eb}.soft{fill:#9aa5b1}
.grid{stroke:#28323d}.axis{stroke:#52606d}}
</style>"""


def _page(width, height, parts):
    return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" '
            'font-family="system-ui, sans-serif" font-size="12">\n%s\n'
            '<rect class="page" width="%d" height="%d"/>\n%s\n</svg>\n' %
            (width, height, STYLE, width, height, "\n".join(parts)))


def _text(x, y, text, kind="ink", anchor="start", more=""):
    return '<text class="%s" x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>' % (
        kind, x, y, anchor, more, html.escape(text))


def _colour(server):
    return BLUE if server.startswith("claimd") else GREY


def bars(title, unit, rows):
    """Horizontal bars: rows of (name, cell of the table)."""
    width, left, high = 760, 240, 26
    scale = (width - left - 80) / max(tables.value(cell) for _, cell in rows)
    parts = [_text(20, 28, title, more=' font-size="16" font-weight="600"'),
             _text(20, 48, unit, "soft")]
    for i, (name, cell) in enumerate(rows):
        y = 64 + i * (high + 8)
        long = max(2, tables.value(cell) * scale)
        parts += [_text(left - 10, y + high / 2 + 4, name, anchor="end"),
                  '<rect x="%d" y="%d" width="%.1f" height="%d" rx="3" fill="%s"/>' %
                  (left, y, long, high, _colour(name)),
                  _text(left + long + 8, y + high / 2 + 4, cell, "soft")]
    return _page(width, 80 + len(rows) * (high + 8), parts)


def _power(power):
    return ("%d us" % 10 ** power if power < 3 else "%d ms" % 10 ** (power - 3)
            if power < 6 else "%d s" % 10 ** (power - 6))


def steps(title, unit, rows):
    """
    A line for each row of (name, [(step, cell)]) along a logarithmic scale of latencies,
    with a dot at each step; the texts stand above and below in turn, as tails lie close.
    """
    width, left, top, wide, high = 760, 240, 84, 470, 66
    values = [tables.value(cell) for _, points in rows for _, cell in points]
    low, end = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    bottom = top + len(rows) * high
    parts = [_text(20, 28, title, more=' font-size="16" font-weight="600"'),
             _text(20, 48, unit, "soft")]
    for power in range(low, end + 1):
        x = left + wide * (power - low) / (end - low)
        parts += ['<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>' %
                  (x, x, top - 10, bottom), _text(x, bottom + 18, _power(power), "soft", "middle")]
    for i, (name, points) in enumerate(rows):
        y = top + i * high + high / 2 - 6
        at = [left + wide * (math.log10(tables.value(cell)) - low) / (end - low)
              for _, cell in points]
        parts += [_text(left - 30, y + 4, name, anchor="end"),
                  '<line class="line" stroke="%s" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>' %
                  (_colour(name), at[0], at[-1], y, y)]
        for turn, (x, (step, cell)) in enumerate(zip(at, points)):
            parts += ['<circle cx="%.1f" cy="%.1f" r="5" fill="%s"/>' % (x, y, _colour(name)),
                      _text(x, y + (22 if turn % 2 else -12), "%s %s" % (step, cell), "soft",
                            "middle")]
    return _page(width, bottom + 34, parts)


def _cycle(text, name, title):
    return bars(title, "messages posted, claimed and deleted a second; more is better",
                [(row["server"], row["messages/s"]) for row in tables.rows(text, name)])


def of_document(text):
    """{file: SVG} of all plots that go with this text of both pages."""
    claims = [row for row in tables.rows(text, "open") if row["request"] == "claim"]
    return {
        "performance-one.svg": _cycle(text, "cycle-one", "Full cycle, one message at a time"),
        "performance-ten.svg": _cycle(text, "cycle-ten",
                                      "Full cycle, ten at a time, bulk delete"),
        "performance-latency.svg": steps(
            "Latency of a claim at half the saturated rate, open loop",
            "medians of the rounds, logarithmic; less is better",
            [(row["server"], [(step, row[step]) for step in ("p50", "p99", "p99.9", "max")])
             for row in claims]),
    }


class _Panel:
    """A diagram with two axes, 370 wide and 264 high, whose left edge is x. Texts of the axes are
    (place, text), with places from 0 to 1."""

    TOP, HIGH, WIDE = 64, 264, 370

    def __init__(self, x, title, right_texts, up_texts):
        bottom = self.TOP + self.HIGH
        self.x, self.legend = x, 0
        self.parts = [_text(x, 50, title, "soft")]
        for place, text in up_texts:
            self.parts += ['<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>' % (
                x, x + self.WIDE, self._y(place), self._y(place)),
                           _text(x - 8, self._y(place) + 4, text, "soft", "end")]
        for place, text in right_texts:
            self.parts += ['<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>' % (
                self._x(place), self._x(place), self.TOP, bottom),
                           _text(self._x(place), bottom + 18, text, "soft", "middle")]
        self.parts.append('<path class="axis" fill="none" d="M%.1f %.1fV%.1fH%.1f"/>' % (
            x, self.TOP, bottom, x + self.WIDE))

    def _x(self, place):
        return self.x + self.WIDE * place

    def _y(self, place):
        return self.TOP + self.HIGH * (1 - min(max(place, 0), 1))

    def line(self, name, points):
        """Draws [(place on the x axis, place on the y axis)] and adds the name to the legend."""
        colour = COLOURS[self.legend % len(COLOURS)]
        x = self.x + self.legend % 4 * 95
        y = self.TOP + self.HIGH + 42 + self.legend // 4 * 16
        self.legend += 1
        self.parts += ['<path class="line" stroke="%s" d="M%s"/>' % (colour, "L".join(
            "%.1f %.1f" % (self._x(right), self._y(up)) for right, up in points)),
                       '<rect x="%.1f" y="%.1f" width="14" height="4" rx="2" fill="%s"/>' % (
                           x, y - 6, colour), _text(x + 20, y, name)]


def _latency_panel(report):
    """Latency by percentile. Both axes are logarithmic: the right one in nines."""
    rows = [(name, row["curve"]) for name, row in report["operations"].items()]
    if "delivery" in report:
        rows.append(("post to claim", report["delivery"]["curve"]))
    nines = 4
    values = [us for _, curve in rows for _, us in curve if us > 0] or [1]
    low = max(0, math.floor(math.log10(min(values))))
    end = max(math.ceil(math.log10(max(values))), low + 1)
    panel = _Panel(70, "Latency by percentile",
                   [(i / nines, text) for i, text in
                    enumerate(("0", "90 %", "99 %", "99.9 %", "99.99 %"))],
                   [((power - low) / (end - low), _power(power)) for power in range(low, end + 1)])
    for name, curve in rows:
        points = [(-math.log10((100 - percent) / 100) / nines,
                   (math.log10(max(us, 0.1)) - low) / (end - low))
                  for percent, us in curve if percent < 100]
        panel.line(name, [(right, up) for right, up in points if right <= 1] or [(0, 0)])
    return panel.parts


def _steps(most):
    """Round values from 0 up to `most`, four to eight of them."""
    step = 10 ** math.floor(math.log10(most / 4))
    step *= 5 if most / step > 20 else 2 if most / step > 8 else 1
    return [i * step for i in range(int(most / step) + 1)]


def _rate_panel(report):
    series = report["series"]
    right = report["seconds"] or 1
    most = 1.08 * max([point[kind] for point in series for kind in ("requests", "messages")] + [1])
    panel = _Panel(525, "Throughput over time",
                   [(value / right, "%.3g s" % value) for value in _steps(right)],
                   [(value / most, "%.4g k" % (value / 1000) if value >= 1000 else "%.4g" % value)
                    for value in _steps(most)])
    for kind in ("requests", "messages"):
        panel.line(kind + "/s", [(max(0, point["at"]) / right, point[kind] / most)
                                 for point in series] or [(0, 0)])
    return panel.parts


def of_run(report):
    """An SVG of the latencies and the throughput of one run (claimd-bench --json)."""
    title = "%s: %s, batch %d, %d connections, %s loop" % (
        report["label"], report["scenario"], report["batch"], report["connections"],
        "open" if report["rate"] > 0 else "closed")
    return _page(920, 400, [_text(70, 26, title, more=' font-size="16" font-weight="600"')] +
                 _latency_panel(report) + _rate_panel(report))
