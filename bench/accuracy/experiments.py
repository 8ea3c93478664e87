# SPDX-License-Identifier: MIT
"""Experiments that are more than cells of a matrix. Each has one function that measures, on the bench, and one that tells, from what was measured."""
import json
import os
import statistics

import bench as b
import plots

POLICIES = {"root": [], "artc": ["--rules=artc"], "temporal": ["--order=temporal"], "overlap": ["--order=overlap"]}
SLICES_MS = [1, 5, 20, 50, 100]


def _compiled(bench, name, storage, modes):
    recorded = bench.record(name, storage)
    for mode in modes:
        bench.compile(recorded, mode)
    return recorded


# figure6: how long bfq lets a thread have the disk, in the trace and in the replay.

def slices_measure(bench, storages, part, save):
    storage = storages[0]
    root = storage.directory + "/replay"
    traces = {}
    for slice_ms in (SLICES_MS[0], SLICES_MS[-1]):
        storage.set_queue("timeout_sync", slice_ms)
        recorded = _compiled(bench, part["programs"][0], storage, part["modes"])
        for mode in part["modes"]:  # the next trace has the same name
            plan = traces.setdefault(slice_ms, {})[mode] = f"{bench.work}/slice.{slice_ms}.{mode}.plan"
            os.rename(f"{recorded['trace']}.{mode}.plan", plan)
    data = {"slices_ms": SLICES_MS, "program_s": {}, "replay_s": {}}
    bench.init(recorded, root)
    for slice_ms in SLICES_MS:
        storage.set_queue("timeout_sync", slice_ms)
        for _ in range(part["rounds"]):
            data["program_s"].setdefault(slice_ms, []).append(bench.run(recorded["program"], storage, root + recorded["data"]))
            for source_ms, plans in traces.items():
                for mode, plan in plans.items():
                    report = bench.replay(plan, storage, root, mode)
                    name = f"{mode}, traced with {source_ms} ms"
                    data["replay_s"].setdefault(name, {}).setdefault(slice_ms, []).append(report["elapsed_ns"] / 1e9)
        save(data)
    return data


def slices_tell(data, prefix):
    def medians(times):
        return {float(k): statistics.median(v) for k, v in times.items()}

    program = medians(data["program_s"])
    series = {"program": [(k, 1 / v) for k, v in program.items()]}
    text = ["", f"{'elapsed s by time slice in ms':<34}" + "".join(f"{k:>9g}" for k in program), f"{'program':<34}" + "".join(f"{v:>9.3f}" for v in program.values())]
    for name, times in data["replay_s"].items():
        times = medians(times)
        series[name] = [(k, 1 / v) for k, v in times.items()]
        text.append(f"{name:<34}" + "".join(f"{v:>9.3f}" for v in times.values()))
        text.append(f"{'':<34}" + "".join(f"{100 * (times[k] / program[k] - 1):>+8.1f}%" for k in times))
    plots.lines(series, prefix + ".svg", "time slices of bfq: throughput of the program and of replays", "time slice, ms", "runs per second")
    return text


# figure8: how many edges there are, and how long.

def edges_measure(bench, storages, part, save):
    recorded = bench.record(part["programs"][0], storages[0])
    data = {}
    for policy, options in POLICIES.items():
        graph = json.loads(b.call([bench.reprise, "graph", "-q", "--json"] + options + [recorded["trace"]]))
        data[policy] = {k: graph[k] for k in ("actions", "edges", "edge_length_ns", "parallelism", "edges_by_rule")}
    save(data)
    return data


def edges_tell(data, prefix):
    text = ["", f"{'order':<12}{'actions':>10}{'edges':>10}{'mean length':>14}{'p50':>12}{'p99':>12}{'parallelism up to':>20}"]
    groups = []
    for policy, g in data.items():
        length = g["edge_length_ns"]
        text.append(f"{policy:<12}{g['actions']:>10}{g['edges']:>10}" + f"{length['mean'] / 1e6:>11.2f} ms{length['p50'] / 1e6:>9.2f} ms{length['p99'] / 1e6:>9.1f} ms"
                    + f"{g['parallelism']['plan']:>20.2f}")
        groups.append((policy, [("mean", length["mean"] / 1e6, f"{length['mean'] / 1e6:.3g}"), ("p50", length["p50"] / 1e6, f"{length['p50'] / 1e6:.3g}")]))
    plots.bars(groups, prefix + ".svg", "length of edges in the trace", "ms", log=True)
    return text


# figure9: how many calls are under way at once.

WINDOW_S = 0.05  # that the plot shows


def _calls(bench, trace):
    """Reads by thread, in seconds since the first of them."""
    threads = {}
    for line in b.call([bench.reprise, "show", "-q", "--json", "--no-paths", "-c", "pread64", trace]).splitlines():
        event = json.loads(line)
        threads.setdefault(event["tid"], []).append((event["enter_ns"] / 1e9, event["exit_ns"] / 1e9))
    first = min(calls[0][0] for calls in threads.values())
    return [[(begin - first, end - first) for begin, end in calls] for calls in threads.values() if len(calls) > 10]


def _picture(threads):
    """Of the time in which all threads read: mean number in a call; and of its middle what is drawn."""
    begin, end = max(calls[0][0] for calls in threads), min(calls[-1][1] for calls in threads)
    busy = sum(min(e, end) - max(s, begin) for calls in threads for s, e in calls if e > begin and s < end)
    at = max(begin, (begin + end - WINDOW_S) / 2)
    drawn = [[(max(s, at) - at, min(e, at + WINDOW_S) - at) for s, e in calls if e > at and s < at + WINDOW_S] for calls in threads]
    return {"concurrency": busy / (end - begin), "threads": len(threads), "drawn": drawn}


def concurrency_measure(bench, storages, part, save):
    storage, root = storages[0], storages[0].directory + "/replay"
    recorded = _compiled(bench, part["programs"][0], storage, part["modes"])
    data = {"trace": _picture(_calls(bench, recorded["trace"])), "modes": {}}
    for mode in part["modes"]:
        for _ in range(part["rounds"]):
            bench.init(recorded, root)
            bench.replay(f"{recorded['trace']}.{mode}.plan", storage, root, mode, ["-f", "-o", bench.work + "/run.trace"])
            data["modes"].setdefault(mode, []).append(_picture(_calls(bench, bench.work + "/run.trace")))
    save(data)
    return data


def concurrency_tell(data, prefix):
    trace = data["trace"]
    text = ["", f"{'reads under way at once':<26}{'mean':>8}{'of the trace':>15}", f"{'trace, ' + str(trace['threads']) + ' threads':<26}{trace['concurrency']:>8.2f}"]
    panels = [("trace", WINDOW_S, trace["drawn"])]
    for mode, runs in data["modes"].items():
        mean = statistics.median(r["concurrency"] for r in runs)
        text.append(f"{mode:<26}{mean:>8.2f}{100 * mean / trace['concurrency']:>13.0f} %")
        panels.append((f"{mode}, {100 * mean / trace['concurrency']:.0f} % of the trace's concurrency", WINDOW_S, runs[0]["drawn"]))
    plots.timelines(panels, prefix + ".svg", "a part of the run: when each thread is in a read")
    return text


EXPERIMENTS = {  # how it is measured, how it is told
    "slices": (slices_measure, slices_tell),
    "edges": (edges_measure, edges_tell),
    "concurrency": (concurrency_measure, concurrency_tell),
}
