"""Plots as SVG, written by hand, readable on light and on dark pages."""

import html
import math

COLOURS = ("#2f6fde", "#9aa5b1", "#c3ccd5", "#d9622b", "#c79a1b", "#9a4fc4", "#2e9e5b")
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


def bars(title, unit, rows):
    """Horizontal bars: rows of (name, value, text)."""
    width, left, high = 760, 190, 26
    scale = (width - left - 110) / max(value for _, value, _ in rows)
    parts = [_text(20, 28, title, more=' font-size="16" font-weight="600"'),
             _text(20, 48, unit, "soft")]
    for i, (name, value, text) in enumerate(rows):
        y = 64 + i * (high + 8)
        long = max(2, value * scale)
        parts += [_text(left - 10, y + high / 2 + 4, name, anchor="end"),
                  '<rect x="%d" y="%d" width="%.1f" height="%d" rx="3" fill="%s"/>' %
                  (left, y, long, high, COLOURS[0] if name == "claimd" else COLOURS[1]),
                  _text(left + long + 8, y + high / 2 + 4, text, "soft")]
    return _page(width, 80 + len(rows) * (high + 8), parts)


def _nines(percent):
    return -math.log10(max(1e-6, (100 - percent) / 100))


def latencies(title, curves):
    """Latency by percentile, both axes logarithmic: curves of (name, [(percent, us)])."""
    width, height, left, top, wide, high = 760, 400, 80, 64, 640, 260
    values = [us for _, curve in curves for _, us in curve if us > 0]
    low = math.floor(math.log10(min(values)))
    top_power = math.ceil(math.log10(max(values)))
    right = 4.0

    def at(percent, us):
        x = left + wide * min(right, _nines(percent)) / right
        y = top + high * (1 - (math.log10(max(us, 0.1)) - low) / (top_power - low))
        return x, y

    parts = [_text(20, 28, title, more=' font-size="16" font-weight="600"')]
    for power in range(low, top_power + 1):
        y = at(0, 10 ** power)[1]
        name = ("%d us" % 10 ** power if power < 3 else "%d ms" % 10 ** (power - 3)
                if power < 6 else "%d s" % 10 ** (power - 6))
        parts += ['<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>' %
                  (left, left + wide, y, y), _text(left - 8, y + 4, name, "soft", "end")]
    for i, name in enumerate(("0", "90 %", "99 %", "99.9 %", "99.99 %")):
        x = left + wide * i / right
        parts += ['<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>' %
                  (x, x, top, top + high), _text(x, top + high + 18, name, "soft", "middle")]
    parts.append('<path class="axis" fill="none" d="M%d %dV%dH%d"/>' %
                 (left, top, top + high, left + wide))
    for i, (name, curve) in enumerate(curves):
        points = " ".join("%.1f,%.1f" % at(*point) for point in curve if point[0] < 100)
        x, y = left + i % 4 * 150, top + high + 44 + i // 4 * 18
        parts += ['<polyline class="line" stroke="%s" points="%s"/>' % (COLOURS[i], points),
                  '<rect x="%d" y="%d" width="14" height="4" rx="2" fill="%s"/>' %
                  (x, y - 6, COLOURS[i]), _text(x + 20, y, name)]
    return _page(width, height, parts)
