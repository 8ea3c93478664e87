# SPDX-License-Identifier: MIT
"""The parts of the measurement: which programs on which storages, in which modes. Each stands on a bench of its own."""
import programs
from storages import other_fs

SIDE_BY_SIDE = ["default", "artc", "temporal"]
OTHER_MODES = ["afap", "artc-natural", "overlap", "single", "none"]
QUICK = ["own1", "own8", "queue", "mutex", "barrier", "compute"]
# The ten programs on which ARTC itself was measured; then the others.
TEN = ["own1", "own2", "own8", "cache", "queue", "mutex", "barrier", "compute", "readrandom4", "fillsync8"]
MORE = ["pipe", "socket", "rename", "fsync", "commit", "readrandom8", "fillsync4", "sqlite", "postmark", "gcc", "git"]


def _slices(ms):
    return f"D:scheduler=bfq:rotational=1:low_latency=0:timeout_sync={ms}:name=slices of {ms} ms"


def _part(purpose, storages, of, modes=None, **more):
    return {"purpose": purpose, "storages": storages, "programs": of, "modes": modes or SIDE_BY_SIDE, **more}


def all_parts():
    """In the order of what they are worth, should there not be time for all."""
    fs = other_fs()
    parts = {
        "matrix": _part("ten programs, a disk with a queue, two disks as RAID 0, an SSD", ["H", "R", "S"], TEN),
        "figure5": _part("small and large cache, short and long time slices of the scheduler (Figure 5, c and d, of the ROOT paper)",
                         ["R", "R:cache=20M", _slices(1), _slices(100)], ["cache", "sequential"], SIDE_BY_SIDE + ["single"], rounds=3,
                         only=[("cache", "R", "R:cache=20M"), ("cache", "R:cache=20M", "R"),
                               ("sequential", _slices(1), _slices(100)), ("sequential", _slices(100), _slices(1))]),
        "figure6": _part("time slices of the scheduler, varied (Figure 6)", [_slices(1)], ["sequential"], ["default", "temporal", "single"],
                         rounds=3, experiment="slices"),
        "figure8": _part("how many edges, and how long (Figure 8)", ["H"], ["readrandom4"], experiment="edges"),
        "figure9": _part("how many calls are under way at once (Figure 9)", ["H"], ["readrandom4"], ["default", "afap", "artc", "temporal", "overlap"],
                         rounds=3, experiment="concurrency"),
        "programs": _part("further programs, disk and SSD", ["H", "S"], MORE),
        "recorder": _part("traced by ptrace alone", ["H", "S"], QUICK, rounds=3, recorder="ptrace"),
        "filesystem": _part(f"ext4 and {fs} on the SSD", ["S", f"S:fs={fs}"], ["own8", "cache", "rename", "commit", "sqlite", "postmark", "fillsync8"], rounds=3),
        "fifo": _part("a disk that takes requests in order, beside one with a queue and an SSD", ["F", "H", "S"], ["own8", "queue", "barrier"],
                      pairs=[("F", "H"), ("H", "F"), ("F", "S"), ("S", "F")]),
        "readahead": _part("the kernel reads ahead nothing, 128 KiB, 1 MiB", ["H:read-ahead=0", "H", "H:read-ahead=1024"], ["cache"], rounds=3),
        "modes": _part("further ways of replay", ["H", "S"], QUICK + ["readrandom4", "fillsync8"], OTHER_MODES, rounds=3),
    }
    if not fs:
        del parts["filesystem"]
    return parts


QUICK_PART = _part("a few programs, disk and SSD", ["H", "S"], QUICK, rounds=3)


def pairs_of(part, name):
    """Which pairs of storages a program of a part is measured on."""
    if "only" in part:
        return [(a, b) for program, a, b in part["only"] if program == name]
    if "pairs" in part:
        return part["pairs"]
    same = part.get("same", False)
    return [(a, b) for a in part["storages"] for b in part["storages"] if same or a != b]


def without_missing(part):
    """The part with those programs only that are installed, and the names of the others."""
    left_out = {name: programs.missing(name) for name in part["programs"] if programs.missing(name)}
    return {**part, "programs": [name for name in part["programs"] if name not in left_out]}, left_out
