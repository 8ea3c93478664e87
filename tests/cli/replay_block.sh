#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise replay --device: block requests on files; on devices when root may make some.
. "$TOP/tests/cli/tap.sh"

# A workload of two devices with all operations, places that fit no sector, and dependent requests.
python3 - >w.csv <<'END'
import random
random.seed(7)
t = 0
print("time_ns,latency_ns,device,op,flags,offset,length")
for i in range(120):
    t += random.randrange(1, 100000)
    op = random.choice(["READ"] * 18 + ["WRITE"] * 15 + ["FLUSH", "DISCARD", "WRITE_ZEROES"])
    flags = random.choice(["0"] * 12 + ["FLUSH|FUA", "FUA", "SYNC|META"]) if op == "WRITE" else "0"
    offset, length = (0, 0) if op == "FLUSH" else (random.randrange(0, 2000) * 512, random.randrange(1, 17) * 512)
    print(f"{t},{random.randrange(1000, 90000)},{random.choice(['a', 'b'])},{op},{flags},{offset},{length}")
END
run 0 import -o w.trace w.csv
ok $? 'import'

# all_done [ENGINE]: the last report is of all requests, none of which failed; by grep, for it is asked often
all_done() {
	grep -q '"end": *"complete"' out && grep -q '"requests": *120,' out && grep -q '"made": *120,' out &&
		grep -q '"errors": *0,' out && grep -q '"mismatches": *0,' out && grep -q "\"engine\": *\"${1-io_uring}\"" out
}

for mode in timed think afap load; do
	run 0 replay --mode=$mode --device=a=t1.img --device=b=t2.img --create --json -f -o run-$mode.trace w.trace && all_done
	ok $? "mode $mode: all requests, none failed"
	run 0 stat run-$mode.trace && grep -q 'block_request *120' out
	ok $? "mode $mode: the run is a trace"
done

# What was made is what was to be made: place, length and kind, but for whole sectors.
python3 - >cmp.out 2>&1 <<'END'
import json, os, subprocess, sys
def load(name):
    out = subprocess.run([os.environ["REPRISE"], "show", "--json", name], capture_output=True, text=True).stdout
    return [json.loads(l) for l in out.splitlines()]
want = {e["seq"]: e for e in load("w.trace")}
for mode in ("timed", "think", "afap", "load"):
    got = load(f"run-{mode}.trace")
    if len(got) != len(want):
        sys.exit(f"{mode}: {len(got)} requests")
    for e in got:
        w = want[e["origin"]]["args"]
        g = e["args"]
        if g["op"] != w["op"] or g["flags"] != w["flags"] or g["device_no"] != w["device_no"]:
            sys.exit(f"{mode}: {g} != {w}")
        if g["sector"] > w["sector"] or g["sector"] * 512 + g["length"] < w["sector"] * 512 + w["length"]:
            sys.exit(f"{mode}: {g} does not cover {w}")
END
[ ! -s cmp.out ]
ok $? 'what was made is what was asked for'

# The order of think: nobody is issued before its parents were complete.
check_think() {
	python3 - <<'END'
import json, os, subprocess, sys
def load(name):
    out = subprocess.run([os.environ["REPRISE"], "show", "--json", name], capture_output=True, text=True).stdout
    return [json.loads(l) for l in out.splitlines()]
want = sorted(load("w.trace"), key=lambda e: e["seq"])
got = {e["origin"]: e for e in load("run-think.trace")}
for i, child in enumerate(want):
    for parent in want[:i]:
        think = child["enter_ns"] - parent["exit_ns"]
        if think >= 10000 and got[child["seq"]]["enter_ns"] < got[parent["seq"]]["exit_ns"]:
            sys.exit(f"{child['seq']} before {parent['seq']} was complete")
    # And of the parents themselves, not before the think time has passed, less what the replay itself takes.
    done = [p for p in want[:i] if p["exit_ns"] + 10000 <= child["enter_ns"]]
    latest = max((p["enter_ns"] for p in done), default=None)
    for p in done:
        if p["exit_ns"] + 10000 > latest:
            think = child["enter_ns"] - p["exit_ns"]
            if got[child["seq"]]["enter_ns"] < got[p["seq"]]["exit_ns"] + 50 * think - 250000:
                sys.exit(f"{child['seq']} too soon after {p['seq']}")
END
}
run 0 replay --mode=think --wait-for=parents --scale-server=50 --device=a=t1.img --device=b=t2.img --destroy-data -f -o run-think.trace w.trace && check_think
ok $? 'think, for parents: parents first, then the think time'

