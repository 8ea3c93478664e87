#!/bin/sh
# SPDX-License-Identifier: MIT
# Text of a trace cannot command the terminal, whatever command prints it.
. "$TOP/tests/cli/tap.sh"

# ESC, CSI as a byte and as UTF-8, DEL, newlines, a mark that turns text around; in every kind of text.
cat >h.txt <<'END'
# reprise exact 1
meta(key="command", value="ls\x00\x1b]0;PWNED\x07\x1b[31mred\xc2\x9b31m")
meta(key="host\x1b[31m\xc2\x9b", value="\x1b[2J")
tree_entry(tree=initial, path="/", stat={type=dir, mode=S_IFDIR|0755})
tree_entry(tree=initial, path="/a\x1b[31mb\xff\xfe\x9b2J\xc2\x9b\x7f", stat={type=file, mode=S_IFREG|0644, size=3}, content="abc")
tree_entry(tree=initial, path="/l\x1b", stat={type=symlink}, target="\x1b[2J\xc2\x9b")
tree_entry(tree=initial, path="/l\x1b/be\xc2\x9blow", stat={type=file, size=3}, content="abc")
tree_entry(tree=final, path="/a\x1b[31mb\xff\xfe\x9b2J\xc2\x9b\x7f", stat={type=file, mode=S_IFREG|0644, size=4}, content="abcd")
tree_entry(tree=final, path="/q\x1b]52;c;cHdu\x07\x0afake: missing", stat={type=file, mode=S_IFREG|0644, size=4}, content="abcd")
tree_entry(tree=final, path="/l\x1b", stat={type=symlink}, target="\x1b[2K\xc2\x9b")
loss(kind=EVENTS_LOST, count=1, note="\x1b[2J\xc2\x9b31m\xe2\x80\xae")
1/1 #1 1000+10 open(path="/x\x1b]0;PWNED\x07\x1b[2J\xff\xc2\x9b31m\x7f", flags=O_RDONLY, mode=0) = 3
1/1 #2 2000+10 open(path="/a\x1b[31mb\xff\xfe\x9b2J\xc2\x9b\x7f", flags=O_RDONLY, mode=0) = 4
1/1 #3 2500+10 read(fd=4, buf="a\x1b\x9b", count=10) = 3
1/1 #4 3000+10 mkdir(path="/d\x1b[31m\x0d\x0afake line\xe2\x80\xae", mode=0755) = -1 EEXIST
1/1 #5 3500+10 setxattr(path="/\x1b[2J", name="user.\x1b[2J", value="\x1b", size=1, flags=0) = 0
1/1 #6 3600+10 mount(source="\x1b[31m", target="/\x1b[2J", filesystemtype="\x9b31m", mountflags=0, data=NULL) = 0
1/1 #7 3700+10 execve(path="/x\x1b[31m", argv=["\x1b[31m","\xff"], envp=["\x1b[31m=1"]) = 0
1/1 #8 3800+10 close(fd=99) = 0
1/1 #9 3900+10 rmdir(path="/none\x1b\xc2\x9b") = 0
END
sed 's/PWNED/OWNED/; s/#9 3900/#9 4900/' h.txt >other.txt
make h && make other

# harmless COMMAND...: it ends, and neither stream has a byte that a terminal obeys
harmless() {
	timeout 60 "$REPRISE" "$@" >out 2>err
	status=$?
	[ $status -le 2 ] && python3 - "$*" <<'END'
import re, sys
bad = 0
for name in "out", "err":
    data = open(name, "rb").read()
    text = data.decode("utf-8", "replace")
    # What is no UTF-8 shows as that: a terminal may take it for C1.
    found = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufffd]", text)
    if "json" in sys.argv[1]:  # data, not lines for a reader
        found = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    if found or re.search(b"(?m)^fake", data):
        print("#", name, ascii(text[max(0, found.start() - 40):found.start() + 20] if found else "a forged line"))
        bad = 1
sys.exit(bad)
END
	ok $? "$*"
}

for form in '' --json --exact --data --threads --meta --ledger '--meta --json' '--ledger --json' --tree=initial --tree=final '--tree=final --json' --no-paths; do
	harmless show $form h.trace
done
harmless show --path='/none?*' h.trace
harmless stat h.trace
harmless stat --json h.trace
harmless check h.trace
harmless check --json h.trace
harmless resources h.trace
harmless resources --json h.trace
harmless diff h.trace other.trace
harmless diff --json h.trace other.trace
harmless compare h.trace other.trace
harmless compare --json h.trace other.trace
harmless slice -f -o sliced.trace --path='/a*' h.trace
harmless show --meta sliced.trace
harmless graph h.trace
harmless graph --json h.trace
harmless compile -v -f -o h.plan h.trace
harmless compile --json -f -o h.plan h.trace
harmless check h.plan
harmless show h.plan
harmless init h.trace D
harmless init --json h.trace D
harmless verify h.trace D
harmless verify --json h.trace D
harmless verify -v h.trace D
# What differs in a mismatch comes from the target too.
for name in D/a*; do
	printf 'x\033[2J\302\233' >"$name"
done
harmless replay --no-init --on-mismatch=warn -f -o run.trace h.trace D
harmless replay --no-init --json h.trace D
harmless show run.trace
harmless diff h.trace run.trace
mkdir E && : >E/x && harmless init h.trace E
harmless init --force h.trace E
for format in exact strace; do
	harmless export --format=$format h.trace
done
# on_terminal COMMAND...: with a terminal as standard output, which is copied to out
on_terminal() {
	python3 - "$@" >out 2>err <<'END'
import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn([os.environ["REPRISE"]] + sys.argv[1:], stdin_read=lambda fd: b"")))
END
}
for format in artc-init blktrace btrecord; do
	on_terminal export --format=$format h.trace </dev/null
	[ $? -eq 2 ] && grep -q "$format is not for a terminal" out
	ok $? "$format is not written to a terminal"
done

# Names of devices and programs of block requests.
cat >b.txt <<'END'
# reprise exact 1
meta(key="block.device.0", value="sd\x1b[31m\xc2\x9ba")
meta(key="block.devices", value="1")
1/1 #1 1000+900 block_request(dev=8:0, op=READ, flags=0, sector=0, length=4096, device_no=0, comm="\x1b[31m\xc2\x9b") = 4096
END
make b
for format in blockcsv fio blkparse; do
	harmless export --format=$format b.trace
done
harmless show b.trace
harmless stat b.trace
# An input that is wrong: its own text is in the message.
printf 'op\033[31m(\302\233en) = 3\n' >bad.txt
harmless import --format=exact -f -o bad.trace bad.txt
harmless import --format=strace -f -o bad.trace bad.txt
harmless import -f -o bad.trace bad.txt
harmless stat "$(printf 'none\033[31m\302\233')"

echo "1..$nr"
