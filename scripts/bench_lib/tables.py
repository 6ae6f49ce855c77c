"""Tables in Markdown, put between markers of a document."""

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


def replace(text, name, content):
    """Puts content between <!-- bench:NAME --> and <!-- end -->; the markers must exist."""
    pattern = re.compile(r"(<!-- bench:%s -->\n).*?(<!-- end -->)" % re.escape(name), re.S)
    if not pattern.search(text):
        raise KeyError("no place for " + name)
    return pattern.sub(lambda m: m.group(1) + content + "\n" + m.group(2), text)
