# SPDX-License-Identifier: MIT
"""One trial: a program alone, recorded, and replayed; what came of it, and what is wrong with that.

    <scratch>/box      where the program runs: its directory, its HOME, its TMPDIR
    <scratch>/trace    what was recorded, <scratch>/plan compiled from it
    <target>/<name>    where it is replayed, so that box is <target>/<name>/<scratch>/box

The tree that the program left is listed here, by os.lstat and a hash of each file, and
not by reprise: that listing is what a replay has to reproduce.
"""

import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess

MODES = {
    "natural": ["--speed=natural"],
    "afap": ["--speed=afap"],
    "perturbed": ["--speed=afap", "--perturb=1"],
}
# More enforced failures than this are a replay in which too much was not tried.
MOST_ENFORCED = 0.01
# Set-id bits are applied with --privileged-metadata only.
MODE_BITS = 0o1777
MAX_TRACE = "2G"
# Programs as the system has them first, none that a user installed in his home.
PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"

# What can be wrong; a row explains each of them by its own text.
KINDS = {
    "status": "the program ended otherwise than alone",
    "trace": "the trace is incomplete",
    "end": "the replay did not perform everything",
    "mismatches": "calls had another outcome",
    "verify": "verify found differences",
    "listing": "the tree is not the one that the program left",
    "enforced": "more than 1 % of the actions enforced",
}


class Failed(Exception):
    """The trial cannot go on; the argument is (kind, why)."""


def describe(path):
    """(type, mode, size, contents) of a file; the size of a directory is the file system's matter."""
    st = os.lstat(path)
    kind = stat.S_IFMT(st.st_mode)
    mode = oct(st.st_mode & MODE_BITS)
    if kind == stat.S_IFLNK:
        return ("link", None, None, os.readlink(path))
    if kind == stat.S_IFDIR:
        return ("directory", mode, None, None)
    if kind != stat.S_IFREG:
        return (stat.filemode(st.st_mode)[0], mode, None, None)
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as f:
        for piece in iter(lambda: f.read(1 << 20), b""):
            digest.update(piece)
    return ("file", mode, st.st_size, digest.hexdigest())


def listing(top):
    """What is below a directory: relative path -> description."""
    found = {}
    if not os.path.isdir(top):
        return found
    found["."] = describe(top)
    for directory, names, files in os.walk(top):
        for name in names + files:
            path = os.path.join(directory, name)
            found[os.path.relpath(path, top)] = describe(path)
    return found


def compare(before, after, made, now):
    """The paths, with a reason, at which a replay left something else than the program.

    A path that the program left as it was is in the trace only as far as the program
    asked for it: the replay may leave what the initial tree has there, or nothing.
    """
    different = []
    for path in sorted(set(after) | set(now)):
        allowed = [after.get(path)]
        if path in after and before.get(path) == after[path]:
            allowed.append(made.get(path))
        if now.get(path) not in allowed:
            different.append("%s: %s, not %s" % (path, now.get(path), after.get(path)))
    return different


def remove(path):
    def retry(_function, name, _error):
        os.chmod(os.path.dirname(name), 0o700)
        if os.path.isdir(name) and not os.path.islink(name):
            os.chmod(name, 0o700)
            shutil.rmtree(name, onerror=retry)
        else:
            os.unlink(name)

    if os.path.lexists(path):
        shutil.rmtree(path, onerror=retry)


class Replay:
    """What came of one replay."""

    def __init__(self, where):
        self.where = where  # file system and mode
        self.wrong = {}  # kind -> why
        self.is_silent = False
        self.report = {}
        self.differences = 0  # of verify
        self.unlike = []  # of the listing


