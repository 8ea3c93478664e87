#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: ends.py TORTURE TORTURE_STATIC TORTURE_NARROW [PATTERN]...

How recordings end: by the program, by signals to it and to the recorder, by a
full disk, by limits. The program must behave as it would alone, and what was
recorded must be readable. Cases can be chosen by a part of their names.
"""

import os
import pty
import random
import resource
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import *  # pylint: disable=wildcard-import,wrong-import-position

TORTURE = os.path.abspath(sys.argv[1])


def start_recording(*words, options=(), **more):
    """The recorder, and the number of the program, which prints it first."""
    p = start(record_argv(*words, options=options), stdout=subprocess.PIPE,
              stderr=subprocess.PIPE, **more)
    line = p.stdout.readline()
    expect(line.strip().isdigit(), f"the program has not begun: {line!r}")
    return p, int(line)


def must_be_quiet():
    """Until the program makes no calls any more; how soon that is, the machine's load decides."""
    end = time.monotonic() + PATIENCE_S
    before = -1
    while nr_done() != before:
        expect(time.monotonic() < end, "the program makes calls although it is stopped")
        before = nr_done()
        time.sleep(0.3)


def is_gone(pid):
    wait_until(lambda: not is_alive(pid), f"process {pid} has ended")


# The program ends.

@case("a core dump has the program's memory, and not what the recorder put there")
def core_dump():
    with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as f:
        pattern = f.read().strip()
    if pattern[0] == "|" or "/" in pattern:
        raise Skipped(f"cores go to {pattern}")
    status, _, err = run("sh", "-c", "ulimit -c unlimited")
    if status != 0:
        raise Skipped(err.decode().strip())
    script = "ulimit -c unlimited; read x </etc/passwd; read x </etc/passwd; kill -ABRT $$"
    record("sh", "-c", script, status=killed_by(signal.SIGABRT))
    ends = [e for e in Trace().events() if e["call"] == "thread_exit"]
    equal([e["args"].get("core_dumped") for e in ends], [1], "core dumps")
    cores = [f for f in os.listdir(".") if "core" in f]
    equal(len(cores), 1, f"files {cores}")
    with open(cores[0], "rb") as f:
        equal(f.read(18)[16:], b"\4\0", "the type of the ELF file")
    used = os.stat(cores[0]).st_blocks * 512
    expect(used < 64 << 20, f"the core has {used} bytes")


@case("the exit status is passed on")
def exit_status():
    for status in (0, 1, 2, 77 - 1, 127, 255):
        record(TORTURE, "calls", "10", str(status), status=status, options=["--force"])
        trace = Trace()
        trace.must_be_complete()
        equal(trace.meta()["exit_status"], str(status), "the status in the metadata")
        os.unlink("counts")


