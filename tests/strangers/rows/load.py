# SPDX-License-Identifier: MIT
"""Programs that are made to load a file system: fio by engine, stress-ng by stressor, benchmarks."""

from rows import BY_DESIGN, RACE, Row


def fio(engine, shows, options="--verify=crc32c --verify_fatal=1"):
    return Row(
        "fio-" + engine, "fio", shows=shows,
        run=f"fio --name=x --size=512k --bs=4k --rw=randrw --numjobs=2 --iodepth=4 --ioengine={engine} "
        f"--randseed=7 --eta=never --output=report {options}",
    )


def stress(stressor, ops, shows, options="", racy=False, **explained):
    return Row(
        "stress-ng-" + stressor, "stress-ng", shows=shows, explained=explained, racy=racy,
        run=f"stress-ng -q --temp-path $PWD --timeout 20 --{stressor} 2 --{stressor}-ops {ops} {options}",
    )


ROWS = [
    fio("sync", "lseek, then read or write"),
    fio("psync", "pread and pwrite"),
    fio("pvsync2", "preadv2 and pwritev2"),
    fio("libaio", "the kernel's older asynchronous I/O, with O_DIRECT", "--direct=1 --verify=crc32c --verify_fatal=1"),
    fio("io_uring", "a ring for each process, with fixed buffers and files", "--fixedbufs=1 --registerfiles=1 --verify=crc32c"),
    fio("mmap", "loads and stores in a map, with msync", "--fsync=16"),
    fio("posixaio", "the C library's threads"),
    fio("splice", "splice and vmsplice through a pipe", ""),
    fio("ftruncate", "truncations only", "--rw=write --iodepth=1"),
    fio("falloc", "fallocate and punched holes", "--rw=randtrimwrite"),
    Row(
        "fio-threads", "fio",
        explained={"mismatches": RACE}, racy=True,
        shows="four threads on one file with locks, trims and mixed sizes",
        run="fio --name=x --filename=f --size=1m --bsrange=1k-16k --rw=randrw --numjobs=4 --thread --ioengine=psync --lockfile=readwrite --randseed=7 --fdatasync=8 --eta=never --output=report",
    ),
    stress("hdd", 60, "writes and reads of many kinds with many flags and advices"),
    stress("fallocate", 20, "fallocate, truncation, syncs"),
    stress("rename", 60, "renames by all calls"),
    stress("dentry", 120, "names made, looked up and removed in several orders"),
    stress("dir", 60, "mkdir and rmdir", mismatches=RACE, racy=True),
    stress("dirdeep", 60, "a deep tree of directories and links"),
    stress("link", 1, "hard links", enforced=BY_DESIGN),
    stress("symlink", 1, "symbolic links"),
    stress("utime", 60, "times of files by all calls"),
    stress("copy-file", 20, "copy_file_range"),
    stress("sendfile", 20, "sendfile"),
    stress("splice", 40, "splice from /dev/zero through a pipe to /dev/null", enforced=BY_DESIGN),
    stress("tee", 20, "tee between pipes"),
    stress("fifo", 40, "a writer and readers at a FIFO"),
    stress("pipe", 100, "a writer and a reader at a pipe"),
    stress("mmap", 4, "shared maps of a file, with protections, advices and syncs", "--mmap-bytes 256k --mmap-file"),
    stress("msync", 20, "stores in a map, msync, and reads of the file", "--msync-bytes 1m", enforced=BY_DESIGN),
    stress("lockf", 40, "lockf by a parent and a child"),
    stress("flock", 60, "flock by several processes"),
    stress("locka", 60, "record locks"),
    stress("lockofd", 60, "locks of open files"),
    stress("lease", 5, "leases that are broken by opens", enforced=BY_DESIGN),
    stress("fcntl", 40, "every command of fcntl", enforced=BY_DESIGN),
    stress("xattr", 10, "extended attributes, also refused ones"),
    stress("seek", 60, "lseek with all origins, holes", "--seek-size 1m"),
    stress("sync-file", 10, "sync_file_range", "--sync-file-bytes 1m"),
    stress("iomix", 60, "eight kinds of processes on one file", "--iomix-bytes 1m", mismatches=RACE, racy=True),
    stress("aio", 20, "POSIX asynchronous I/O"),
    stress("aiol", 20, "asynchronous I/O of the kernel"),
    stress("io-uring", 20, "requests of many kinds in a ring"),
    stress("access", 20, "access and faccessat with all modes"),
    stress("chdir", 60, "chdir and fchdir through many directories"),
    stress("chmod", 60, "chmod by two processes on one file"),
    stress("chown", 60, "chown by two processes on one file"),
    stress("dup", 40, "descriptors that are doubled and closed", enforced=BY_DESIGN),
    stress("filename", 40, "names of all lengths and bytes"),
    stress("fiemap", 20, "extents while a file changes", "--fiemap-bytes 1m"),
    stress("file-ioctl", 20, "ioctls on files", enforced=BY_DESIGN),
    stress("fpunch", 10, "holes punched and filled by several processes", enforced=BY_DESIGN),
    stress("fsize", 4, "the limit of a file's size, and its signal", enforced=BY_DESIGN),
    stress("fstat", 40, "stat of files by many threads"),
    stress("getdent", 20, "listings of directories"),
    stress("handle", 20, "open_by_handle_at", enforced=BY_DESIGN),
    stress("inotify", 10, "events of all kinds", enforced=BY_DESIGN),
    stress("memfd", 4, "files in memory, with seals and holes", "--memfd-bytes 2m"),
    stress("mknod", 20, "nodes of several types"),
    stress("open", 100, "open with all flags"),
    stress("readahead", 20, "readahead", "--readahead-bytes 1m"),
    stress("revio", 60, "writes from the end to the beginning", "--revio-bytes 1m"),
    stress("touch", 60, "files made with many flags"),
    stress("vm-splice", 20, "vmsplice"),
    Row(
        "dbench", "dbench",
        shows="the load of a file server: two clients, many names, byte-range locks",
        prepare="head -n 3000 /usr/share/dbench/client.txt >load",
        run="dbench -t 1 -c load -D . 2 >out; rm -rf clients",
    ),
    Row(
        "bonnie++", "bonnie++",
        explained={"mismatches": "several processes read one pipe; which of them got which bytes is not kept"},
        shows="sequential and random I/O by several processes, many files made and deleted",
        run="o=; [ $(id -u) != 0 ] || o='-u root'; bonnie++ $o -q -f -d . -s 4m -r 1m -n 1:1000:10:2 -b >out 2>/dev/null",
    ),
    Row(
        "fs_mark", "fs_mark=fsmark",
        shows="threads that write and sync many files",
        run="fs_mark -k -d d -D 3 -n 60 -s 3000 -t 3 -S 1 -l log >/dev/null",
    ),
    Row(
        "sysbench", "sysbench",
        shows="four threads on eight files, by calls and by maps",
        run="""for m in sync mmap; do o="fileio --file-num=8 --file-total-size=1M --file-test-mode=rndrw --file-io-mode=$m --threads=4 --events=300 --rand-seed=7 --validate=on"
sysbench $o prepare >/dev/null; sysbench $o run >out; [ $m = mmap ] || sysbench $o cleanup >/dev/null; done""",
    ),
]
