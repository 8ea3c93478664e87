# SPDX-License-Identifier: MIT
"""Plots as SVG, without a library."""
import math
from xml.sax.saxutils import escape

COLOURS = ["#1b6ca8", "#7fb3d5", "#c0392b", "#e59866", "#7d6608", "#7d3c98", "#7f8c8d", "#1e8449"]


class Drawing:
    def __init__(self, width, height):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
                      '<rect width="100%" height="100%" fill="white"/>']

    def line(self, x1, y1, x2, y2, colour="#ddd", width=1):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>')

    def text(self, x, y, text, anchor="start", colour="#222", bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{weight}>{escape(str(text))}</text>')

    def rect(self, x, y, width, height, colour, title=""):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.2f}" height="{height:.1f}" fill="{colour}"><title>{escape(title)}</title></rect>')

    def dot(self, x, y, colour, title=""):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}" fill-opacity="0.7"><title>{escape(title)}</title></circle>')

    def path(self, points, colour):
        self.parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>')

    def write(self, path):
        with open(path, "w") as f:
            f.write("\n".join(self.parts) + "\n</svg>\n")


def errors(cells, modes, path):
    """A row for each program, in it a strip for each mode, in it a dot for each pair of storages."""
    names = list(dict.fromkeys(c["program"] for c in cells))
    strip, left, width, limit = 14, 110, 640, 1.0
    height = 60 + len(names) * (len(modes) * strip + 10)
    d = Drawing(left + width + 150, height)

    def x(e):
        return left + width / 2 + max(-limit, min(limit, e)) * width / 2

    for percent in (-100, -50, -20, -5, 0, 5, 20, 50, 100):
        d.line(x(percent / 100), 30, x(percent / 100), height - 20)
        if abs(percent) != 5:
            d.text(x(percent / 100), 22, f"{percent:+d}%", "middle")
    for n, name in enumerate(names):
        top = 40 + n * (len(modes) * strip + 10)
        d.text(6, top + 12, name, bold=True)
        for m, mode in enumerate(modes):
            colour = COLOURS[m % len(COLOURS)]
            y = top + m * strip + 6
            if n == 0:
                d.text(left + width + 8, y + 4, mode, colour=colour)
            for c in cells:
                if c["program"] == name and mode in c["modes"]:
                    e = c["modes"][mode]["error"]
                    d.dot(x(e), y, colour, f"{name} {c['a']}->{c['b']} {mode}: {100 * e:+.1f}%")
    d.write(path)


def _frame(title, x_label, y_label, width=640, height=360):
    d = Drawing(width, height)
    d.text(width / 2, 20, title, "middle", bold=True)
    d.text(width / 2, height - 8, x_label, "middle")
    d.text(8, 36, y_label)
    return d


def distribution(cells, modes, path):
    """Which share of the cells has at most an error, for each mode: as Figure 7(b) of the ROOT paper."""
    d = _frame("absolute error: share of cells below", "absolute error", "share of cells")
    left, top, width, height, limit = 50, 46, 480, 270, 1.0
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = top + height * (1 - share)
        d.line(left, y, left + width, y)
        d.text(left - 4, y + 4, f"{100 * share:.0f}%", "end")
        d.text(left + width * share, top + height + 16, f"{100 * limit * share:.0f}%", "middle")
    for m, mode in enumerate(modes):
        values = sorted(min(limit, abs(c["modes"][mode]["error"])) for c in cells if mode in c["modes"])
        points = [(left, top + height)]
        for n, value in enumerate(values):
            x = left + width * value / limit
            points += [(x, points[-1][1]), (x, top + height * (1 - (n + 1) / len(values)))]
        d.path(points + [(left + width, points[-1][1])], COLOURS[m % len(COLOURS)])
        d.text(left + width + 10, top + 14 * m + 10, mode, colour=COLOURS[m % len(COLOURS)])
    d.write(path)


def bars(groups, path, title, unit, log=False):
    """groups: (name, [(name of the bar, value, label)])."""
    names = list(dict.fromkeys(b[0] for _, bars_of in groups for b in bars_of))
    most = max((b[1] for _, bars_of in groups for b in bars_of), default=1) or 1
    least = min((b[1] for _, bars_of in groups for b in bars_of if b[1] > 0), default=1) / 2
    bar, gap, left, top, height = 34, 26, 20, 60, 240
    d = Drawing(left + sum(len(b) * bar + gap for _, b in groups) + 160, top + height + 40)
    d.text(left, 20, f"{title} ({unit}{', logarithmic' if log else ''})", bold=True)

    def size(value):
        if not log:
            return height * value / most
        return height * math.log(max(value, least) / least) / math.log(max(most / least, 2))

    x = left
    for name, bars_of in groups:
        for label, value, note in bars_of:
            h = size(value)
            d.rect(x, top + height - h, bar - 4, h, COLOURS[names.index(label) % len(COLOURS)], f"{name} {label}: {note}")
            d.text(x + bar / 2 - 2, top + height - h - 4, note, "middle")
            x += bar
        d.text(x - len(bars_of) * bar / 2, top + height + 16, name, "middle")
        x += gap
    for n, name in enumerate(names):
        d.text(x, top + 14 * n, name, colour=COLOURS[n % len(COLOURS)])
    d.write(path)


def lines(series, path, title, x_label, y_label):
    """series: name -> [(x, y)], x on a logarithmic axis."""
    d = _frame(title, x_label, y_label, 680)
    points = [p for s in series.values() for p in s]
    x_least, x_most = min(p[0] for p in points), max(p[0] for p in points)
    y_most = 1.1 * max(p[1] for p in points)
    left, top, width, height = 60, 46, 440, 270

    def at(p):
        return (left + width * math.log(p[0] / x_least) / math.log(max(x_most / x_least, 1.01)), top + height * (1 - p[1] / y_most))

    for share in (0, 0.25, 0.5, 0.75, 1):
        y = top + height * (1 - share)
        d.line(left, y, left + width, y)
        d.text(left - 4, y + 4, f"{y_most * share:.3g}", "end")
    for x in sorted({p[0] for p in points}):
        d.text(at((x, 0))[0], top + height + 16, f"{x:g}", "middle")
    for n, (name, s) in enumerate(series.items()):
        d.path([at(p) for p in s], COLOURS[n % len(COLOURS)])
        for p in s:
            d.dot(*at(p), COLOURS[n % len(COLOURS)], f"{name}: {p[0]:g}: {p[1]:.3g}")
        d.text(left + width + 10, top + 14 * n + 10, name, colour=COLOURS[n % len(COLOURS)])
    d.write(path)


def timelines(panels, path, title):
    """panels: (name, seconds, threads), a thread being the [(from, to)] for which it is in a call."""
    row, left, width = 12, 20, 760
    height = 40 + sum(34 + row * len(threads) for _, _, threads in panels)
    d = Drawing(left + width + 20, height)
    d.text(left, 20, title, bold=True)
    y = 40
    for name, seconds, threads in panels:
        d.text(left, y + 10, f"{name}: {1000 * seconds:.0f} ms")
        y += 16
        for calls in threads:
            d.rect(left, y, width, row - 2, "#eee")
            for begin, end in calls:
                d.rect(left + width * begin / seconds, y, max(0.2, width * (end - begin) / seconds), row - 2, "#555")
            y += row
        y += 18
    d.write(path)