@case("a program that dies by a signal makes the recorder die by it")
def dies_alike():
    for signo in (signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM, signal.SIGABRT, signal.SIGPIPE,
                  signal.SIGALRM, signal.SIGUSR1, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        record(TORTURE, "die", str(int(signo)), status=killed_by(signo), options=["--force"])
        Trace().must_be_complete()
        os.unlink("counts")


@case("a command that is not there, or cannot be run, is an error")
def no_command():
    with open("text", "w", encoding="utf-8") as f:
        f.write("no program\n")
    os.mkdir("dir")
    for command in ("./missing", "no-such-command-anywhere", "./text", "./dir"):
        status, _, err = finish(start(record_argv(command), stderr=subprocess.PIPE))
        equal(status, 2, f"exit status for {command}")
        expect(err.count(b"\n") == 1, f"{command}: not one line of error: {err!r}")
        expect(not os.path.exists("trace"), f"{command} left a trace behind")


@case("a file that execve refuses leaves its error in the trace or in ours")
def exec_refused():
    with open("broken", "wb") as f:
        f.write(b"\x7fELF\x02\x01\x01" + bytes(57))
    os.chmod("broken", 0o755)
    status, _, err = finish(start(record_argv("./broken"), stderr=subprocess.PIPE))
    expect(status in (2, 126, 127) and err, f"exit status {status}, error {err!r}")


@case("standard input and output are untouched")
def stdio():
    data = random.Random(1).randbytes(1 << 20)
    for words in (["cat"], ["sh", "-c", "cat; echo error >&2; exit 4"], ["wc", "-c"]):
        alone = subprocess.run(words, input=data, capture_output=True, check=False)
        p = start(record_argv(*words, options=["--force"]), stdin=subprocess.PIPE,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = p.communicate(data, timeout=PATIENCE_S)
        equal(p.returncode, alone.returncode, "exit status")
        expect(out == alone.stdout, "the output differs")
        equal(err, alone.stderr, "error output")
        Trace().must_be_whole()


@case("a reader that goes away ends the program as it would alone")
def broken_pipe():
    p = start(record_argv("yes"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.readline()
    p.stdout.close()
    equal(p.wait(PATIENCE_S), killed_by(signal.SIGPIPE), "exit status")
    Trace().must_be_whole()


@case("signal dispositions, mask, descriptors and limits are those of the caller")
def inheritance():
    needs_ptrace("the agent's filter can be seen in /proc/self/status")
    script = ("import os, resource, signal\n"
              "print([int(s) for s in signal.valid_signals() if signal.getsignal(s) is None or "
              "signal.getsignal(s) == signal.SIG_IGN])\n"
              "print([l for l in open('/proc/self/status') if l[:3] in ('Sig', 'Shd', 'Cap', 'Sec', "
              "'NoN') and l[:4] != 'SigQ'])\n"
              "print(sorted(os.listdir('/proc/self/fd')), os.getpriority(0, 0), os.umask(0o22))\n"
              "print([resource.getrlimit(r) for r in range(16)])\n"
              "print(os.getsid(0) == os.getsid(os.getppid()), os.getpgid(0) == "
              "os.getpgid(os.getppid()))\n")
    words = ["/usr/bin/env", "python3", "-S", "-c", script]

    def prepare():
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        # Who ignores this one is told nothing of his children's ends by the kernel.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

    alone = subprocess.run(words, capture_output=True, check=False, preexec_fn=prepare, text=True)
    equal(alone.returncode, 0, alone.stderr)
    out, _ = record(*words, preexec_fn=prepare)
    for got, wanted in zip(out.decode().split("\n"), alone.stdout.split("\n")):
        equal(got, wanted, "what a program finds")


# Signals to the recorder and to the program.

@case("SIGTERM to the recorder reaches the program")
def terminate():
    p, _ = start_recording(TORTURE, "handle", str(int(signal.SIGTERM)))
    wait_for_calls(100)
    p.send_signal(signal.SIGTERM)
    status, _, err = finish(p)
    equal(status, 5, "exit status\n" + err.decode())
    Trace().must_be_complete()


@case("SIGTERM to the recorder ends a program that does not handle it, alike")
def terminate_deadly():
    p, pid = start_recording(TORTURE, "loop")
    wait_for_calls(100)
    p.send_signal(signal.SIGTERM)
    equal(finish(p)[0], killed_by(signal.SIGTERM), "exit status")
    is_gone(pid)
    Trace().must_be_complete()


@case("a signal while the program is being started ends it and the recorder")
def start_interrupted():
    for i in range(60):
        p = start(record_argv("sleep", "600", options=["--force"]), stderr=subprocess.PIPE,
                  start_new_session=True)
        time.sleep(i / 2000)
        if i % 2:
            p.send_signal(signal.SIGTERM)
        else:
            os.killpg(p.pid, signal.SIGINT)
        status, _, err = finish(p)
        equal(status, killed_by((signal.SIGINT, signal.SIGTERM)[i % 2]),
              f"exit status after {i / 2} ms\n" + err.decode())


@case("SIGTERM to the recorder while only a daemon is left")
def terminate_daemon():
    p = start(record_argv(TORTURE, "daemon", "3000"), stderr=subprocess.PIPE)
    time.sleep(1)
    p.send_signal(signal.SIGTERM)
    status, _, err = finish(p)
    expect(status in (3, killed_by(signal.SIGTERM)), f"exit status {status}: {err.decode()}")
    # Either way is fine: it went on to its end, or the recording has ended in good order.
    _, check = Trace().check()
    equal((check["intact"], check["closed"]), (True, True), "intact, closed")


@case("Ctrl-C ends the program, and the trace is closed")
def control_c():
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TORTURE_COUNTS"] = os.path.abspath("counts")
        os.execv(REPRISE, record_argv(TORTURE, "loop"))
    wait_for_calls(100)
    os.write(terminal, b"\x03")
    end = time.monotonic() + PATIENCE_S
    status = None
    while status is None and time.monotonic() < end:
        done, raw = os.waitpid(pid, os.WNOHANG)
        if done:
            status = raw
        time.sleep(0.02)
    if status is None:
        words = describe(pid)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise Failed("Ctrl-C has not ended it\n" + words)
    os.close(terminal)
    expect(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT,
           f"wait status {status:#x}")
    Trace().must_be_complete()


@case("Ctrl-Z stops program and recorder, and both go on")
def control_z():
    pid, terminal = pty.fork()
    if pid == 0:
        # As a shell does it: the job in a process group of its own, in the foreground.
        os.environ["TORTURE_COUNTS"] = os.path.abspath("counts")
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execv(REPRISE, record_argv(TORTURE, "handle", str(int(signal.SIGTERM))))
        for number in range(3):
            status = os.waitpid(job, os.WUNTRACED)[1]
            if not os.WIFSTOPPED(status):
                os._exit(90)
            while not os.path.exists(f"go{number}"):
                time.sleep(0.01)
            os.killpg(job, signal.SIGCONT)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]) & 0xff)
    try:
        for number in range(3):
            wait_for_calls(100)
            os.write(terminal, b"\x1a")
            must_be_quiet()
            with open(f"go{number}", "w", encoding="utf-8"):
                pass
        wait_for_calls(100)
        os.kill(next(int(e) for e in os.listdir("/proc") if e.isdigit() and is_torture(int(e), pid)),
                signal.SIGTERM)
        wait_until(lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT),
                   "the job has ended")
    finally:
        os.close(terminal)  # hangs up: what is left in the session ends
        if not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
    equal(os.waitstatus_to_exitcode(status), 5, "exit status")
    trace = Trace()
    trace.must_be_complete()
    for row, wanted in (("stopped", "SIGTSTP"), ("continued", "SIGCONT")):
        equal([e["args"]["signal"] for e in trace.events("--call=" + row)], [wanted] * 3, row)