# By number: nobody is issued before as many of each kind were complete as in the trace.
check_number() {
	python3 - <<'END'
import json, os, subprocess, sys
from collections import Counter
def load(name):
    out = subprocess.run([os.environ["REPRISE"], "show", "--json", name], capture_output=True, text=True).stdout
    return [json.loads(l) for l in out.splitlines()]
def kind(e):
    return e["args"]["device_no"], e["args"]["op"]
want = load("w.trace")
got = {e["origin"]: e for e in load("run-think.trace")}
for child in want:
    before = [p for p in want if p["exit_ns"] + 10000 <= child["enter_ns"]]
    needed = Counter(map(kind, before))
    start = got[child["seq"]]["enter_ns"]
    there = Counter(kind(p) for p in got.values() if p["exit_ns"] <= start)
    for k, nr in needed.items():
        if there[k] < nr:
            sys.exit(f"{child['seq']}: {there[k]} of {k} complete, {nr} needed")
END
}
run 0 replay --mode=think --device=a=t1.img --device=b=t2.img --destroy-data -f -o run-think.trace w.trace && check_number
ok $? 'think, by number: as many complete as in the trace'
run 0 replay --mode=think --submitters=2 --device=a=t1.img --device=b=t2.img --destroy-data -f -o run-think.trace w.trace && check_number
ok $? 'think, by number, with two submitters'
run 2 replay --mode=timed --wait-for=parents --device='*=t1.img' w.trace && grep -q 'wait-for is for --mode=think' err
ok $? '--wait-for is for mode think'

run 0 compile -f -o w.plan w.trace && run 0 check w.plan && run 0 replay --mode=think --device='*=t1.img' --create --destroy-data w.plan
ok $? 'from a plan, all devices to one file'

run 2 replay --device=t1.img w.trace && grep -q 'no target for number 1 (b)\|no target for number 1 (a)' err
ok $? 'a device without a target'
run 2 replay --device=c=t1.img --device='*=t2.img' w.trace && grep -q "the trace has no device 'c'; of 2, the first is '[ab]'" err
ok $? 'a target for a device that is not there'
run 2 replay --device='*=none.img' w.trace && grep -q -- '--create' err
ok $? 'no file without --create'
truncate -s 100000 small.img
run 1 replay --mode=afap --device='*=small.img' w.trace && grep -q 'beyond the end' out && [ "$(wc -c <small.img)" = 100000 ]
ok $? 'no file grows'
run 0 replay --mode=afap --device='*=small.img' --wrap --json w.trace && grep -q '"beyond": *0,' out && [ "$(wc -c <small.img)" = 100000 ]
ok $? '--wrap'
run 0 replay --mode=afap --device='*=small.img' --fit --json w.trace && grep -q '"beyond": *0,' out && [ "$(wc -c <small.img)" = 100000 ]
ok $? '--fit'
# What is longer than the whole target is cut to it, and counted; without these options it is not made.
cat >long.csv <<'END'
time_ns,latency_ns,device,op,flags,offset,length
0,1000,a,WRITE,0,0,262144
1000,1000,a,WRITE,0,1048576,262144
2000,1000,a,READ,0,8192,4096
3000,1000,a,DISCARD,0,4096,1073741824
END
truncate -s 64K tiny.img
"$REPRISE" import -f -o long.trace long.csv >/dev/null
run 1 replay --mode=afap --device=tiny.img long.trace && grep -q '3 lie beyond the end of the target: not made (--wrap, --fit)' out
ok $? 'longer than the target: not made'
for how in wrap fit; do
	run 0 replay --mode=afap --device=tiny.img --$how --json -f -o long.run long.trace && json 'd["made"] == 4 and d["cut"] == 3 and d["beyond"] == 0 and d["errors"] == 0' &&
		[ "$(wc -c <tiny.img)" = 65536 ] && run 0 show long.run && [ "$(grep -c 'sector=0, length=65536' out)" = 3 ]
	ok $? "longer than the target: cut by --$how"
	run 0 replay --mode=afap --device=tiny.img --$how long.trace && grep -q '3 were cut to .*the size of the target' out && ! grep -q 'beyond' out
	ok $? "and --$how says so"
