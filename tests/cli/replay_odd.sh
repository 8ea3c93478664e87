#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise replay of odd calls: bad descriptors, addresses, lengths and flags. They must end as they did, and change what they changed.
. "$TOP/tests/cli/tap.sh"
umask 022

cat >odd.py <<'END'
import ctypes, errno, mmap, os, resource, signal, sys

libc = ctypes.CDLL(None, use_errno=True)
P, L = ctypes.c_void_p, ctypes.c_long
PAGE = 4096
COPY_FILE_RANGE, SPLICE, VMSPLICE, OPENAT2 = 326, 275, 278, 437
IO_SETUP, IO_DESTROY, IO_GETEVENTS, IO_SUBMIT = 206, 207, 208, 209

def call(name, *args):
    """what the call returned, or -errno"""
    values = [L(a) if isinstance(a, int) else a for a in args]
    f = libc.syscall if isinstance(name, int) else getattr(libc, name)
    f.restype = L
    r = f(L(name), *values) if isinstance(name, int) else f(*values)
    return -ctypes.get_errno() if r in (-1, 0xffffffff) else r

def gives(expected, name, *args):
    got = call(name, *args)
    if got != expected:
        sys.exit("%s%r: %d and not %d" % (name, args, got, expected))

class iovec(ctypes.Structure):
    _fields_ = [("base", P), ("len", ctypes.c_ulong)]

def vectors(*pairs):
    return ctypes.byref((iovec * len(pairs))(*[iovec(base, len_) for base, len_ in pairs]))

class iocb(ctypes.Structure):
    _fields_ = [("data", ctypes.c_ulong), ("key", ctypes.c_uint), ("rw_flags", ctypes.c_int), ("opcode", ctypes.c_ushort),
                ("prio", ctypes.c_short), ("fd", ctypes.c_uint), ("buf", P), ("nbytes", ctypes.c_ulong), ("offset", L),
                ("reserved", ctypes.c_ulong), ("flags", ctypes.c_uint), ("resfd", ctypes.c_uint)]

libc.mmap.restype = ctypes.c_ulong
libc.mmap.argtypes = [P, ctypes.c_ulong, ctypes.c_int, ctypes.c_int, ctypes.c_int, L]
# A page of bytes, and one behind it that nobody may touch.
page = libc.mmap(None, 2 * PAGE, 3, 0x22, -1, 0)
bad = page + PAGE
libc.mprotect(P(bad), ctypes.c_ulong(PAGE), 0)
ctypes.memset(page, ord("e"), PAGE)

os.mkdir("w")
os.chdir("w")
with open("f", "wb") as f:
    f.write(bytes(i * 31 & 255 for i in range(20000)))
fd = os.open("f", os.O_RDWR)
ro = os.open("f", os.O_RDONLY)
out = os.open("out", os.O_RDWR | os.O_CREAT)
directory = os.open(".", os.O_RDONLY)

def descriptors():
    gives(-errno.EBADF, "dup2", fd, -1)
    gives(-errno.EBADF, "dup3", fd, -1, 0)
    gives(-errno.EINVAL, "dup3", fd, fd, 0)
    gives(-errno.EBADF, "dup2", 999, 5)
    gives(-errno.EBADF, VMSPLICE, fd, vectors((page, 10)), 1, 0)
    gives(-errno.EISDIR, "readv", directory, vectors((page, 10)), 1)
    gives(-errno.EISDIR, "preadv", directory, vectors((page, 10)), 1, 0)
    gives(-errno.EBADF, "writev", ro, vectors((page, 10)), 1)

def addresses():
    for name in "write", "read":
        gives(96, name, fd, P(page + 4000), 500)
    gives(6, "pwrite", fd, P(page + 4090), 500, 9000)
    gives(64, "writev", fd, vectors((page, 64), (bad, 64), (page, 64)), 3)
    gives(160, "writev", fd, vectors((page, 64), (page + 4000, 500), (page, 64)), 3)
    gives(64, "readv", fd, vectors((page, 64), (bad, 64), (page, 64)), 3)
    gives(160, "preadv", fd, vectors((page, 64), (page + 4000, 500)), 2, 77)
    gives(-errno.EFAULT, "pwrite", fd, P(bad), 10, 0)
    os.write(fd, b"here")

def lengths():
    gives(-errno.EINVAL, "writev", fd, vectors((page, -1)), 1)
    gives(-errno.EINVAL, "pwritev", fd, vectors((page, 10), (page, -1)), 2, 0)
    gives(-errno.EINVAL, "readv", fd, vectors((page, -1)), 1)
    gives(-errno.EINVAL, "writev", fd, vectors((page, 1)), 5000)
    gives(-errno.E2BIG, "fsetxattr", fd, b"user.x", P(page), -1, 0)
    how = (ctypes.c_ulong * 4)(os.O_RDWR | os.O_CREAT, 0o644, 0, 1)
    gives(-errno.E2BIG, OPENAT2, -100, b"new", ctypes.byref(how), 32)