def stop_twice(p, pid):
    """By signals to the recorder alone."""
    for _ in range(2):
        wait_for_calls(50)
        os.kill(p.pid, signal.SIGTSTP)
        wait_until(lambda: state_of(p.pid) == "T", "the recorder is stopped")
        expect(state_of(pid) in "tT", "the program is not stopped")
        os.kill(p.pid, signal.SIGCONT)


@case("a stop signal to the recorder alone is for the program, and so is SIGCONT")
def stop_recorder_alone():
    p, pid = start_recording(TORTURE, "handle", str(int(signal.SIGTERM)), preexec_fn=os.setpgrp)
    stop_twice(p, pid)
    wait_for_calls(50)
    os.kill(pid, signal.SIGTERM)
    equal(finish(p)[0], 5, "exit status")
    trace = Trace()
    trace.must_be_complete()
    equal(len(trace.events("--call=stopped")), 2, "stops in the trace")


@case("a process that is not of the job, and makes calls all the time, does not keep it from being stopped")
def stop_beside_other():
    script = 'TORTURE_COUNTS=other.counts setsid "$0" loop >/dev/null & echo $! >other; exec "$0" handle 15'
    p, pid = start_recording("sh", "-c", script, TORTURE, preexec_fn=os.setpgrp)
    stop_twice(p, pid)
    with open("other", encoding="ascii") as f:
        os.kill(int(f.read()), signal.SIGKILL)
    os.kill(pid, signal.SIGTERM)
    equal(finish(p)[0], 5, "exit status")
    Trace().must_be_whole(KILLED)


@case("a program that takes no notice of Ctrl-Z is not stopped, nor is the recorder")
def control_z_ignored():
    p, pid = start_recording("sh", "-c", "trap '' TSTP; exec \"$0\" loop", TORTURE,
                             preexec_fn=os.setpgrp)
    wait_for_calls(50)
    os.killpg(p.pid, signal.SIGTSTP)
    wait_for_calls(200)
    os.kill(pid, signal.SIGKILL)
    equal(finish(p)[0], killed_by(signal.SIGKILL), "exit status")
    trace = Trace()
    trace.must_be_complete(KILLED)
    equal(len(trace.events("--call=stopped")), 0, "stops in the trace")


