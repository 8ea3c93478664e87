# SPDX-License-Identifier: MIT
"""Cells summed up, and as text."""
import statistics

from storages import short_name


def good(cells):
    return [c for c in cells if "modes" in c]


def modes_of(cells):
    return list(dict.fromkeys(m for c in good(cells) for m in c["modes"]))


def summary(cells, mode):
    cells = [c for c in good(cells) if mode in c["modes"]]
    errors = sorted(abs(c["modes"][mode]["error"]) for c in cells)
    if not errors:
        return None
    return {"cells": len(errors), "mean": statistics.mean(errors), "median": statistics.median(errors), "worst": errors[-1],
            "worst_decile": statistics.mean(errors[-max(1, len(errors) // 10):]), "within_5": sum(e <= 0.05 for e in errors),
            "mismatches": sum(c["modes"][mode]["mismatches"] for c in cells), "unsupported": sum(c["modes"][mode].get("unsupported", 0) for c in cells)}


def other_outcomes(cells):
    """Of each cell and mode with other outcomes: which, by kind, and of which calls."""
    for c in good(cells):
        for name, m in c["modes"].items():
            if m.get("kinds"):
                yield f"{_name(c)}, {name}: " + ", ".join(f"{nr} {kind}" for kind, nr in m["kinds"].items()) + f" ({', '.join(m['calls'])})"


def behind_others(cells):
    """Cells in which the default is more than two points worse than the better of artc and temporal."""
    found = []
    for c in good(cells):
        others = [abs(c["modes"][m]["error"]) for m in ("artc", "temporal") if m in c["modes"]]
        if others and "default" in c["modes"] and abs(c["modes"]["default"]["error"]) > min(others) + 0.02:
            found.append(c)
    return found


def slow_downs(traces, cells):
    """How much longer the traced runs took than the program alone on the same storage."""
    for t in traces:
        alone = [s for c in good(cells) if c["program"] == t["program"] and c["b"] == t["a"] for s in c["program_s"]]
        t["slow_down"] = t["traced_s"] / statistics.median(alone) if alone else None


def _name(c):
    return f"{c['program']} {short_name(c['a'])}" + (f"->{short_name(c['b'])}" if "b" in c else "")


def cell_line(cell):
    errors = "  ".join(f"{name} {100 * m['error']:+.1f}%" + (f" ({m['mismatches']} mismatches)" if m["mismatches"] else "")
                       for name, m in cell["modes"].items())
    tries = f", batch {cell['batches']}" if cell["batches"] > 1 else ""
    noise = f"  [too noisy: {100 * cell['variation']:.0f}%{tries}]" if cell["noisy"] else f"  [repeated: batch {cell['batches']}]" if tries else ""
    return f"{_name(cell):<30} program {statistics.median(cell['program_s']):.3f} s  {errors}{noise}"


def put_cells(cells, out):
    """Every cell, signed."""
    modes = modes_of(cells)
    print(f"\n{'error in %':<30}{'program':>10}{'variation':>10}" + "".join(f"{m:>14}" for m in modes), file=out)
    for c in good(cells):
        row = "".join(f"{100 * c['modes'][m]['error']:>+14.1f}" if m in c["modes"] else f"{'-':>14}" for m in modes)
        mark = " too noisy" if c["noisy"] else f" batch {c['batches']}" if c["batches"] > 1 else ""
        print(f"{_name(c):<30}{statistics.median(c['program_s']):>8.3f} s{100 * c['variation']:>8.1f} %{row}{mark}", file=out)


def _program_row(cells, name, modes):
    row = ""
    for mode in modes:
        errors = [abs(c["modes"][mode]["error"]) for c in cells if c["program"] == name and mode in c["modes"]]
        row += f"{100 * statistics.mean(errors):>8.1f} / {100 * max(errors):<5.1f}" if errors else f"{'-':>16}"
    return row


def put_summary(cells, out):
    modes = modes_of(cells)
    print(f"\n{'absolute error in %, mean / worst':<34}" + "".join(f"{m:>16}" for m in modes), file=out)
    for name in dict.fromkeys(c["program"] for c in good(cells)):
        print(f"{name:<34}{_program_row(good(cells), name, modes)}", file=out)
    sums = [summary(cells, m) for m in modes]
    for key in ("mean", "median", "worst", "worst_decile"):
        print(f"{'all: ' + key:<34}" + "".join(f"{100 * s[key]:>12.1f}    " for s in sums), file=out)
    for key in ("within_5", "cells", "mismatches", "unsupported"):
        print(f"{'all: ' + key:<34}" + "".join(f"{s[key]:>12}    " for s in sums), file=out)
    for line in notes(cells):
        print(line, file=out)


def notes(cells):
    """What is to be known of single cells, a line each."""
    behind = behind_others(cells)
    if behind:
        yield "more than 2 points behind artc or temporal: " + ", ".join(_name(c) for c in behind)
    noisy = [_name(c) for c in good(cells) if c["noisy"]]
    if noisy:
        yield "too noisy, also when repeated: " + ", ".join(noisy)
    for line in other_outcomes(cells):
        yield "other outcomes: " + line
    left_out = [_name(c) for c in cells if "left_out" in c]
    if left_out:
        yield "left out, as the time was up: " + ", ".join(left_out)
    for c in cells:
        if "failed" in c:
            yield f"failed: {_name(c)}: {c['failed']}"


BAD = 0.10  # errors beyond this stand out


def _markdown_cell(c, modes):
    first, *others = [f"{100 * c['modes'][m]['error']:+.1f}" if m in c["modes"] else "-" for m in modes]
    if modes[0] in c["modes"] and abs(c["modes"][modes[0]]["error"]) > BAD:
        first = f"**{first}**"
    return first + (f" ({', '.join(others)})" if others else "") + (" *noisy*" if c["noisy"] else "")


def put_markdown(cells, out):
    """For a document: a row for each program, a column for each pair of storages; then the sums."""
    modes, all_cells, cells = modes_of(cells), cells, good(cells)
    pairs = list(dict.fromkeys((c["a"], c["b"]) for c in cells))
    print(f"Signed error in %: `{modes[0]}`" + (f" ({', '.join(f'`{m}`' for m in modes[1:])})" if modes[1:] else "") + "\n", file=out)
    print("| program | " + " | ".join(f"{short_name(a)} -> {short_name(b)}" for a, b in pairs) + " |\n" + "|---" * (1 + len(pairs)) + "|", file=out)
    for name in dict.fromkeys(c["program"] for c in cells):
        of_pair = {(c["a"], c["b"]): _markdown_cell(c, modes) for c in cells if c["program"] == name}
        print(f"| {name} | " + " | ".join(of_pair.get(pair, "") for pair in pairs) + " |", file=out)
    print("\n| absolute error in % | mean | median | worst | worst tenth | cells within 5 | calls with another outcome | known to one file system only |\n|---|---|---|---|---|---|---|---|", file=out)
    for mode in modes:
        s = summary(cells, mode)
        print(f"| `{mode}` | " + " | ".join(f"{100 * s[k]:.1f}" for k in ("mean", "median", "worst", "worst_decile"))
              + f" | {s['within_5']} of {s['cells']} | {s['mismatches']} | {s['unsupported']} |", file=out)
    print("\n" + "".join(f"- {line}\n" for line in notes(all_cells)), end="", file=out)


def put_part(name, part, out):
    print(f"\n== {name}: {part['purpose']}", file=out)
    if part["cells"]:
        put_cells(part["cells"], out)
        put_summary(part["cells"], out)
    for line in part.get("text", []):
        print(line, file=out)
    if "seconds" in part:
        print(f"took {part['seconds']:.0f} s", file=out)
    for name_of, device in part.get("devices", {}).items():
        late = device.get("late_ns")
        if late:
            print(f"storage {short_name(name_of)}: answers {late['mean'] / 1000:.0f} us late in the mean, p99 {late['p99'] / 1000:.0f} us", file=out)
