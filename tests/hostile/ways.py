# SPDX-License-Identifier: MIT
"""Record hostile programs with every recorder, and check what must hold for all of them.

Who runs what:

  other   root runs the recorder, another user the program
  user    an unprivileged user runs both
  self    whoever runs the test runs both

Each case runs in a directory with these entries:

  made    the working directory of the program
  victim  a file that only root may write
  secret  a file that only root may read or write; it contains a random marker

After each recording both files must be unchanged, and the marker must not be in the trace.
"""

import atexit
import functools
import os
import secrets
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torture"))
import harness  # pylint: disable=wrong-import-position
from harness import *  # pylint: disable=wildcard-import,wrong-import-position

WAYS = ("ptrace", "inproc", "auto", "untrusted")
WITHOUT_AGENT = ("ptrace", "untrusted")
USERS = ("other", "user")
IS_ROOT = os.geteuid() == 0
NOBODY = 65534
TO_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
NO_AGENT, NOT_HERE = 7, 77
MARKER = "marker" + secrets.token_hex(12)
# With --recorder=auto a program gets the agent after 50 calls. Sanitizers keep their options.
ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "REPRISE_AGENT_AFTER": "50"}
ENV.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})


def publish(files):
    """Copy programs to a directory that any user can enter; the build directory may not be one."""
    where = tempfile.mkdtemp(prefix="hostile.")
    atexit.register(shutil.rmtree, where, ignore_errors=True)
    os.chmod(where, 0o755)
    copies = []
    for file in files:
        copy = os.path.join(where, os.path.basename(file))
        if os.path.exists(file):
            shutil.copyfile(file, copy)
            os.chmod(copy, 0o755)
        copies.append(copy)
    return copies


REPRISE, HOSTILE, STILL = publish([harness.REPRISE, *sys.argv[1:3]])
harness.REPRISE = REPRISE
HELP = subprocess.run([REPRISE, "record", "-h"], check=False, stdout=subprocess.PIPE,
                      text=True).stdout


def way_options(way):
    if way == "untrusted":
        expect("--untrusted" in HELP, "reprise record has no --untrusted")
        return ["--untrusted"]
    options = ["--recorder=" + way]
    if way != "ptrace" and "--agent-for" in HELP:
        options.append("--agent-for=all")
    return options


def need_root():
    if not IS_ROOT:
        raise Skipped("needs root")
    if not shutil.which("setpriv"):
        raise Skipped("setpriv is not installed")


def prepare():
    """Create the entries of a case's directory; "made" starts empty."""
    shutil.rmtree("made", ignore_errors=True)
    os.mkdir("made")
    os.chmod("made", 0o777)
    for name, content, mode in (("victim", "root's\n", 0o644), ("secret", MARKER + "\n", 0o600)):
        if not os.path.exists(name):
            with open(name, "w", encoding="utf-8") as f:
                f.write(content)
            os.chmod(name, mode)


def state_of_files():
    states = []
    for name in "victim", "secret":
        s = os.stat(name)
        with open(name, encoding="utf-8", errors="replace") as f:
            states.append((name, s.st_size, f.read(80), s.st_mtime_ns, s.st_mode, s.st_uid))
    return states


def run_recorded(way, *words, user="other", options=(), by=None, may_tell=False):
    """Record a program, check what must hold for every recording, and return (status, stdout).

    by: the command that switches to the other user; TO_NOBODY if None
    may_tell: the program has the right to read the secret"""
    if IS_ROOT and user != "self":
        need_root()
    before = state_of_files()
    prefix = (TO_NOBODY if by is None else by) if IS_ROOT and user != "self" else []
    argv = ["env", "-i", *(f"{k}={v}" for k, v in ENV.items()), "sh", "-c", 'cd made && exec "$@"', "sh"]
    record_it = [REPRISE, "record", "-q", "-f", "-o", os.path.abspath("trace"), "--data=all",
                 "--contents=64K", "--cache=", *way_options(way), *options, "--"]
    if os.path.exists("trace"):
        os.unlink("trace")
    if user == "user":
        argv += [*prefix, *record_it, *words]
    else:
        argv += [*record_it, *prefix, *words]
    p = start(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    status, out, err = finish(p)
    text = err.decode(errors="replace")
    expect("ERROR: AddressSanitizer" not in text and "runtime error:" not in text, text)
    if status == NOT_HERE:
        raise Skipped("not possible on this machine")
    expect(os.path.exists("trace"), f"no trace; status {status}\n{text}")
    # The recorder ends with the program's signal, but only after it has closed the trace.
    expect(status >= 0 or Trace().check()[1]["closed"], f"the recorder was killed by signal {-status}\n{text}")
    if IS_ROOT:
        equal(state_of_files(), before, "files of root's")
    if not may_tell and (IS_ROOT or user == "self"):
        must_not_tell()
    return status, out.decode(errors="replace")


@functools.lru_cache(maxsize=1)
def text_of(_):
    status, out, err = run(REPRISE, "show", "--exact", "trace")
    equal(status, 0, f"reprise show: {err.decode()}")
    return out.decode(errors="replace")


def text_of_trace():
    """The trace as lossless text, with the contents of all files."""
    return text_of((os.path.abspath("trace"), os.stat("trace").st_mtime_ns))


def must_not_tell():
    lines = [line for line in text_of_trace().split("\n") if MARKER in line]
    expect(not lines, "the trace contains the secret: " + "\n".join(s[:600] for s in lines))


def must_be_sound():
    """Check that the trace is intact and closed; this verifies the hash of all data."""
    status, check = Trace().check()
    equal((check["intact"], check["closed"]), (True, True),
          f"reprise check: {check['first_fault']}: status {status}; intact, closed")


def made():
    """The paths of all files that the program created."""
    return sorted(os.path.join(where, name) for where, _, files in os.walk("made") for name in files)


def made_names():
    return sorted(os.path.basename(path) for path in made())


def must_have_made(may_confess):
    """Check that the trace has the open of each created file, and the write of a file that is not empty.

    may_confess: an entry in the ledger, which says that the trace is incomplete, is enough"""
    events = [line for line in text_of_trace().split("\n")
              if not line.startswith(("tree_", "blob ", "meta(")) and " = -1 " not in line]
    unseen = []
    for path in made():
        name = os.path.basename(path)
        wanted = [[name + '"', "path="]] + [[f'buf="{name}"', "write"]] * (os.stat(path).st_size > 0)
        unseen += [words for words in wanted if not any(all(w in line for w in words) for line in events)]
    if unseen and may_confess:
        expect(Trace().ledger(), f"not in the trace, and the ledger is empty: {unseen}")
    else:
        equal(unseen, [], "calls that are not in the trace")


def each(what, ways=WAYS, users=USERS):
    """Register a case for each recorder and user; the function gets both as arguments."""
    def add(function):
        def one(way, user):
            if user == "other":
                need_root()
            prepare()
            function(way, user)
        for user in users:
            for way in ways:
                cases.append((f"{what} ({user}, {way})", functools.partial(one, way, user)))
        return function
    return add


__all__ = [name for name in dir() if not name.startswith("_")]