def is_torture(pid, session):
    try:
        return os.getsid(pid) == session and os.readlink(f"/proc/{pid}/exe") == \
            os.path.realpath(TORTURE)
    except OSError:
        return False


@case("SIGINT to the process group reaches a handler once, and the trace is closed")
def interrupt_group():
    p, _ = start_recording(TORTURE, "handle", str(int(signal.SIGINT)), start_new_session=True)
    wait_for_calls(100)
    os.killpg(p.pid, signal.SIGINT)
    status, _, err = finish(p)
    equal(status, 5, "exit status\n" + err.decode())
    trace = Trace()
    trace.must_be_complete()
    equal(len([e for e in trace.events("--call=signal") if e["args"]["signal"] == "SIGINT"]), 1,
          "SIGINT")


@case("job control: the program can be stopped and continued, time and again")
def job_control():
    # SIGTSTP counts only in a process group that somebody else in the session could continue.
    p, pid = start_recording(TORTURE, "handle", str(int(signal.SIGTERM)), preexec_fn=os.setpgrp)
    for signo in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGSTOP):
        wait_for_calls(50)
        os.kill(pid, signo)
        must_be_quiet()
        os.kill(pid, signal.SIGCONT)
        wait_for_calls(50)
    os.kill(pid, signal.SIGTERM)
    equal(finish(p)[0], 5, "exit status")
    trace = Trace()
    trace.must_be_complete()
    equal(len(trace.events("--call=stopped")), 3, "stops in the trace")


@case("job control: many threads stop and go on")
def job_control_threads():
    p = start(record_argv(TORTURE, "serve", "16"), stderr=subprocess.PIPE)
    wait_for_calls(500)
    pid = next(int(e) for e in os.listdir("/proc") if e.isdigit() and is_child(int(e), p.pid))
    for _ in range(5):
        os.kill(pid, signal.SIGSTOP)
        must_be_quiet()
        os.kill(pid, signal.SIGCONT)
        wait_for_calls(100)
    with open("stop", "w", encoding="utf-8"):
        pass
    equal(finish(p)[0], 0, "exit status")
    Trace().must_be_complete()


def is_child(pid, parent):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return int(f.read().rpartition(")")[2].split()[1]) == parent
    except OSError:
        return False


@case("a stopped program that is killed ends the recording")
def kill_stopped():
    p, pid = start_recording(TORTURE, "loop")
    wait_for_calls(50)
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state_of(pid) in "tT", "the program is stopped")
    time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    equal(finish(p)[0], killed_by(signal.SIGKILL), "exit status")
    Trace().must_be_complete(KILLED)


@case("kill -9 of the program: the trace is closed and complete")
def kill_program():
    for _ in range(3):
        p, pid = start_recording(TORTURE, "loop", "0", options=["--force"])
        wait_for_calls(500)
        os.kill(pid, signal.SIGKILL)
        equal(finish(p)[0], killed_by(signal.SIGKILL), "exit status")
        Trace().must_be_complete(KILLED)
        os.unlink("counts")