done
: >empty.img
run 2 replay --mode=afap --device=empty.img --wrap long.trace && grep -q 'empty.img has no room for a single sector' err
ok $? 'a target without room'
run 0 replay --mode=afap --device='*=off.img' --create --offset=1M w.trace && head -c 1048576 off.img | tr -d '\0' | wc -c | grep -qx 0
ok $? '--offset'
truncate -s 4M fs.img && printf '\123\357' | dd of=fs.img bs=1 seek=1080 conv=notrunc 2>/dev/null
run 2 replay --mode=afap --device='*=fs.img' w.trace && grep -q 'ext4' err && run 0 replay --mode=afap --device='*=fs.img' --destroy-data w.trace
ok $? 'a file system is not overwritten by accident'

# Filler.
cat >f.csv <<'END'
time_ns,latency_ns,device,op,flags,offset,length
0,1,a,WRITE,0,0,1048576
1000,1,a,WRITE,0,1048576,1048576
2000,1,a,WRITE,0,2097152,1048576
3000,1,a,WRITE,0,3145728,1048576
END
"$REPRISE" import -f -o f.trace f.csv >/dev/null
size() { gzip -1 <"$1" | wc -c; }
run 0 replay --mode=afap --device=f0.img --create f.trace && run 0 replay --mode=afap --device=f75.img --create --compress=75 f.trace &&
	[ "$(size f0.img)" -gt 4000000 ] && [ "$(size f75.img)" -lt 1500000 ] && [ "$(size f75.img)" -gt 900000 ]
ok $? 'filler as compressible as asked for'
distinct() { python3 -c 'import sys; d = open(sys.argv[1], "rb").read(); print(len({d[i:i + 4096] for i in range(0, len(d), 4096)}))' "$1"; }
run 0 replay --mode=afap --device=f50.img --create --dedup=50 f.trace && [ "$(distinct f0.img)" = 1024 ] && [ "$(distinct f50.img)" -lt 700 ] && [ "$(distinct f50.img)" -gt 400 ]
ok $? 'filler with as many copies as asked for'

# Hostile: huge, empty, out of order, everything in flight at once.
python3 - >h.csv <<'END'
print("time_ns,latency_ns,device,op,flags,offset,length")
for i in range(3000):
    print(f"{3000 - i},1000000000,a,{'READ' if i % 2 else 'WRITE'},0,{i * 4096},4096")
print("0,5,a,READ,0,9223372036854771712,512")
print("0,5,a,READ,0,0,0")
print("0,5,a,WRITE,0,0,4611686018427387904")
print("1,5,a,OTHER,0,0,512")
END
run 0 import -f -o h.trace h.csv && run 2 replay --mode=timed --device=h.img --create h.trace && grep -q 'bytes long' err
ok $? 'a file that cannot be made so large'
truncate -s 8M h2.img
for wait in number parents; do
	run 0 replay --mode=think --wait-for=$wait --device=h2.img --wrap --json h.trace && grep -q '"requests": *3004,' out && grep -q '"end": *"complete"' out &&
		grep -q '"cut": *1,' out
	ok $? "three thousand at once, and worse, for $wait"
done

# More in flight than an action can have edges, and one that waits for all of them.
python3 - >crowd.csv <<'END'
print("time_ns,latency_ns,device,op,flags,offset,length")
for i in range(70000):
    print(f"{i},1000000000,a,READ,0,{i % 8 * 4096},4096")
print("2000000000,5,a,READ,0,0,4096")
END
run 0 import -o crowd.trace crowd.csv && run 0 compile -o crowd.plan crowd.trace && run 0 check crowd.plan
ok $? 'a request that waits for seventy thousand'

run 2 replay --mode=afap --device=t1.img --scale-server=2 w.trace && grep -q 'mode=timed and think' err
ok $? 'factors where there are no times'

# Mode timed with two factors: what was idle is the server's, all else the storage's.
cat >s.csv <<'END'
time_ns,latency_ns,device,op,flags,offset,length
1000000,2000000,a,READ,0,0,4096
2000000,4000000,a,READ,0,4096,4096
9000000,1000000,a,READ,0,8192,4096
END
truncate -s 64K s.img
run 0 import -o s.trace s.csv && run 0 replay --device=s.img --scale-server=3 --scale-storage=0.5 --json -f -o s.run s.trace &&
	json 'd["expected_elapsed_ns"] == 12000000 and abs(d["original_iops"] - 250) < 0.01 and d["iops"] > 0' && run 0 show --json s.run && python3 - <<'END'