def maps():
    p = libc.mmap(None, 5 * PAGE, 3, 1, fd, 0)
    ctypes.memset(p + 5, ord("Q"), 1)
    gives(-errno.EINVAL, "msync", P(p + 1), PAGE, 4)
    gives(-errno.ENOMEM, "msync", P(p), 1 << 40, 4)
    gives(-errno.EINVAL, "madvise", P(p + 1), PAGE, 3)
    gives(-errno.EINVAL, "munmap", P(p + 1), PAGE)
    gives(0, "mlock", P(p), PAGE)
    gives(-errno.EBUSY, "msync", P(p), PAGE, 2)

def direct():
    try:
        d = os.open("f", os.O_RDWR | os.O_DIRECT)
    except OSError:
        return
    buffer = libc.mmap(None, 2 * PAGE, 3, 0x22, -1, 0)
    call("pread", d, P(buffer + 1), PAGE, 0)
    call("pwrite", d, P(buffer + 1), PAGE, 0)

def requests():
    context, events = ctypes.c_ulong(0), (ctypes.c_ulong * 32)()
    gives(0, IO_SETUP, 8, ctypes.byref(context))
    gives(-errno.EINVAL, IO_SETUP, 8, ctypes.byref(context))
    data = ctypes.create_string_buffer(b"damage")

    def submit(expected, nr, *blocks):
        pointers = (P * len(blocks))(*[ctypes.addressof(b) for b in blocks])
        gives(expected, IO_SUBMIT, context.value, nr, ctypes.byref(pointers))
        if expected > 0:
            gives(expected, IO_GETEVENTS, context.value, expected, 8, ctypes.byref(events), None)

    def block(**changes):
        values = dict(opcode=1, fd=fd, buf=ctypes.addressof(data), nbytes=6, offset=100)
        values.update(changes)
        return iocb(**values)

    submit(1, 3, block(), block(fd=ro), block())
    submit(-errno.EBADF, 1, block(fd=999))
    submit(-errno.EINVAL, 2, block(opcode=77), block())
    submit(-errno.EINVAL, 1, block(nbytes=-1))
    submit(-errno.EINVAL, -1, block())
    submit(1, 1, block(buf=bad))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30003, resource.RLIM_INFINITY))
    submit(1, 1, block(offset=30000))
    submit(1, 1, block(offset=40000))
    gives(0, IO_DESTROY, context.value)

def copies():
    os.lseek(fd, 0, os.SEEK_SET)
    gives(5000, COPY_FILE_RANGE, fd, None, out, None, 5000, 0)
    gives(15000, "sendfile", out, fd, None, 100000)
    gives(-errno.EINVAL, COPY_FILE_RANGE, fd, None, out, None, 10, 1)

def names():
    for nr in (4095, 4096, 5000, 70000):
        path = b"/" * (nr - 1) + b"z"
        gives(-errno.ENOENT if nr == 4095 else -errno.ENAMETOOLONG, "rmdir", path)
        gives(-errno.ENAMETOOLONG, "rename", b"f", path + b"z")
    gives(-errno.ERANGE, "fsetxattr", fd, b"user." + b"n" * 70000, b"v", 1, 0)

def huge():
    h = call("memfd_create", b"h", 4)
    if h < 0 or call("ftruncate", h, 1 << 21) < 0:
        sys.exit(77)
    p = libc.mmap(None, 1 << 21, 3, 1, h, 0)
    if p == ctypes.c_ulong(-1).value:
        sys.exit(77)
    ctypes.memset(p + 5000, ord("h"), 100)
    os.write(out, os.pread(h, 200, 4990))

for name in sys.argv[1:]:
    globals()[name]()
END

for what in 'descriptors addresses lengths copies' 'maps direct requests' names; do
	rm -rf w D
	# One word for each function.
	"$REPRISE" record -q -f -o odd.trace -- python3 odd.py $what >out 2>err &&
		run 0 replay --json odd.trace D && json 'd["mismatches"] == 0 and d["end"] == "complete" and d["unbuilt"] == 0' &&
		run 0 verify odd.trace D
	ok $? "$what"
done