@case("kill -9 of one process: the others go on, the trace is closed and complete")
def kill_one():
    p = start(record_argv(TORTURE, "family", "4"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pids = [int(p.stdout.readline()) for _ in range(4)]
    for pid in pids:
        wait_for_calls(200)
        os.kill(pid, signal.SIGKILL)
    equal(finish(p)[0], 6, "exit status")
    trace = Trace()
    stat = trace.must_be_complete(KILLED)
    equal(stat["processes"], 5, "processes")
    ends = [e["args"].get("signal") for e in trace.events("--call=thread_exit")]
    equal(ends.count("SIGKILL"), 4, "deaths by SIGKILL")


def must_be_readable(at_least):
    """After an end without warning: events can be shown, and saved."""
    status, out, err = run(REPRISE, "show", "--call=pwrite64", "trace")
    nr = out.count(b"\n")
    expect(nr >= at_least, f"show gives {nr} writes, not {at_least} (status {status}, {err!r})")
    status, check = Trace().check()
    equal((status, check["closed"]), (2, False), "reprise check: status, closed")
    status, _, err = run(REPRISE, "check", "--salvage", "--force", "-o", "saved", "trace")
    saved = Trace("saved")
    equal(saved.nr_of("pwrite64"), nr, f"writes in the saved trace ({err!r})")


@case("kill -9 of the recorder: the program is not left stopped, the trace is readable")
def kill_recorder():
    for mode in (["loop"], ["loop", "0"], ["handle", "15"]):
        p, pid = start_recording(TORTURE, *mode, options=["--force"])
        wait_for_calls(200)
        time.sleep(1.2)
        early = counts()["pwrite64"][0]
        time.sleep(1.2)
        p.kill()
        p.wait(PATIENCE_S)
        time.sleep(0.5)
        if is_alive(pid):
            expect(state_of(pid) not in "tT", "the program is left stopped")
            before = nr_done()
            wait_until(lambda: nr_done() > before, "the program goes on")
            os.kill(pid, signal.SIGKILL)
            is_gone(pid)
        must_be_readable(early)
        os.unlink("counts")


@case("kill -9 of the recorder of many processes and threads: none is left stopped")
def kill_recorder_of_many():
    p = start(record_argv(TORTURE, "family", "8"), stdout=subprocess.PIPE)
    pids = [int(p.stdout.readline()) for _ in range(8)]
    wait_for_calls(1000)
    time.sleep(1)
    p.kill()
    p.wait(PATIENCE_S)
    time.sleep(0.5)
    stuck = [pid for pid in pids if is_alive(pid) and state_of(pid) in "tT"]
    for pid in pids:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)
    equal(stuck, [], "processes that are left stopped")
    must_be_readable(1)


# Limits and full disks.

FILE_LIMIT = 64 << 10


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, FILE_LIMIT))


def on_full(*options, mode=("calls", "4000", "7"), **more):
    p = start(record_argv(TORTURE, *mode, options=options), stdout=subprocess.PIPE,
              stderr=subprocess.PIPE, **more)
    return finish(p)


def must_be_readable_part(at_least=11):
    status, out, err = run(REPRISE, "show", "--call=pwrite64", "trace")
    got = out.count(b"\n")
    expect(got >= at_least, f"show gives {got} events, expected {at_least} (status {status}, {err!r})")


@case("a file-size limit and --on-full=continue: the program ends as it would alone")
def limited_continue():
    # Calls that do not enlarge a file: the limit is the program's too.
    status, _, err = on_full("--on-full=continue", "--contents=0", mode=("timer", "1500"),
                             preexec_fn=limit_file_size)
    equal(status, 0, f"exit status\n{err.decode()}")
    expect(b"trace" in err, f"no warning: {err!r}")
    must_be_readable_part()


@case("a file-size limit and --on-full=stop: the program is killed")
def limited_stop():
    status, _, err = on_full("--on-full=stop", "--contents=0", mode=("timer", "20000"),
                             preexec_fn=limit_file_size)
    expect(status in (2, killed_by(signal.SIGKILL)), f"exit status {status}\n{err.decode()}")
    expect(b"trace" in err, f"no warning: {err!r}")
    must_be_readable_part()


def small_disk(size, words):
    """Words that run these with a small file system on ./small, or a reason to skip."""
    unshare = shutil.which("unshare")
    if not unshare:
        raise Skipped("unshare is not installed")
    own = [unshare, "-m"] if os.geteuid() == 0 else [unshare, "-rm"]
    os.makedirs("small", exist_ok=True)
    script = f"mount -t tmpfs -o size={size} none small || exit 76; shift; "
    script += '"$@"; r=$?; cat small/trace >kept; exit $r'
    probe = subprocess.run([*own, "mount", "-t", "tmpfs", "none", "small"], check=False,
                           capture_output=True)
    if probe.returncode:
        raise Skipped("a file system cannot be mounted here")
    return [*own, "sh", "-c", script, "sh", "-", *words]


def record_on_small_disk(mode, option, size="4m"):
    argv = record_argv(TORTURE, *mode, trace="small/trace", options=[option, "--contents=0"])
    result = run(*small_disk(size, argv))
    os.rename("kept", "trace")
    return result


@case("a full disk and --on-full=continue: the program ends as it would alone, with a warning")
def full_continue():
    status, _, err = record_on_small_disk(["calls", "40000", "7"], "--on-full=continue")
    equal(status, 7, f"exit status\n{err.decode()}")
    expect(b"trace" in err, f"no warning: {err!r}")
    must_be_readable_part()
    equal(counts()["pwrite64"][0], 40000, "calls that the program made")