import json
at = [json.loads(l)["enter_ns"] for l in open("out")]
assert len(at) == 3 and at[1] >= 500000 and at[2] >= 11500000, at
END
ok $? 'factors of server and storage in mode timed'

# Several submitters: nothing is lost, and across devices nobody overtakes.
for mode in timed think afap load; do
	run 0 replay --mode=$mode --device=a=t1.img --device=b=t2.img --create --destroy-data --submitters=3 --json w.trace &&
		all_done && grep -q '"submitters": *3,' out && { [ $mode = think ] || grep -q '"reordered": *0,' out; }
	ok $? "mode $mode with three submitters"
	run 0 replay --mode=$mode --device='*=t1.img' --destroy-data --submitters=4 --bundle-size=4 --json w.trace && all_done
	ok $? "mode $mode with four submitters to one file"
	run 0 replay --mode=$mode --device=a=t1.img --device=b=t2.img --destroy-data --block-engine=aio --json -f -o aio.trace w.trace &&
		all_done aio && run 0 stat aio.trace && grep -q 'block_request *120' out
	ok $? "mode $mode by aio"
done
# What others make ready comes between what a submitter has seen to be next, and its start.
python3 - >busy.csv <<'END'
import random
random.seed(3)
t = 0
print("time_ns,latency_ns,device,op,flags,offset,length")
for i in range(20000):
    t += random.randrange(1, 20000)
    print(f"{t},{random.randrange(1000, 90000)},{random.choice('ab')},{random.choice(['READ', 'WRITE'])},0,"
          f"{random.randrange(0, 200) * 4096},4096")
END
run 0 import -o busy.trace busy.csv &&
	run 0 replay --mode=think --device=a=t1.img --device=b=t2.img --destroy-data --submitters=4 --bundle=50us --json busy.trace &&
	grep -q '"requests": *20000,' out && grep -q '"made": *20000,' out
ok $? 'many requests of four submitters, in bundles'
run 2 replay --device='*=t1.img' --submitters=65 w.trace && grep -q 'at most 64' err
ok $? 'too many submitters'
run 2 replay --device='*=t1.img' --poll --block-engine=aio w.trace && grep -q 'io_uring' err
ok $? 'aio cannot poll'

if [ "$(id -u)" = 0 ] && [ "$(nproc)" -gt 1 ]; then
	run 0 replay --mode=think --device='*=t1.img' --destroy-data --realtime --submitters=2 --json w.trace && all_done
	ok $? 'with urgency'
else
	nr=$((nr + 1))
	echo "ok $nr - with urgency # SKIP needs root and two processors"
fi

# Whether a device has queues to be polled, only it knows; that it has none must be said before the run.
"$REPRISE" replay --mode=afap --device='*=t1.img' --destroy-data --poll --json w.trace >out 2>err
case $? in
0) json 'd["made"] > 0' ;;
2) grep -q 'no queue that can be polled' err ;;
*) false ;;
esac
ok $? '--poll is done or refused'

# Those that are dependent see each other across submitters.
run 0 replay --mode=think --wait-for=parents --scale-server=50 --device=a=t1.img --device=b=t2.img --destroy-data --submitters=2 -f -o run-think.trace w.trace && check_think
ok $? 'think with two submitters: parents first, then the think time'

# Requests that come at times of their own, to one server; and those of four threads that wait.
python3 - <<'END'
import random
random.seed(5)
def write(name, requests):
    with open(name, "w") as f:
        f.write("time_ns,latency_ns,device,op,flags,offset,length\n")
        for i, (at, end) in enumerate(sorted(requests)):
            f.write(f"{int(at)},{int(end - at)},a,READ,0,{i % 16 * 4096},4096\n")
now = free = 0
requests = []
for _ in range(3000):
    now += random.expovariate(1 / 30e3)
    free = max(free, now) + random.expovariate(1 / 20e3)
    requests.append((now, free))
write("open.csv", requests)
free, ready, requests = 0, [0] * 4, []
for _ in range(3000):
    ready.sort()
    now = ready[0]
    free = max(free, now) + random.expovariate(1 / 20e3)
    requests.append((now, free))
    ready[0] = free + 12000
