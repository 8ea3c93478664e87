# SPDX-License-Identifier: MIT
# For scripts that test a command: sourced, in an empty directory of its own afterwards.
set -u

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
nr=0

# ok STATUS NAME
ok() {
	nr=$((nr + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $nr - $2"
	else
		echo "not ok $nr - $2"
		head -n 30 out err 2>/dev/null | sed "s/^/# /"
	fi
}

# run STATUS WORDS...: runs the program, compares the exit status
run() {
	wanted=$1
	shift
	"$REPRISE" "$@" >out 2>err
	[ $? -eq "$wanted" ]
}

# prints TEXT: what the last run printed is exactly this
prints() {
	[ "$(cat out)" = "$1" ]
}

# lines N: what the last run printed has so many lines
lines() {
	[ "$(wc -l <out)" -eq "$1" ]
}

# says WORDS: one line on standard error, with these words
says() {
	[ "$(wc -l <err)" -eq 1 ] && grep -qF -e "$1" err
}

# json EXPRESSION: true of the JSON document d that the last run printed
json() {
	python3 -c 'import json, sys
d = json.load(open("out"))
sys.exit(0 if eval("(" + sys.argv[1] + ")") else 1)' "$1"
}

# jsonl EXPRESSION: true of the list d of JSON lines
jsonl() {
	python3 -c 'import json, sys
d = [json.loads(line) for line in open("out")]
sys.exit(0 if eval("(" + sys.argv[1] + ")") else 1)' "$1"
}

# make NAME: NAME.trace from the exact text in NAME.txt
make() {
	"$REPRISE" import --format=exact --force -o "$1.trace" "$1.txt" >out 2>err || {
		echo "Bail out! cannot make $1.trace: $(cat err)"
		exit 1
	}
}

# shorten FILE BYTES: FILE.cut is FILE without its last bytes
shorten() {
	size=$(wc -c <"$1")
	head -c $((size - $2)) "$1" >"$1.cut"
}

# unclose FILE: FILE.open is FILE as its writer leaves it when it is killed between two blocks
unclose() {
	python3 - "$1" <<'END'
import struct, sys
data = open(sys.argv[1], "rb").read()
at = 0
while data[at + 4] != 8:  # BLOCK_INDEX
    at += 40 + struct.unpack_from("<I", data, at + 8)[0]
open(sys.argv[1] + ".open", "wb").write(data[:at])
END
}

# The trace that most tests are about.
cat >a.txt <<'END'
# reprise exact 1
meta(key="cwd", value="/home/u")
meta(key="start_realtime_ns", value="1700000000000000000")
tree_entry(tree=initial, path="/home/u/in.txt", stat={type=file, mode=0644, size=5})
tree_entry(tree=initial, path="/home/u/link", stat={type=symlink}, target="real")
tree_entry(tree=initial, path="/home/u/real/x", stat={type=file}, flags=INFERRED)
tree_entry(tree=final, path="/home/u/in.txt", stat={type=file, mode=0644, size=5})
100/100 #1 1000+800 openat(dirfd=AT_FDCWD, path="in.txt", flags=O_RDONLY|O_CLOEXEC, mode=0) = 3
100/100 #2 2000+100 read(fd=3, buf="hello", count=4096) = 5
100/100 #3 4000+100 openat(dirfd=AT_FDCWD, path="/none", flags=O_RDONLY, mode=0) = -1 ENOENT
100/100 #4 5000+500 pipe2(pipefd=[4, 5], flags=0) = 0
100/100 #5 6000+500 fcntl_dupfd(fd=3, arg=9) = 9
100/100 #6 7000+500 clone(flags=SIGCHLD, stack=0x0) = 200
200/200 #7 7600+10 read(fd=9, buf="", count=10) = 0 {ppid=100}
200/200 #8 7700+10 execve(path="/bin/ls", argv=["ls"], envp=[]) = 0 {ppid=100}
200/200 #9 7900+10 read(fd=3, count=10) = -1 EBADF {ppid=100}
100/100 #10 8000+100 close(fd=3) = 0
100/100 #11 9000+100 write(fd=5, buf="0123456789012345678901234567890123456789012345678901234567890123456789", count=70) = 70
100/100 #12 9500+100000 poll(fds=[{fd=4, events=POLLIN}], nfds=1, timeout=10) = 1
100/100 #13 110000+10 chdir(path="link") = 0
100/100 #14 111000+10 openat(dirfd=AT_FDCWD, path="x", flags=O_RDWR, mode=0) = 3
END
make a