class Trial:
    def __init__(self, row, reprise, scratch, targets):
        self.row = row
        self.reprise = reprise
        self.scratch = scratch
        self.targets = targets  # name -> directory
        self.box = os.path.join(scratch, "box")
        self.wrong = {}  # kind -> why, the first of all replays
        self.silent = []  # where
        self.warnings = []
        self.summary = {}
        self.replays = []
        # Nothing of the caller's: neither traces nor programs depend on who runs the suite.
        self.env = dict(
            PATH=PATH, LC_ALL="C", TZ="UTC", USER="a", SHELL="/bin/sh",
            HOME=self.box, TMPDIR=os.path.join(self.box, "tmp"),
            GIT_CONFIG_NOSYSTEM="1", GIT_AUTHOR_NAME="A", GIT_AUTHOR_EMAIL="a@b",
            GIT_COMMITTER_NAME="A", GIT_COMMITTER_EMAIL="a@b",
        )

    def note(self, wrong, where=""):
        for kind, why in wrong.items():
            self.wrong.setdefault(kind, (where + ": " if where else "") + why)

    def command(self, argv, cwd=None, timeout=None, env=None):
        """(status, stdout, stderr); whatever outlives the time limit is killed, with all it started."""
        with open(os.path.join(self.scratch, "err"), "w+b") as err:
            process = subprocess.Popen(
                argv, cwd=cwd or self.scratch, env=env, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=err, start_new_session=True,
            )
            try:
                out, _ = process.communicate(timeout=timeout or self.row.timeout)
                status = process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, _ = process.communicate()
                status = "none after %d s" % (timeout or self.row.timeout)
            err.seek(0)
            return status, out.decode(errors="replace"), err.read().decode(errors="replace")

    def ours(self, kind, *argv, good=(0,)):
        """Runs reprise; its standard output, and its status. What it warns of is kept."""
        status, out, err = self.command([self.reprise] + list(argv), timeout=self.row.timeout * 5)
        # Owners and set-id bits are not in the listings.
        self.warnings += [line for line in err.splitlines() if ": warning: " in line and "warning: not applied" not in line]
        if status not in good:
            lines = [line for line in err.splitlines() if ": warning: " not in line] or [""]
            raise Failed(kind, "%s: status %s: %s" % (argv[0], status, lines[0]))
        return out, status

    def prepare(self):
        remove(self.box)
        os.makedirs(self.env["TMPDIR"])
        os.chmod(self.box, 0o755)
        if self.row.prepare:
            status, _, err = self.command(["sh", "-ec", self.row.prepare], cwd=self.box, env=self.env)
            if status != 0:
                raise Failed("status", "the preparation failed: %s: %s" % (status, err.strip()[-300:]))

    def record(self):
        """Alone, then recorded: the same status. Leaves the listings of before and after, and a plan."""
        argv = ["sh", "-ec", self.row.run]
        self.prepare()
        alone, out, err = self.command(argv, cwd=self.box, env=self.env)
        if alone != self.row.status:
            raise Failed("status", "alone: %s, not %s: %s" % (alone, self.row.status, (err or out).strip()[-300:]))
        self.prepare()
        self.before = listing(self.box)
        summary = os.path.join(self.scratch, "summary")
        recorder = [self.reprise, "record", "-q", "-f", "-o", self.path("trace"), "--summary=" + summary,
                    "--cache=" + os.path.join(os.path.dirname(self.scratch), "cache"), "--max-size=" + MAX_TRACE, "--"]
        status, out, err = self.command(recorder + argv, cwd=self.box, env=self.env, timeout=self.row.timeout * 4)
        self.after = listing(self.box)
        self.warnings += [line for line in err.splitlines() if line.startswith("reprise: ")]
        if status != alone:
            self.note({"status": "recorded: %s, alone: %s: %s" % (status, alone, err.strip()[-300:])})
        if not os.path.exists(summary):
            raise Failed("trace", "nothing was recorded: " + err.strip()[-300:])
        with open(summary, encoding="utf-8") as f:
            self.summary = json.load(f)
        if not self.summary["complete"]:
            ledger = ["%s %d" % item for item in self.summary["ledger"].items() if item[1]]
            self.note({"trace": ", ".join(ledger) or str(self.summary["ended_early"])})
        self.ours("end", "compile", "-q", "-f", "-o", self.path("plan"), self.path("trace"))

    def path(self, name):
        return os.path.join(self.scratch, name)

    def replay(self, where, tree, options):
        """One replay into a tree that is made or repaired, judged."""
        made = Replay(where)
        self.replays.append(made)
        out, status = self.ours("end", "replay", "-q", "--json", "--stall-timeout=60s", *options,
                                self.path("plan"), tree, good=(0, 1))
        report = made.report = json.loads(out)
        if report["end"] != "complete" or report["unbuilt"] or report["pipes"]["broken"]:
            made.wrong["end"] = "%s, %d actions not built, %d pipes at a standstill" % (
                report["end"], report["unbuilt"], report["pipes"]["broken"])
        if report["mismatches"] or status:
            made.wrong["mismatches"] = "%d: %s" % (report["mismatches"], self.first_mismatch(report))
        if report["enforced"] > MOST_ENFORCED * max(report["actions"], 1):
            made.wrong["enforced"] = "%d of %d: %s" % (
                report["enforced"], report["actions"], report["enforced_by_error"])
        out, _ = self.ours("verify", "verify", "-q", "--json", self.path("trace"), tree, good=(0, 1))
        verified = json.loads(out)
        made.differences = verified["differences"]
        if made.differences:
            made.wrong["verify"] = "%d: %s" % (made.differences, verified["list"][0] if verified["list"] else "")
        made.unlike = compare(self.before, self.after, self.made, listing(tree + self.box))
        if made.unlike:
            made.wrong["listing"] = "%d: %s" % (len(made.unlike), made.unlike[0])
            made.is_silent = not (self.warnings or "trace" in self.wrong or {"end", "mismatches"} & set(made.wrong))
        self.note(made.wrong, where)
        if made.is_silent:
            self.silent.append(where)

    def first_mismatch(self, report):
        """The first one in words, with the arguments of its event."""
        first = (report["first_mismatches"] or [None])[0]
        if not first:
            return report["mismatches_by_kind"]
        out, _ = self.ours("end", "show", "-q", "--json", "-t", str(first["tid"]), "-c", first["call"], self.path("trace"))
        events = [json.loads(line) for line in out.splitlines()]
        args = [dict(e["args"], **e.get("paths", {})) for e in events if e["seq"] == first["seq"]]
        return "%s: %s (event %d) %.300s: %s, not %s" % (
            first["kind"], first["call"], first["seq"], args, first["got"], first["expected"])

    def run(self):
        """The whole trial; what is wrong is in wrong and silent afterwards."""
        try:
            self.record()
            for name, target in self.targets.items():
                tree = os.path.join(target, self.row.name)
                os.mkdir(tree)
                try:
                    self.ours("end", "init", "-q", self.path("plan"), tree)
                    self.made = listing(tree + self.box)
                    for mode, options in MODES.items():
                        self.replay("%s %s" % (name, mode), tree, options)
                finally:
                    remove(tree)
        except Failed as failure:
            self.note({failure.args[0]: failure.args[1]})
        except (OSError, ValueError) as error:
            self.note({"end": "the trial itself failed: %r" % error})