write("closed.csv", requests)
END
for kind in open closed; do
	run 0 import -f -o $kind.trace $kind.csv && run 0 graph --json $kind.trace && json "d['arrivals']['kind'] == '$kind'" && run 0 graph $kind.trace &&
		grep -q "mode=$([ $kind = open ] && echo timed || echo think)" out
	ok $? "an $kind load is told"
done
open_words='did not wait for each other'
run 0 replay --mode=think --device=s.img open.trace && grep -q "$open_words" err && run 0 replay --mode=timed --device=s.img open.trace && ! grep -q "$open_words" err &&
	run 0 replay --mode=think --device=s.img closed.trace && ! grep -q "$open_words" err
ok $? 'mode think warns of an open load'

# 100,000 in flight at once.
python3 - >many.csv <<'END'
print("time_ns,latency_ns,device,op,flags,offset,length")
for i in range(100000):
    print(f"{i},1000000000,a,READ,0,{i % 16 * 4096},4096")
END
run 0 import -o many.trace many.csv && run 0 replay --mode=afap --buffered --device=s.img --depth=512 --json many.trace &&
	json 'd["requests"] == 100000 and d["errors"] == 0 and d["original_in_flight_max"] == 100000 and d["in_flight_max"] <= 512'
ok $? 'very many in flight in the trace'
run 2 replay --device=t1.img w.trace . && grep -q 'no directory' err
ok $? 'a device and a directory'
mkdir tree
run 2 replay w.trace tree && grep -q 'give a --device' err
ok $? 'block requests in a directory'
cp s.img x=y.img
run 0 replay --mode=afap --device=./x=y.img --json s.trace && grep -q '"made": *3,' out
ok $? 'a path with an equal sign'
run 2 replay w.trace && grep -q 'missing operand DIR' err
ok $? 'neither'

# Devices. Losetup needs rights and a free device.
dev=
if [ "$(id -u)" = 0 ] && truncate -s 64M loop.img && dev=$(losetup --direct-io=on -f --show loop.img 2>/dev/null); then
	trap 'losetup -d "$dev"; rm -rf "$dir"' EXIT
	run 0 replay --mode=timed --device='*='"$dev" --json w.trace && grep -q '"end": *"complete"' out && ! grep -q '"unwanted": *0,' out &&
		[ "$(tr -d '\0' <loop.img | wc -c)" = 0 ]
	ok $? 'a device is only read'
	run 2 replay --mode=afap --device='*=loop.img' --writes w.trace && says "loop.img is attached to the device ${dev#/dev/}" && [ "$(tr -d '\0' <loop.img | wc -c)" = 0 ]
	ok $? 'a file behind a device is not written'
	run 0 replay --mode=think --device='*='"$dev" --writes --tune w.trace && [ "$(tr -d '\0' <loop.img | wc -c)" != 0 ]
	ok $? 'a device is written when asked for'
	if [ -d /sys/kernel/tracing/instances ]; then
		run 0 replay --mode=timed --device='*='"$dev" --writes --observe --json w.trace && json 'd["observed"] > 0 and d["observed"] + d["unobserved"] <= d["made"]' &&
			! ls -d /sys/kernel/tracing/instances/reprise-[0-9]* 2>/dev/null
		ok $? 'what the device saw'
		for engine in io_uring aio; do
			python3 - "$dev" $engine >out 2>err <<'END'
import os, subprocess, sys
sys.path.insert(0, os.environ["TOP"] + "/bench")
sys.dont_write_bytecode = True
from blockdev import Observer
device, engine = sys.argv[1:]
rows = ["WRITE,0,0,4096", "WRITE,FUA,4096,4096", "WRITE,FLUSH|FUA,8192,4096", "DISCARD,0,65536,65536", "READ,0,16384,8192", "FLUSH,0,0,0"]
with open("flags.csv", "w") as f:
    f.write("time_ns,latency_ns,device,op,flags,offset,length\n")
    for i, row in enumerate(rows):
        op, flags, offset, length = row.split(",")
        f.write(f"{i * 10**6},1000,a,{op},{flags},{offset},{length}\n")
tool = os.environ["REPRISE"]
subprocess.run([tool, "import", "-q", "-f", "-o", "flags.trace", "flags.csv"], check=True, stdout=subprocess.DEVNULL)
observer = Observer(device)
try:
    observer.start()
    subprocess.run([tool, "replay", "-q", "--mode=think", "--writes", f"--block-engine={engine}", f"--device={device}", "flags.trace"], check=True, stdout=subprocess.DEVNULL)
    seen = [(rwbs, sector, sectors) for name, _, rwbs, sector, sectors in observer.stop() if name == "block_bio_queue" and "R" not in rwbs]