@case("a full disk and --on-full=continue, with many processes")
def full_continue_processes():
    status, _, err = record_on_small_disk(["processes", "3000"], "--on-full=continue", "1m")
    equal(status, 0, f"exit status\n{err.decode()}")
    expect(b"trace" in err, f"no warning: {err!r}")
    must_be_readable_part()
    equal(counts()["pwrite64"][0], 6000, "calls that the program made")


@case("a full disk and --on-full=stop: the program is killed, all of it")
def full_stop():
    for mode in (["calls", "1000000", "7"], ["threads", "8", "60000"], ["processes", "100000"]):
        status, _, err = record_on_small_disk(mode, "--on-full=stop", "2m")
        expect(status in (2, 137, killed_by(signal.SIGKILL)),
               f"exit status {status}\n{err.decode()}")
        expect(b"trace" in err, f"no warning: {err!r}")
        must_be_readable_part()
        before = nr_done()
        time.sleep(0.3)
        equal(nr_done(), before, f"{mode[0]}: calls made after the end")
        os.unlink("counts")


def must_be_cut(err, at_least=11):
    """A limit has ended the recording: a warning, a trace that is closed, the cut in its ledger."""
    expect(b"trace" in err, f"no warning: {err!r}")
    _, check = Trace().check()
    equal((check["intact"], check["closed"]), (True, True), "intact, closed")
    expect(check["ledger"] > 0, "the ledger does not say that the trace ends early")
    must_be_readable_part(at_least)


@case("--max-size ends the recording, the program goes on")
def max_size():
    status, _, err = on_full("--max-size=300k", "--contents=0", mode=("calls", "12000", "7"))
    equal(status, 7, f"exit status\n{err.decode()}")
    equal(counts()["pwrite64"][0], 12000, "calls that the program made")
    must_be_cut(err)
    size = os.stat("trace").st_size
    expect(200 << 10 < size <= 300 << 10, f"the trace has {size} bytes")