# The kernel has made a file: a process has left its core, which no call of a replay makes.
{
	echo '# reprise exact 1'
	echo 'meta(key="cwd", value="/")'
	for tree in initial final; do
		echo "tree_entry(tree=$tree, path=\"/\", stat={type=dir, mode=0755, dev=8:1, ino=2}, flags=LISTED)"
		echo "tree_entry(tree=$tree, path=\"/d\", stat={type=dir, mode=0755, dev=8:1, ino=3}, flags=LISTED)"
	done
	echo '100/100 #1 1000+10 fork() = 101'
	echo '101/101 #2 2000+10 thread_exit(status=0, signal=6, core_dumped=1)'
	echo '100/100 #3 3000+10 stat(path="/core.101", statbuf={st_mode=S_IFREG|0600, st_size=70000}) = 0'
	echo '100/100 #4 4000+10 unlink(path="/core.101") = 0'
	echo '100/100 #5 5000+10 unlink(path="/core.101") = -1 ENOENT'
} >core.txt
make core
rm -rf D
run 0 replay --json core.trace D && json 'd["mismatches"] == 0 and d["made"] >= 3' && run 0 verify core.trace D
ok $? 'the core of a process'
sed 's,core.101,other,' core.txt >other.txt
make other
rm -rf D
run 1 replay --json other.trace D && json 'd["mismatches"] == 2'
ok $? 'another file that no call made is missed'

# Without the contents of files, what was copied from them is not there, and a warning says so.
head -c 10000 /dev/urandom >source
cat >copy.py <<'END'
import os
source = os.open("source", os.O_RDONLY)
target = os.open("target", os.O_WRONLY | os.O_CREAT)
os.copy_file_range(source, target, 5000)
os.sendfile(target, source, 0, 5000)
END
for data in writes all; do
	rm -rf target D
	"$REPRISE" record -q -f --data=$data -o copy.trace -- python3 copy.py >out 2>err && run 0 compile -f --json copy.trace
	status=$?
	if [ $data = writes ]; then
		[ $status -eq 0 ] && json 'd["unknown_copies"] == 2' && run 0 replay copy.trace D && grep -q '2 calls copy bytes that the trace does not hold' err
	else
		[ $status -eq 0 ] && json 'd["unknown_copies"] == 0' && run 0 replay copy.trace D && ! grep -q 'copy bytes' err && run 0 verify copy.trace D
	fi
	ok $? "copies with --data=$data"
done

# Where holes are is the target's affair; where the next write goes is not.
cat >holes.py <<'END'
import os
fd = os.open("sparse", os.O_RDWR)
os.lseek(fd, 0, os.SEEK_HOLE)
os.lseek(fd, 0, os.SEEK_DATA)
os.write(fd, b"here")
try:
    os.lseek(fd, 200000, os.SEEK_DATA)
except OSError:
    pass
os.write(fd, b"there")
END
rm -rf sparse D
truncate -s 1M sparse
printf %8192s x | dd of=sparse bs=4096 seek=16 conv=notrunc status=none
"$REPRISE" record -q -f -o holes.trace -- python3 holes.py >out 2>err && run 0 replay --json holes.trace D &&
	json 'd["mismatches"] == 0' && run 0 verify holes.trace D
ok $? 'offsets after a search for holes'
rm -rf sparse D
echo 12345 >end
"$REPRISE" record -q -f -o end.trace -- python3 -c 'import os
fd = os.open("end", os.O_RDWR)
os.lseek(fd, 0, os.SEEK_END)' >out 2>err && run 0 init end.trace D && echo 1 >"D$dir/end" &&
	run 1 replay --no-init --json end.trace D && json 'd["mismatches"] >= 1 and "lseek" in [m["call"] for m in d["first_mismatches"]]'
ok $? 'an end that is elsewhere is a mismatch'

# Names that lead to a pipe from outside; a listing with devices, for which a run has files.
rm -rf D link
ln -s /dev/stdout link
"$REPRISE" record -q -f -o names.trace -- python3 -c 'import os
for name in ("/dev/stdout", "/proc/self/fd/1", "link"):
    os.stat(name)
    os.access(name, os.W_OK)
os.listdir("/dev")' 2>err | cat >out && run 0 replay --json names.trace D && json 'd["mismatches"] == 0 and d["unbuilt"] == 0' &&
	run 0 verify names.trace D
ok $? 'names of what a replay does not have'

# A file of huge pages cannot be written to, not even where maps are not made.
rm -rf w D
"$REPRISE" record -q -f -o odd.trace -- python3 odd.py huge >out 2>err
if [ $? -eq 77 ]; then
	nr=$((nr + 1))
	echo "ok $nr - stores in huge pages without maps # SKIP no huge pages"
else
	run 0 replay --json --mmap=skip odd.trace D && json 'd["mismatches"] == 0' && run 0 verify odd.trace D
	ok $? 'stores in huge pages without maps'
fi

echo "1..$nr"