finally:
    observer.close()
writes = [(sector, "FUA" if "F" in rwbs else "") for rwbs, sector, sectors in seen if "W" in rwbs and sectors]
new = tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) >= (6, 12) or engine == "aio"
print(seen)
if writes != [(0, ""), (8, "FUA"), (16, "FUA")]:
    sys.exit("writes: " + str(writes))
if not any(("D" if new else "N") in rwbs and (sector, sectors) == (128, 128) for rwbs, sector, sectors in seen):
    sys.exit("no discard")
if sum("F" in rwbs and not sectors for rwbs, _, sectors in seen) < 2:
    sys.exit("flushes are missing")
END
			ok $? "flushes, FUA and discards are such at the device, by $engine"
		done
	fi
	run 0 replay --mode=timed --device='*='"$dev" --writes --submitters=2 --json w.trace && all_done
	ok $? 'two submitters to a device'
	run 2 replay --mode=timed --device='*='"$dev" --writes --poll w.trace && grep -q 'no queue that can be polled' err
	ok $? 'a loop device cannot be polled'
	busy=0
	for i in 1 2 3 4 5 6 7 8 9 10; do
		run 0 replay --mode=afap --device='*='"$dev" --writes w.trace || busy=$((busy + 1))
	done
	[ $busy = 0 ]
	ok $? 'a device is free again when a run has ended'
	nomerges=/sys/block/${dev#/dev/}/queue/nomerges
	before=$(cat "$nomerges")
	run 0 replay --mode=afap --device='*='"$dev" --writes --tune w.trace && [ "$(cat "$nomerges")" = "$before" ]
	ok $? 'the queue is restored'
	# Also when it is killed: the long trace has only begun then.
	"$REPRISE" replay -q --mode=timed --scale=1000000 --device='*='"$dev" --tune w.trace >out 2>err &
	pid=$!
	until [ "$(cat "$nomerges")" = 2 ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
	tuned=$(cat "$nomerges")
	kill -9 $pid
	wait $pid 2>/dev/null
	i=0
	until [ "$(cat "$nomerges")" = "$before" ] || [ $i -ge 1000 ]; do
		sleep 0.01
		i=$((i + 1))
	done
	[ "$tuned" = 2 ] && [ "$(cat "$nomerges")" = "$before" ]
	ok $? 'the queue is restored after kill -9'
	if mkfs.ext4 -q "$dev" 2>/dev/null; then
		run 2 replay --mode=afap --device='*='"$dev" --writes w.trace && grep -q 'destroy-data' err
		ok $? 'a device with a file system is refused'
		mkdir mnt
		if mount "$dev" mnt 2>/dev/null; then
			run 2 replay --mode=afap --device='*='"$dev" --writes w.trace
			ok $? 'so is one that is mounted'
			umount mnt
		fi
	fi
	losetup -d "$dev"
	trap 'rm -rf "$dir"' EXIT
else
	nr=$((nr + 1))
	echo "ok $nr - replay on a loop device # SKIP needs root and loop devices"
fi

# A device that io_uring would serve by threads of the kernel.
zram=
if [ "$(id -u)" = 0 ] && zram=$(cat /sys/class/zram-control/hot_add 2>/dev/null) && echo 16M >"/sys/block/zram$zram/disksize" 2>/dev/null; then
	trap 'echo "$zram" >/sys/class/zram-control/hot_remove; rm -rf "$dir"' EXIT
	for mode in timed think afap load; do
		run 0 replay --mode=$mode --device='*='/dev/zram$zram --writes --json w.trace && all_done aio
		ok $? "zram, mode $mode"
	done
	run 0 replay --mode=afap --device='*='/dev/zram$zram --writes --block-engine=io_uring --submitters=2 --json w.trace && all_done
	ok $? 'zram by io_uring, two submitters'
	echo 1 >"/sys/block/zram$zram/reset"
	echo "$zram" >/sys/class/zram-control/hot_remove
	trap 'rm -rf "$dir"' EXIT
else
	nr=$((nr + 1))
	[ -z "$zram" ] || echo "$zram" >/sys/class/zram-control/hot_remove
	echo "ok $nr - replay on zram # SKIP needs root and zram"
fi
echo "1..$nr"
