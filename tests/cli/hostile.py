# SPDX-License-Identifier: MIT
"""usage: hostile.py KIND: a trace, in the exact text form, that asks for too much."""
import sys

nr = 0


def event(text, pid=7):
    global nr
    nr += 1
    print("%d/%d #%d %d+100 %s" % (pid, pid, nr, nr * 1000, text))


def deep():
    event('chdir(path="/") = 0')
    for _ in range(20000):
        event('mkdir(path="d", mode=0755) = 0')
        event('chdir(path="d") = 0')
    event('rename(oldpath="/d", newpath="/e") = 0')
    for _ in range(1000):
        event('chdir(path="..") = 0')
    event('open(path="f", flags=O_WRONLY|O_CREAT, mode=0644) = 3')
    event('rename(oldpath="/e", newpath="/d") = 0')
    event('write(fd=3, buf="x", count=1) = 1')


def loops():
    for i in range(100):
        event('symlink(target="l%d", linkpath="/l%d") = 0' % ((i + 1) % 100, i))
    for i in range(1000):
        event('access(path="/l%d/x", mode=F_OK) = -1 ELOOP' % (i % 100))
    for i in range(60):
        event('symlink(target="e%d/e%d", linkpath="/e%d") = 0' % (i + 1, i + 1, i))
    for _ in range(100):
        event('open(path="/e0", flags=O_RDONLY) = -1 ELOOP')
    for _ in range(100):
        event('open(path="/e0", flags=O_RDONLY) = 5')


def numbers():
    for i in range(8000):
        event('open(path="/f", flags=O_RDWR|O_CREAT, mode=0644) = %d' % (2147483647 - i))
    event('dup2(oldfd=2147483647, newfd=2147483646) = 2147483646')
    event('dup2(oldfd=2147483647, newfd=2147483648) = 2147483648')
    event('dup2(oldfd=2147483647, newfd=-1) = -5')
    for i in range(1000):
        event('fork() = %d' % (100 + i))
    for i in range(1000):
        event('close(fd=2147483647) = 0', 100 + i)
    event('close_range(first=0, last=4294967295, flags=0) = 0')


def names():
    long, path = "n" * 65536, "/".join(["x" * 300] * 200)
    for i in range(100):
        event('mkdir(path="/%s%d", mode=0755) = 0' % (long, i))
        event('stat(path="/%s%d") = 0' % (long, i))
        event('rename(oldpath="/%s%d", newpath="/%s") = 0' % (long, i, path))


def impossible():
    most, least = 9223372036854775807, -9223372036854775808
    event('open(path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 3')
    for i in range(500):
        for fd in (-1, 3, 2147483647):
            for offset in (-1, most, least):
                event('pread64(fd=%d, count=%d, offset=%d) = %d' % (fd, 2 * most + 1, offset, most))
                event('pwrite64(fd=%d, count=%d, offset=%d) = %d' % (fd, 2 * most + 1, offset, most))
        event('ftruncate(fd=3, length=-1) = 0')
        event('ftruncate(fd=3, length=%d) = 0' % most)
        event('lseek(fd=3, offset=%d, whence=SEEK_END) = %d' % (most, most))
        event('fallocate(fd=3, mode=0, offset=%d, len=%d) = 0' % (most, most))
        event('mmap(addr=NULL, length=%d, prot=PROT_READ, flags=MAP_SHARED, fd=3, offset=-4096) = 9223372036854771712' % (2 * most + 1))


def maps():
    event('open(path="/f", flags=O_RDWR|O_CREAT, mode=0644) = 3')
    for i in range(65536 + 10):
        event('mmap(addr=NULL, length=4096, prot=PROT_READ, flags=MAP_SHARED, fd=3, offset=0) = %d' % (0x10000 + 8192 * i))


print("# reprise exact 1")
print('tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})')
{"deep": deep, "loops": loops, "numbers": numbers, "names": names, "impossible": impossible, "maps": maps}[sys.argv[1]]()
