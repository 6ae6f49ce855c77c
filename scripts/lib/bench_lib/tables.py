"""Tables in Markdown, put between markers of a document, and read from there."""

import re


def table(head, rows):
    """The first column to the left, the others to the right."""
    lines = ["| " + " | ".join(head) + " |",
             "|" + "|".join(["---"] + ["---:"] * (len(head) - 1)) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def number(value):
    """Three digits that count, with thin groups: 35 400, 1 340, 8.41."""
    if value == 0:
        return "0"
    if value >= 1000:
        digits = len(str(int(value)))
        value = round(value, 3 - digits)
        return "{:,.0f}".format(value).replace(",", " ")
    if value >= 100:
        return "%.0f" % value
    return "%.1f" % value if value >= 10 else "%.2f" % value


def latency(us):
    return "%s us" % number(us) if us < 1000 else "%s ms" % number(us / 1000)


def ratio(value, to):
    return "%.2f" % (value / to) if to else "-"


def _place(name):
    return re.compile(r"(<!-- bench:%s -->\n)(.*?)(<!-- end -->)" % re.escape(name), re.S)


def replace(text, name, content):
    """Puts content between <!-- bench:NAME --> and <!-- end -->; the markers must exist."""
    if not _place(name).search(text):
        raise KeyError("no place for " + name)
    return _place(name).sub(lambda m: m.group(1) + content + "\n" + m.group(3), text)


def page_of(texts, name):
    """The page, of {page: text}, that has the markers."""
    for page, text in texts.items():
        if _place(name).search(text):
            return page
    raise KeyError("no place for " + name)


def rows(text, name):
    """The rows of the table between the markers: {column: cell as it is shown}."""
    lines = [[cell.strip() for cell in line.strip().strip("|").split("|")]
             for line in _place(name).search(text).group(2).splitlines()]
    return [dict(zip(lines[0], line)) for line in lines[2:]]


def value(cell):
    """What a cell shows, as a number; latencies in us."""
    count, _, unit = cell.rpartition(" ") if cell.endswith("s") else (cell, "", "us")
    return float(count.replace(" ", "")) * {"us": 1, "ms": 1000, "s": 1000000}[unit]