@case("--max-size holds, whatever the trace has to keep")
def max_size_holds():
    with open("large", "wb") as f:
        f.write(random.Random(1).randbytes(8 << 20))
    for limit, words in ((2 << 20, ["cat", "large"]), (1 << 20, [TORTURE, "threads", "8", "3000"]),
                         (100 << 10, ["sh", "-c", "for i in 1 2 3; do cat /proc/self/maps; done"])):
        argv = record_argv(*words, options=[f"--max-size={limit}", "--force"])
        argv.remove("-q")
        p = start(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        status, _, err = finish(p)
        equal(status, 0, f"exit status\n{err.decode()}")
        # There may be no event in it: the contents of the program's own files come first.
        _, check = Trace().check()
        equal((check["intact"], check["closed"]), (True, True), "intact, closed")
        expect(b"largest size" in err and check["ledger"] > 0, f"nothing is said: {err!r}")
        expect(b"%d ledger entr" % check["ledger"] in err,
               f"ledger entries: not {check['ledger']} in {err!r}")
        size = os.stat("trace").st_size
        expect(size <= limit, f"{words[0]}: the trace has {size} bytes, not {limit}")
    p = start(record_argv("true", options=["--max-size=1k", "--force"]), stderr=subprocess.PIPE)
    status, _, err = finish(p)
    equal(status, 2, "exit status of what cannot be")
    expect(b"too few" in err, f"no reason: {err!r}")


@case("--max-time ends the recording, the program goes on")
def max_time():
    for mode, status in ((("timer", "1800"), 0), (("threads", "16", "1800"), 0)):
        start_ms = time.monotonic()
        got, _, err = on_full("--max-time=500ms", "--contents=0", "--force", mode=mode)
        equal(got, status, f"{mode[0]}: exit status\n{err.decode()}")
        expect(time.monotonic() - start_ms > 1.5, "the program was cut short as well")
        must_be_cut(err)
        duration = Trace().stat()["duration_ns"]
        expect(duration < 1.5e9, f"{mode[0]}: recorded for {duration} ns")
        os.unlink("counts")


SWITCHES = """
import os, re, sys, threading
def switches():
    with open("/proc/thread-self/status") as f:
        return sum(int(n) for n in re.findall(r"^voluntary_ctxt_switches:\\s*(\\d+)", f.read(), re.M))
def work():
    before = switches()
    for i in range(4000):
        os.getppid()
    print(switches() - before, flush=True)
work()
t = threading.Thread(target=work)
t.start()
t.join()
if len(sys.argv) == 2:
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:-1]])
"""


@case("after --max-size hardly a call of the program makes a stop")
def max_size_no_stops():
    p = start(record_argv("python3", "-c", SWITCHES, "again", options=["--max-size=100k"]),
              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    status, out, err = finish(p)
    equal(status, 0, f"exit status\n{err.decode()}")
    expect(b"largest size" in err, f"nothing is said: {err!r}")
    nr = [int(word) for word in out.split()]
    # Each stop is one; the agent comes late, and stops once for each place that makes calls.
    expect(len(nr) == 4 and max(nr) < 2000, f"sleeps in 4000 calls: {nr}")


@case("--max-time with processes that come and go")
def max_time_processes():
    for options in (["--max-time=300ms"], ["--max-time=300ms", "--calls=pwrite64"]):
        status, _, err = on_full(*options, "--contents=0", "--force", mode=("processes", "2000"))
        equal(status, 0, f"exit status\n{err.decode()}")
        equal(counts()["pwrite64"][0], 4000, "calls that the program made")
        must_be_cut(err)
        os.unlink("counts")


@case("what is said of a cut is when it was, and there is no final tree")
def max_time_ends():
    script = "for i in 1 2 3 4 5 6 7 8; do echo $i >>file; sleep 0.1; done"
    p = start(record_argv("sh", "-c", script, options=["--max-time=300ms"]), stderr=subprocess.PIPE)
    status, _, err = finish(p)
    equal(status, 0, f"exit status\n{err.decode()}")
    expect(b"ends before the program" in err, f"no warning: {err!r}")
    stat = Trace().stat()
    cut = [entry for entry in stat["ledger"] if entry["kind"] == "NOT_CLOSED"]
    equal(len(cut), 1, "entries of the ledger")
    expect(300e6 <= cut[0]["from_ns"] and stat["last_ns"] <= cut[0]["from_ns"], f"last event at {stat['last_ns']}: {cut}")
    expect(stat["trees"]["initial"] > 0 and not stat["trees"]["final"], f"trees: {stat['trees']}")


@case("a program that reads its own trace comes to the end of it")
def reads_itself():
    for data in ("all", "hash"):
        _, err = record("sh", "-c", "cat trace | cat | cat >copy", data=data, options=["--force"])
        expect(b"warning" in err and b"--output" in err, f"no warning: {err!r}")
        Trace().must_be_whole(["DATA_TRUNCATED"])
        lines = Trace().ledger()
        expect(any("read of this trace" in line for line in lines), f"ledger: {lines}")
        reads = [e for e in Trace().events("--call=read", "--ok") if any(path.endswith("/trace") for path in e["paths"].values())]
        expect(any(e["ret"] > 0 for e in reads), f"the reads are not there: {reads}")


@case("a trace that the program removes or replaces is told of")
def trace_is_gone():
    for script in ("rm trace", "mv trace other", "rm trace; echo >trace"):
        _, err = record("sh", "-c", script, options=["--force"])
        expect(b"warning" in err and b"removed, replaced" in err, f"{script}: {err!r}")


@case("--max-time with a program that sleeps")
def max_time_asleep():
    p = start(record_argv("sleep", "2", options=["--max-time=300ms", "--contents=0"]),
              stderr=subprocess.PIPE)
    status, _, err = finish(p)
    equal(status, 0, f"exit status\n{err.decode()}")
    _, check = Trace().check()
    expect(check["closed"] and check["ledger"] > 0, "the trace does not say that it ends early")


@case("--max-time breaks off no wait of the program")
def max_time_patient():
    p = start(record_argv(TORTURE, "patient", options=["--max-time=1s", "--contents=0"]), stderr=subprocess.PIPE)
    wait_until(lambda: nr_done() > 0, "the program begins")
    time.sleep(2)
    with open("stop", "w", encoding="utf-8"):
        pass
    status, _, err = finish(p)
    equal(status, 0, f"exit status\n{err.decode()}")
    # The program makes 50 calls a second at most, and a loaded machine may start it late.
    must_be_cut(err, at_least=1)


sys.exit(run_cases(sys.argv[4:]))
