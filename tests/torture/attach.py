#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: attach.py TORTURE TORTURE_STATIC TORTURE_NARROW [PATTERN]...

Attaching to a running program and letting go, which has to do it no harm. Cases can be
chosen by a part of their names.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import *  # pylint: disable=wildcard-import,wrong-import-position

TORTURE = os.path.abspath(sys.argv[1])


def start_server(nr_threads=8, *more):
    p = start([TORTURE, "serve", str(nr_threads), *more])
    wait_for_calls(200)
    return p


def attach(pid, *options):
    """Returns when the recorder has attached, or has ended: from then on it takes signals."""
    # The map in which it counts was there before.
    p = start([REPRISE, "record", "-o", "trace", "--force", "--stores=off", "--attach", str(pid), *options],
              stderr=subprocess.PIPE)
    wait_until(lambda: p.poll() is not None or p.pid in map(tracer_of, threads_of(pid)), "the recorder attaches")
    return p


def threads_of(pid):
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def stop_server(p):
    """It must be unharmed: makes calls, ends when asked to, with 0."""
    equal(p.poll(), None, "the program has ended")
    wait_for_calls(200)
    with open("stop", "w", encoding="utf-8"):
        pass
    equal(p.wait(PATIENCE_S), 0, "exit status of the program")


@case("attach to a program with threads, and let go by Ctrl-C")
def attach_and_detach():
    server = start_server()
    for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
        p = attach(server.pid)
        time.sleep(0.5)
        first = counts()
        time.sleep(1)
        second = counts()
        p.send_signal(signo)
        status, _, err = finish(p)
        equal(status, 0, f"exit status of the recorder\n{err.decode()}")
        trace = Trace()
        _, check = trace.check()
        equal((check["intact"], check["closed"], check["lost"]), (True, True, 0),
              "intact, closed, lost")
        stat = trace.stat()
        equal(stat["threads"], 9, "threads")
        for name in ("pwrite64", "preadv", "fchmod"):
            got = stat["calls"][name]["count"]
            expect(got >= second[name][0] - first[name][1],
                   f"{name}: {got} recorded, more than {second[name][0] - first[name][1]} made")
        fds = trace.events("--call=found_fd")
        expect({0, 1, 2} <= {e["args"]["fd"] for e in fds}, f"found_fd: {fds}")
        states = trace.events("--call=found_state")
        equal(len(states), 1, "found_state")
        equal(states[0]["args"]["cwd"], os.path.realpath(os.getcwd()), "working directory")
    stop_server(server)


@case("no wait is broken off by the recorder's coming and going")
def attach_to_patient():
    server = start([TORTURE, "patient"])
    wait_for_calls(20)
    for _ in range(3):
        p = attach(server.pid, "--contents=0")
        wait_for_calls(10)
        p.send_signal(signal.SIGINT)
        status, _, err = finish(p)
        equal(status, 0, f"exit status of the recorder\n{err.decode()}")
        wait_for_calls(10)
    stop_server(server)


@case("attach to a process whose first thread has ended")
def attach_to_headless():
    server = start_server(4, "headless")
    wait_until(lambda: not is_alive(server.pid), "the first thread ends")
    p = attach(server.pid)
    wait_for_calls(500)
    stop_server(server)
    status, _, err = finish(p)
    equal(status, 0, f"exit status of the recorder\n{err.decode()}")
    trace = Trace()
    stat = trace.must_be_whole()
    equal(stat["threads"], 5, "threads")
    expect(stat["calls"]["pwrite64"]["count"] > 50, "calls are missing")
    expect({0, 1, 2} <= {e["args"]["fd"] for e in trace.events("--call=found_fd")}, "descriptors are missing")
    equal([e["args"]["cwd"] for e in trace.events("--call=found_state")], [os.path.realpath(os.getcwd())], "state")


@case("attach while threads come and go")
def attach_to_breeding():
    server = start([TORTURE, "processes", "100000"])
    wait_for_calls(100)
    for _ in range(5):
        p = attach(server.pid, "--data=none")
        time.sleep(0.4)
        p.send_signal(signal.SIGINT)
        status, _, err = finish(p)
        equal(status, 0, f"exit status of the recorder\n{err.decode()}")
        _, check = Trace().check()
        equal((check["intact"], check["closed"], check["lost"]), (True, True, 0),
              "intact, closed, lost")
        before = nr_done()
        wait_until(lambda: nr_done() > before + 200, "the program goes on")
        equal(server.poll(), None, "the program has ended")


@case("attach, and the program ends: the trace is whole")
def attach_to_the_end():
    server = start_server()
    p = attach(server.pid)
    wait_until(lambda: os.path.exists("trace"), "the trace is begun")
    time.sleep(0.5)
    stop_server(server)
    status, _, err = finish(p)
    equal(status, 0, f"exit status of the recorder\n{err.decode()}")
    Trace().must_be_whole()


@case("kill -9 of a recorder that is attached: the program goes on unharmed")
def kill_attached():
    server = start_server()
    p = attach(server.pid)
    time.sleep(1.5)
    p.kill()
    p.wait(PATIENCE_S)
    expect(os.stat("trace").st_size > 0, "nothing was written")
    stop_server(server)
    status, out, _ = run(REPRISE, "show", "trace")
    expect(out, f"show gives no events (status {status})")


@case("attach to a stopped program: it stays stopped, and can go on")
def attach_to_stopped():
    server = start_server(4)
    os.kill(server.pid, signal.SIGSTOP)
    wait_until(lambda: state_of(server.pid) == "T", "the program is stopped")
    p = attach(server.pid)
    time.sleep(0.7)
    before = nr_done()
    time.sleep(0.3)
    equal(nr_done(), before, "calls made while stopped")
    os.kill(server.pid, signal.SIGCONT)
    wait_for_calls(100)
    p.send_signal(signal.SIGINT)
    equal(finish(p)[0], 0, "exit status of the recorder")
    stop_server(server)


@case("attach to a process that is not there, or not ours, is an error")
def attach_nowhere():
    gone = start(["true"])
    gone.wait()
    for pid in (gone.pid, os.getpid() if os.geteuid() else 2**30):
        status, _, err = finish(attach(pid))
        if pid == os.getpid() and status == 0:
            continue
        equal(status, 2, f"exit status; {err!r}")
        expect(err.count(b"\n") == 1, f"not one line of error: {err!r}")


@case("a program that is traced already cannot be attached to, and is not harmed")
def attach_twice():
    server = start_server()
    first = attach(server.pid)
    wait_until(lambda: tracer_of(server.pid) == first.pid, "the first recorder attaches")
    second = start([REPRISE, "record", "-o", "second", "--attach", str(server.pid)],
                   stderr=subprocess.PIPE)
    status, _, err = finish(second)
    equal((status, err.count(b"\n")), (2, 1), f"status, lines of error: {err!r}")
    expect(f"by process {first.pid}".encode() in err, f"by whom? {err!r}")
    expect(not os.path.exists("second"), "a trace is left behind")
    wait_for_calls(200)
    first.send_signal(signal.SIGINT)
    equal(finish(first)[0], 0, "exit status of the first")
    stop_server(server)


sys.exit(run_cases(sys.argv[4:]))
