# SPDX-License-Identifier: MIT
"""A small page cache: what runs in a memory cgroup gets no more than its limit, cached pages included."""
import os

V1 = "/sys/fs/cgroup/memory"
V2 = "/sys/fs/cgroup"


class Group:
    """One group for the whole bench; its limit is set for each run anew."""

    def __init__(self, path):
        self.path = path
        self.is_v1 = path.startswith(V1 + "/")

    def set_limit(self, limit_bytes):
        self._write("memory.limit_in_bytes" if self.is_v1 else "memory.max", str(limit_bytes))

    def _write(self, name, text):
        with open(f"{self.path}/{name}", "w") as f:
            f.write(text)

    def __enter__(self):
        """This process, and what it starts."""
        with open("/proc/self/cgroup") as f:
            lines = [line.rstrip("\n").split(":", 2) for line in f]
        mine = next(path for number, names, path in lines if "memory" in names.split(",") or (not self.is_v1 and number == "0"))
        self.former = (V1 if self.is_v1 else V2) + mine
        self._write("cgroup.procs", "0")
        return self

    def __exit__(self, *_):
        with open(f"{self.former}/cgroup.procs", "w") as f:
            f.write("0")

    def wrap(self, argv):
        """The same command, which enters the group by itself."""
        return ["/bin/sh", "-c", 'echo 0 >"$0" && exec "$@"', self.path + "/cgroup.procs"] + argv


def make_group(name):
    """The group, or None where the kernel offers none."""
    for top, sign in ((V1, "memory.limit_in_bytes"), (V2, "memory.max")):
        path = f"{top}/{name}"
        try:
            os.mkdir(path)
        except OSError:
            continue
        if os.path.exists(f"{path}/{sign}"):
            return Group(path)
        os.rmdir(path)
    return None
