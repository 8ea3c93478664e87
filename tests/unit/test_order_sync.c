/* SPDX-License-Identifier: MIT */
/*
 * Rule sync_wake: small traces of threads that wait for each other. Their actions
 * are preads, which share nothing; so every order is one by waits and wakes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "order_rig.h"
#include "random_event.h"

/* A thread's action, in a line of its own so that traces read as tables. */
#define PREAD(tid, seq, times) "7/" tid " #" seq " " times " pread64(fd=3, count=1, offset=0) = 1"
#define WAIT(tid, seq, times, word, ret)                                                           \
	"7/" tid " #" seq " " times " futex_op_wait(uaddr=" word                                   \
	", futex_op=FUTEX_WAIT_PRIVATE, val=2, key={space=1, addr=" word "}) = " ret
#define WAKE(tid, seq, times, word, nr, ret)                                                       \
	"7/" tid " #" seq " " times " futex_op_wake(uaddr=" word                                   \
	", futex_op=FUTEX_WAKE_PRIVATE, val=" nr ", key={space=1, addr=" word "}) = " ret
#define ALL "2147483647"

enum when { EITHER, PLAIN, AHEAD };

struct sync_case {
	const char *name;
	enum when when; /* must hold as events come, with events shown ahead, or both */
	const char *claims;
	uint64_t nr_unknown, nr_meetings;
	const char *lines[24];
};

static const struct sync_case cases[] = {
	{ "mutex: what the holder did before the wake",
	  EITHER,
	  "1<12 2|12 1<13",
	  0,
	  0,
	  { PREAD("1", "1", "100+50"), PREAD("3", "2", "100+60"), PREAD("2", "3", "10+20"),
	    WAIT("2", "4", "120+200", "0x10", "0"), WAKE("1", "5", "300+5", "0x10", "1", "1"),
	    PREAD("2", "12", "400+50"), PREAD("2", "13", "500+50"), PREAD("1", "14", "510+50") } },
	{ "mutex: one to the next, and no further back than needed",
	  EITHER,
	  "1<12 12<22 1<22",
	  0,
	  0,
	  { PREAD("1", "1", "100+50"), WAIT("2", "4", "100+200", "0x10", "0"),
	    WAIT("3", "5", "110+500", "0x10", "0"), WAKE("1", "6", "280+5", "0x10", "1", "1"),
	    PREAD("2", "12", "400+50"), WAKE("2", "13", "600+5", "0x10", "1", "1"),
	    PREAD("3", "22", "700+50") } },
	{ "mutex: handed on by a thread that does nothing with it",
	  EITHER,
	  "1<22",
	  0,
	  0,
	  { PREAD("1", "1", "100+50"), WAIT("2", "4", "100+200", "0x10", "0"),
	    WAIT("3", "5", "110+500", "0x10", "0"), WAKE("1", "6", "280+5", "0x10", "1", "1"),
	    WAKE("2", "13", "600+5", "0x10", "1", "1"), PREAD("3", "22", "700+50") } },
	{ "another word is no concern",
	  EITHER,
	  "1|12",
	  1,
	  0,
	  { PREAD("1", "1", "100+50"), PREAD("2", "2", "10+5"),
	    WAIT("2", "4", "100+200", "0x10", "0"), WAKE("1", "6", "280+5", "0x14", "1", "1"),
	    PREAD("2", "12", "400+50") } },
	{ "a wake that woke nobody, and one that came too late",
	  EITHER,
	  "1|12 2|12",
	  1,
	  0,
	  { PREAD("1", "1", "100+50"), WAIT("2", "4", "160+140", "0x10", "0"),
	    WAKE("1", "6", "280+5", "0x10", "1", "0"), PREAD("1", "2", "310+5"),
	    WAKE("1", "7", "320+5", "0x10", "1", "1"), PREAD("2", "12", "400+50") } },
	{ "a wait that timed out or was interrupted",
	  EITHER,
	  "1|12 1|13",
	  0,
	  0,
	  { PREAD("1", "1", "100+50"), PREAD("2", "2", "10+5"),
	    WAIT("2", "4", "100+200", "0x10", "-1 ETIMEDOUT"),
	    WAKE("1", "6", "280+5", "0x10", "1", "1"), PREAD("2", "12", "400+50"),
	    WAIT("2", "8", "460+20", "0x10", "-1 EINTR"), WAKE("1", "9", "465+5", "0x10", "1", "1"),
	    PREAD("2", "13", "500+50") } },
	{ "the waker is seen to return after the woken",
	  EITHER,
	  "1<12",
	  0,
	  0,
	  { PREAD("1", "1", "100+50"), PREAD("2", "2", "10+5"),
	    WAIT("2", "4", "100+200", "0x10", "0"), WAKE("1", "6", "280+100", "0x10", "1", "1"),
	    PREAD("2", "12", "390+50") } },
	{ "the waker is seen to return after the woken has acted",
	  AHEAD,
	  "1<12",
	  0,
	  0,
	  { PREAD("1", "1", "100+50"), PREAD("2", "2", "10+5"),
	    WAIT("2", "4", "100+200", "0x10", "0"), WAKE("1", "6", "280+300", "0x10", "1", "1"),
	    PREAD("2", "12", "390+50"), PREAD("2", "13", "690+50") } },
	{ "the same without foresight: one action late",
	  PLAIN,
	  "1|12 1<13",
	  0,
	  0,
	  { PREAD("1", "1", "100+50"), PREAD("2", "2", "10+5"),
	    WAIT("2", "4", "100+200", "0x10", "0"), WAKE("1", "6", "280+300", "0x10", "1", "1"),
	    PREAD("2", "12", "390+50"), PREAD("2", "13", "690+50") } },
	{ "turns under a lock, each wake seen to return when the next has acted",
	  AHEAD,
	  "1<12 12<22 1<22",
	  0,
	  0,
	  { PREAD("1", "1", "100+50"), PREAD("2", "2", "10+5"), PREAD("3", "3", "10+5"),
	    WAIT("2", "4", "160+140", "0x10", "0"), WAIT("3", "5", "170+630", "0x10", "0"),
	    WAKE("1", "6", "280+300", "0x10", "1", "1"), PREAD("2", "12", "390+50"),
	    WAKE("2", "13", "700+400", "0x10", "1", "1"), PREAD("3", "22", "890+50"),
	    PREAD("2", "14", "1200+50"), PREAD("3", "23", "1210+50") } },
	{ "the same turns without foresight: none waits for the one before",
	  PLAIN,
	  "1|12 12|22",
	  0,
	  0,
	  { PREAD("1", "1", "100+50"), PREAD("2", "2", "10+5"), PREAD("3", "3", "10+5"),
	    WAIT("2", "4", "160+140", "0x10", "0"), WAIT("3", "5", "170+630", "0x10", "0"),
	    WAKE("1", "6", "280+300", "0x10", "1", "1"), PREAD("2", "12", "390+50"),
	    WAKE("2", "13", "700+400", "0x10", "1", "1"), PREAD("3", "22", "890+50"),
	    PREAD("2", "14", "1200+50"), PREAD("3", "23", "1210+50") } },
	{ "two wait, two wakes: first in, first out",
	  AHEAD,
	  "1<12 2<22 2|12",
	  0,
	  0,
	  { PREAD("2", "8", "1+1"), PREAD("3", "9", "1+1"), PREAD("1", "1", "10+5"),
	    WAIT("2", "4", "20+300", "0x10", "0"), WAIT("3", "5", "30+300", "0x10", "0"),
	    WAKE("1", "6", "100+5", "0x10", "1", "1"), PREAD("4", "2", "110+5"),
	    WAKE("4", "7", "120+5", "0x10", "1", "1"), PREAD("2", "12", "400+50"),
	    PREAD("3", "22", "400+50") } },
	{ "barrier: all before precede all after",
	  EITHER,
	  "1<11 1<12 1<13 2<11 2<12 2<13 3<11 3<12 3<13 1|2 2|3 11|12 12|13",
	  0,
	  1,
	  { PREAD("1", "1", "10+40"), PREAD("2", "2", "10+50"), PREAD("3", "3", "10+60"),
	    WAIT("1", "4", "60+100", "0x20", "0"), WAIT("2", "5", "70+91", "0x20", "0"),
	    WAKE("3", "6", "150+5", "0x20", ALL, "2"), PREAD("1", "11", "170+50"),
	    PREAD("2", "12", "175+50"), PREAD("3", "13", "176+50") } },
	{ "barrier: one of them is seen long after the others have gone on",
	  AHEAD,
	  "1<11 1<12 1<13 2<11 2<12 2<13 3<11 3<12 3<13 1|2 2|3 11|12 12|13 2<21",
	  0,
	  1,
	  { PREAD("1", "1", "10+40"), PREAD("2", "2", "10+50"), PREAD("3", "3", "10+60"),
	    WAIT("1", "4", "60+100", "0x20", "0"), WAIT("2", "5", "70+891", "0x20", "0"),
	    WAKE("3", "6", "150+5", "0x20", ALL, "2"), PREAD("1", "11", "170+50"),
	    PREAD("1", "21", "270+50"), PREAD("2", "12", "975+50"), PREAD("3", "13", "176+50") } },
	{ "the same without foresight: those who wait next hold",
	  PLAIN,
	  "1<11 3<11 1<12 3<12 2|11 2<31 2<13",
	  0,
	  1,
	  { PREAD("1", "1", "10+40"), PREAD("2", "2", "10+50"), PREAD("3", "3", "10+60"),
	    WAIT("1", "4", "60+100", "0x20", "0"), WAIT("2", "5", "70+891", "0x20", "0"),
	    WAKE("3", "6", "150+5", "0x20", ALL, "2"), PREAD("1", "11", "170+50"),
	    PREAD("2", "12", "975+50"), PREAD("3", "13", "976+50"), PREAD("1", "31", "979+50") } },
	{ "barrier: one finds the word changed",
	  EITHER,
	  "1<11 1<12 1<13 2<11 2<12 2<13 3<11 3<12 3<13",
	  0,
	  1,
	  { PREAD("1", "1", "10+40"), PREAD("2", "2", "10+50"), PREAD("3", "3", "10+60"),
	    WAIT("1", "4", "60+100", "0x20", "0"), WAIT("2", "5", "157+4", "0x20", "-1 EAGAIN"),
	    WAKE("3", "6", "150+5", "0x20", ALL, "1"), PREAD("1", "11", "170+50"),
	    PREAD("2", "12", "175+50"), PREAD("3", "13", "176+50") } },
	{ "barrier: one finds the word changed when the others have gone on",
	  AHEAD,
	  "1<11 1<12 1<13 2<11 2<12 2<13 3<11 3<12 3<13 2|1",
	  0,
	  1,
	  { PREAD("1", "1", "10+40"), PREAD("2", "2", "10+50"), PREAD("3", "3", "10+60"),
	    WAIT("1", "4", "60+100", "0x20", "0"), WAIT("2", "5", "157+204", "0x20", "-1 EAGAIN"),
	    WAKE("3", "6", "150+105", "0x20", ALL, "1"), PREAD("1", "11", "170+10"),
	    PREAD("2", "12", "475+50"), PREAD("3", "13", "276+50") } },
	{ "barrier: all find the word changed, one before the wake",
	  EITHER,
	  "1<11 1<12 1<13 2<11 2<12 2<13 3<11 3<12 3<13",
	  0,
	  1,
	  { PREAD("1", "1", "10+40"), PREAD("2", "2", "10+50"), PREAD("3", "3", "10+60"),
	    WAIT("1", "4", "140+4", "0x20", "-1 EAGAIN"),
	    WAIT("2", "5", "157+4", "0x20", "-1 EAGAIN"), WAKE("3", "6", "150+5", "0x20", ALL, "0"),
	    PREAD("1", "11", "170+50"), PREAD("2", "12", "175+50"), PREAD("3", "13", "176+50") } },
	{ "a changed word, but the wake was before the thread's previous action",
	  EITHER,
	  "1|12",
	  0,
	  0,
	  { PREAD("1", "1", "10+40"), WAKE("1", "6", "60+5", "0x20", "1", "0"),
	    PREAD("2", "2", "70+50"), WAIT("2", "5", "157+4", "0x20", "-1 EAGAIN"),
	    PREAD("2", "12", "175+50") } },
	{ "a wake of two, but not of all, is no meeting",
	  EITHER,
	  "3<11 3<12 1|12 2|11 1|13",
	  0,
	  0,
	  { PREAD("1", "1", "10+40"), PREAD("2", "2", "10+50"), PREAD("3", "3", "10+60"),
	    WAIT("1", "4", "80+100", "0x20", "0"), WAIT("2", "5", "90+91", "0x20", "0"),
	    WAKE("3", "6", "150+5", "0x20", "2", "2"), PREAD("1", "11", "190+50"),
	    PREAD("2", "12", "195+50"), PREAD("3", "13", "196+50") } },
	{ "a wake of fewer than it would have is one of all",
	  EITHER,
	  "3<11 3<12 1<12 2<11 1<13 2<13",
	  0,
	  1,
	  { PREAD("1", "1", "10+40"), PREAD("2", "2", "10+50"), PREAD("3", "3", "10+60"),
	    WAIT("1", "4", "80+100", "0x20", "0"), WAIT("2", "5", "90+91", "0x20", "0"),
	    WAKE("3", "6", "150+5", "0x20", "5", "2"), PREAD("1", "11", "190+50"),
	    PREAD("2", "12", "195+50"), PREAD("3", "13", "196+50") } },
	{ "bits: only who waits for one of them",
	  EITHER,
	  "1<12 1|13",
	  1,
	  0,
	  { PREAD("1", "1", "10+5"), PREAD("2", "2", "10+5"), PREAD("3", "3", "10+5"),
	    "7/2 #4 20+200 futex_op_wait_bitset(uaddr=0x10, val=0, val3=0x6, key={space=1, addr=0x10}) = 0",
	    "7/3 #5 20+201 futex_op_wait_bitset(uaddr=0x10, val=0, val3=0x8, key={space=1, addr=0x10}) = 0",
	    "7/1 #6 210+3 futex_op_wake_bitset(uaddr=0x10, val=1, val3=0x2, key={space=1, addr=0x10}) = 1",
	    PREAD("2", "12", "400+50"), PREAD("3", "13", "400+50") } },
	{ "younger calls",
	  EITHER,
	  "1<12 2<13",
	  0,
	  0,
	  { PREAD("1", "1", "10+5"), PREAD("4", "2", "10+5"),
	    "7/2 #4 20+200 futex_wait(uaddr=0x10, val=0, mask=0xffffffff, flags=FUTEX2_PRIVATE, key={space=1, addr=0x10}) = 0",
	    "7/3 #5 20+201 futex_waitv(waiters=[{val=0, uaddr=0x20}, {val=0, uaddr=0x24}], nr_futexes=2, flags=0, keys=[{space=1, addr=0x20}, {space=1, addr=0x24}]) = 1",
	    "7/1 #6 210+3 futex_wake(uaddr=0x10, mask=0xffffffff, nr=1, key={space=1, addr=0x10}) = 1",
	    "7/4 #7 210+3 futex_wake(uaddr=0x24, mask=0xffffffff, nr=1, key={space=1, addr=0x24}) = 1",
	    PREAD("2", "12", "400+50"), PREAD("3", "13", "400+50") } },
	{ "condition variable: moved to the mutex, released by its holder",
	  EITHER,
	  "1<12 1<13 2<13",
	  0,
	  1,
	  { PREAD("1", "1", "10+5"), WAIT("2", "4", "20+200", "0x10", "0"),
	    WAIT("3", "5", "21+400", "0x10", "0"),
	    "7/1 #6 210+3 futex_op_cmp_requeue(uaddr=0x10, val=1, val2=2147483647, uaddr2=0x30, val3=0, key={space=1, addr=0x10}, key2={space=1, addr=0x30}) = 2",
	    PREAD("1", "2", "230+5"), WAKE("1", "7", "410+5", "0x30", "1", "1"),
	    PREAD("2", "12", "240+50"), PREAD("3", "13", "500+50") } },
	{ "two words in one wake",
	  EITHER,
	  "1<12 1<13",
	  0,
	  0,
	  { PREAD("1", "1", "10+5"), WAIT("2", "4", "20+200", "0x10", "0"),
	    WAIT("3", "5", "21+201", "0x30", "0"),
	    "7/1 #6 210+3 futex_op_wake_op(uaddr=0x10, val=1, val2=1, uaddr2=0x30, key={space=1, addr=0x10}, key2={space=1, addr=0x30}) = 2",
	    PREAD("2", "12", "400+50"), PREAD("3", "13", "500+50") } },
	{ "lock with priority inheritance, contended and not",
	  EITHER,
	  "1<12 2<13",
	  0,
	  0,
	  { PREAD("1", "1", "10+5"),
	    "7/2 #4 20+200 futex_op_lock_pi(uaddr=0x10, key={space=1, addr=0x10}) = 0",
	    "7/1 #5 200+9 futex_op_unlock_pi(uaddr=0x10, key={space=1, addr=0x10}) = 0",
	    PREAD("2", "12", "230+5"), PREAD("2", "2", "240+5"),
	    "7/2 #6 250+9 futex_op_unlock_pi(uaddr=0x10, key={space=1, addr=0x10}) = 0",
	    "7/3 #7 270+9 futex_op_lock_pi(uaddr=0x10, key={space=1, addr=0x10}) = 0",
	    PREAD("3", "13", "400+50") } },
	{ "condition variable with priority inheritance",
	  EITHER,
	  "1<12 2<12",
	  0,
	  1,
	  { PREAD("1", "1", "10+5"),
	    "7/2 #4 20+400 futex_op_wait_requeue_pi(uaddr=0x10, val=0, uaddr2=0x30, key={space=1, addr=0x10}, key2={space=1, addr=0x30}) = 0",
	    "7/1 #5 100+9 futex_op_cmp_requeue_pi(uaddr=0x10, val=1, val2=2147483647, uaddr2=0x30, val3=0, key={space=1, addr=0x10}, key2={space=1, addr=0x30}) = 1",
	    PREAD("3", "2", "200+5"),
	    "7/3 #6 400+9 futex_op_unlock_pi(uaddr=0x30, key={space=1, addr=0x30}) = 0",
	    PREAD("2", "12", "500+5"), PREAD("2", "13", "600+5") } },
	{ "shared memory: a word has a place in a file, not an address",
	  EITHER,
	  "1<12 2|12",
	  0,
	  0,
	  { "7/1 #1 10+5 pread64(fd=3) = 1", "8/4 #2 10+5 pread64(fd=3) = 1",
	    "9/2 #4 20+200 futex_op_wait(uaddr=0x9010, val=0, key={dev=1:2, ino=5, offset=16}) = 0",
	    "7/1 #6 210+3 futex_op_wake(uaddr=0x1010, val=1, key={dev=1:2, ino=5, offset=16}) = 1",
	    "8/4 #7 211+3 futex_op_wake(uaddr=0x9010, val=1, key={dev=1:2, ino=6, offset=16}) = 1",
	    "9/2 #12 400+50 pread64(fd=3) = 1" } },
	{ "private words of two processes are two",
	  EITHER,
	  "1|12",
	  1,
	  0,
	  { "7/1 #1 10+5 pread64(fd=3) = 1",
	    "9/2 #4 20+200 futex_op_wait(uaddr=0x10, val=0, key={space=2, addr=0x10}) = 0",
	    "7/1 #6 210+3 futex_op_wake(uaddr=0x10, val=1, key={space=1, addr=0x10}) = 1",
	    "9/2 #12 400+50 pread64(fd=3) = 1" } },
	{ "without keys: address and process",
	  EITHER,
	  "1<12 2|12",
	  0,
	  0,
	  { "7/1 #1 10+5 pread64(fd=3) = 1", "9/4 #2 10+5 pread64(fd=3) = 1",
	    "7/2 #4 20+200 futex_op_wait(uaddr=0x10, val=0) = 0",
	    "7/1 #6 210+3 futex_op_wake(uaddr=0x10, val=1) = 1",
	    "9/4 #7 212+3 futex_op_wake(uaddr=0x10, val=1) = 1",
	    "7/2 #12 400+50 pread64(fd=3) = 1" } },
};

static const struct sync_case life_cases[] = {
	{ "thread: after what its maker had done",
	  EITHER,
	  "1<11 2|11",
	  0,
	  0,
	  { PREAD("1", "1", "10+5"), "7/1 #3 20+30 clone3(cl_args={flags=CLONE_VM}) = 2",
	    "7/2 #4 40+0 thread_start(parent=1, how=clone)", PREAD("2", "11", "60+50"),
	    PREAD("1", "2", "60+51") } },
	{ "thread: the maker's clone returns late",
	  EITHER,
	  "1<11 2|11",
	  0,
	  0,
	  { PREAD("1", "1", "10+5"), "7/1 #3 20+300 clone3(cl_args={flags=CLONE_VM}) = 2",
	    "7/2 #4 40+0 thread_start(parent=1, how=clone)", PREAD("2", "11", "60+50"),
	    PREAD("1", "2", "400+51"), PREAD("2", "12", "500+50") } },
	{ "thread: no event of its start",
	  EITHER,
	  "1<11",
	  0,
	  0,
	  { PREAD("1", "1", "10+5"), "7/1 #3 20+30 fork() = 2",
	    "2/2 #11 60+50 pread64(fd=3) = 1" } },
	{ "thread: made by one that had done nothing itself",
	  EITHER,
	  "1<11",
	  0,
	  0,
	  { PREAD("1", "1", "10+5"), "7/1 #3 20+30 fork() = 2", "2/2 #5 60+9 fork() = 3",
	    "3/3 #11 80+9 pread64(fd=3) = 1" } },
	{ "join: the kernel wakes at the end of a thread",
	  EITHER,
	  "11<21 12<21 12|13",
	  0,
	  0,
	  { "7/1 #3 20+30 clone3(cl_args={flags=CLONE_VM|CLONE_CHILD_CLEARTID, child_tid=0x990}) = 2",
	    "7/2 #4 40+0 thread_start(parent=1, how=clone)", PREAD("2", "11", "60+50"),
	    PREAD("2", "12", "160+50"), PREAD("1", "13", "100+50"),
	    "7/1 #5 170+200 futex_op_wait(uaddr=0x990, val=2, key={space=1, addr=0x990}) = 0",
	    "7/2 #6 360+0 exit(status=0) = ?", "7/2 #7 395+0 thread_exit(status=0)",
	    PREAD("1", "21", "400+5") } },
	{ "join: the end is told late, and of two threads with one address",
	  EITHER,
	  "11<21 12<22 21<12",
	  0,
	  0,
	  { "7/1 #3 20+30 clone(flags=CLONE_VM|CLONE_CHILD_CLEARTID, child_tid=0x990) = 2",
	    PREAD("2", "11", "60+50"),
	    "7/1 #5 70+200 futex_op_wait(uaddr=0x990, val=2, key={space=1, addr=0x990}) = 0",
	    "7/2 #7 265+0 thread_exit(status=0)", PREAD("1", "21", "280+5"),
	    "7/1 #8 320+30 clone(flags=CLONE_VM|CLONE_CHILD_CLEARTID, child_tid=0x990) = 3",
	    PREAD("3", "12", "360+50"), "7/3 #9 430+0 thread_exit(status=0)",
	    "7/1 #10 440+2 futex_op_wait(uaddr=0x990, val=3, key={space=1, addr=0x990}) = -1 EAGAIN",
	    PREAD("1", "22", "480+5") } },
	{ "join: of the first thread, by its own word",
	  EITHER,
	  "11<21",
	  0,
	  0,
	  { "7/1 #3 20+3 set_tid_address(tidptr=0x990) = 1", PREAD("1", "11", "60+50"),
	    PREAD("2", "12", "10+5"), "7/2 #5 70+200 futex_op_wait(uaddr=0x990, val=1) = 0",
	    "7/1 #7 265+0 exit(status=0) = ?", "7/1 #8 266+0 thread_exit(status=0)",
	    PREAD("2", "21", "280+5") } },
	{ "wait: after all that the process has done",
	  EITHER,
	  "11<21 12<21 13|21",
	  0,
	  0,
	  { "7/1 #3 20+3 fork() = 2", "2/2 #11 30+5 pread64(fd=3) = 1",
	    "2/4 #12 30+50 pread64(fd=3) = 1", "3/3 #13 30+50 pread64(fd=3) = 1",
	    "2/4 #4 90+0 thread_exit(status=0)", "2/2 #5 91+0 exit_group(status=0) = ?",
	    "7/1 #6 40+60 wait4(pid=-1, wstatus=[0], options=0) = 2",
	    "7/1 #21 200+5 pread64(fd=3) = 1" } },
	{ "wait: after its end was told; by waitid; one that is not known",
	  EITHER,
	  "11<21",
	  1,
	  0,
	  { "2/2 #11 30+5 pread64(fd=3) = 1", "2/2 #5 91+0 thread_exit(status=0)",
	    "7/1 #6 40+60 waitid(idtype=P_ALL, id=0, infop={si_code=1, si_pid=2}, options=WEXITED) = 0",
	    "7/1 #7 110+1 wait4(pid=99, wstatus=[0], options=0) = 99",
	    "7/1 #21 200+5 pread64(fd=3) = 1" } },
	{ "wait: stopped, not ended; and nothing to tell",
	  EITHER,
	  "11|21",
	  0,
	  0,
	  { "2/2 #11 30+5 pread64(fd=3) = 1",
	    "7/1 #6 40+60 wait4(pid=2, wstatus=[0x137f], options=WUNTRACED) = 2",
	    "7/1 #7 110+60 waitid(idtype=P_ALL, id=0, infop={si_code=5, si_pid=2}, options=WSTOPPED) = 0",
	    "7/1 #8 180+1 wait4(pid=2, options=WNOHANG) = 0",
	    "7/1 #9 190+1 waitpid(pid=2, options=0) = -1 ECHILD",
	    "7/1 #21 200+5 pread64(fd=3) = 1" } },
	{ "vfork: until the child has exec'ed",
	  EITHER,
	  "1<11 11<21 12|21",
	  0,
	  0,
	  { "7/1 #1 1+1 pread64(fd=3) = 1", "7/1 #3 20+300 vfork() = 2",
	    "2/2 #4 21+0 thread_start(parent=1, how=clone)", "2/2 #11 30+5 pread64(fd=3) = 1",
	    "2/2 #5 40+5 execve(path=\"x\") = 0", "2/2 #12 100+5 pread64(fd=3) = 1",
	    "7/1 #21 400+5 pread64(fd=3) = 1" } },
	{ "wake-ups that a recorder saw",
	  EITHER,
	  "1<21 2|21",
	  0,
	  0,
	  { PREAD("1", "1", "10+5"), PREAD("2", "2", "10+5"), PREAD("3", "3", "10+5"),
	    "7/1 #4 20+0 wakeup(tid=3, pid=7, why=PIPE)",
	    "7/2 #5 20+0 wakeup(tid=3, pid=7, why=UNKNOWN)", PREAD("3", "21", "30+5") } },
	{ "waits found by throttling",
	  EITHER,
	  "2<21 3|21",
	  1,
	  0,
	  { PREAD("1", "1", "10+5"), PREAD("1", "2", "20+5"), PREAD("1", "4", "30+5"),
	    PREAD("3", "3", "10+5"), "7/2 #5 40+0 causal_wait(tid=1, pid=7, seq=4)",
	    "7/2 #6 41+0 causal_wait(tid=99, pid=7, seq=4)", PREAD("2", "21", "50+5") } },
};

static void run_case(const struct sync_case *c, bool ahead)
{
	struct order_totals t;
	char name[128];

	(void)snprintf(name, sizeof(name), "%s (%s)", c->name, ahead ? "ahead" : "plain");
	rig_run_text(name, ahead, rules_default, c->lines, c->claims);
	t = order_totals(rig.o);
	if (t.wakes_unknown != c->nr_unknown || t.nr_meetings != c->nr_meetings)
		fail_msg("%s: %llu unknown, %llu meetings", name,
			 (unsigned long long)t.wakes_unknown, (unsigned long long)t.nr_meetings);
	rig_close();
}

static void run_cases(const struct sync_case *list, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		if (list[i].when != AHEAD)
			run_case(&list[i], false);
		if (list[i].when != PLAIN)
			run_case(&list[i], true);
	}
}

static void test_futexes(void **state)
{
	(void)state;
	run_cases(cases, ARRAY_LEN(cases));
}

static void test_lives(void **state)
{
	(void)state;
	run_cases(life_cases, ARRAY_LEN(life_cases));
}

/* Without the rule none of it is seen, but for the thread rule. */
static void test_rule_off(void **state)
{
	const struct sync_case *c = &cases[0];

	(void)state;
	rig_run_text(c->name, true, rules_artc, c->lines, "1|12 2|12");
	rig_close();
	rig_run_text("thread", false, rules_artc, life_cases[0].lines, "1<11 2|11");
	rig_close();
}

static void touch_stream(uint32_t how, uint64_t from, uint64_t to)
{
	rig.facts.touches.len = 0;
	VEC_PUSH(&rig.facts.touches,
		 ((struct touch){ &rig.res[how >> 16][1], TOUCH_USE | (how & 0xffff), from, to }));
}

/* Sends and receives that are not made again still order what stands around them. */
static void test_stream_without_actions(void **state)
{
	struct event ev = { .row = row_by_id(SC_sendto) };
	uint32_t kinds[] = { RES_STREAM, RES_LOCKS };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		rig_open("root", rules_default);
		(void)rig_line("1 F1:u"); /* 1 */
		(void)rig_line("2 F2:u"); /* 2 */
		ev.tid = ev.pid = 1001;
		touch_stream(kinds[i] << 16 | TOUCH_WRITE, 0, 10);
		(void)rig_event(&ev, 1, false);
		(void)rig_line("1 F3:u"); /* 3 */
		ev.tid = ev.pid = 1002;
		touch_stream(kinds[i] << 16 | TOUCH_READ, 0, 10);
		(void)rig_event(&ev, 2, false);
		(void)rig_line("2 F4:u"); /* 4 */
		rig_claims("stream", "1<4 3|4 1|2", false);
		rig_close();
	}
}

/* Events of files and names that are not made again order nothing. */
static void test_touches_without_actions(void **state)
{
	struct event ev = { .row = row_by_id(SC_exit), .tid = 1001, .pid = 1001 };

	(void)state;
	rig_open("root", rules_default);
	(void)rig_line("1 D1:u");
	rig.facts.touches.len = 0;
	VEC_PUSH(&rig.facts.touches,
		 ((struct touch){ &rig.res[RES_FD][1], TOUCH_USE | TOUCH_DELETE, 0, 0 }));
	(void)rig_event(&ev, 1, false);
	(void)rig_line("2 D1:u");
	rig_claims("exit", "1|2", false);
	rig_close();
}

/* Words without end, threads without end: memory stays, and what is recent is known. */
static void test_many_words(void **state)
{
	struct value key = value_struct(&event_text.arena, 3);
	struct event ev = { .row = row_by_id(SC_futex_op_wake), .pid = 7 };
	int i;

	(void)state;
	rig_open("root", rules_default);
	rig.facts.touches.len = 0;
	for (i = 0; i < 100000; i++) {
		ev.tid = (uint32_t)(i % 2 ? 100000 + i : 5);
		key.fields->items[0] = value_uint(1);
		key.fields->items[1] = value_uint((uint64_t)i * 4 + 4);
		*args_find(ev.row, ev.args, "key") = key;
		ev.enter_ns = (uint64_t)i * 10;
		ev.exit_ns = ev.enter_ns + 5;
		(void)rig_event(&ev, ev.tid == 5 ? 0 : 1, false);
		if (ev.tid != 5)
			order_thread_end(rig.o, ev.tid);
	}
	rig_close();
}

/* Hostile times, numbers and keys: no crash, and edges that lead back (the order asserts it). */
static void test_random(void **state)
{
	static const uint16_t rows[] = {
		SC_futex_op_wait,
		SC_futex_op_wake,
		SC_futex_op_requeue,
		SC_futex_op_cmp_requeue,
		SC_futex_op_wake_op,
		SC_futex_op_lock_pi,
		SC_futex_op_unlock_pi,
		SC_futex_op_trylock_pi,
		SC_futex_op_wait_bitset,
		SC_futex_op_wake_bitset,
		SC_futex_op_wait_requeue_pi,
		SC_futex_op_cmp_requeue_pi,
		SC_futex_waitv,
		SC_futex_wake,
		SC_futex_wait,
		SC_futex_requeue,
		SC_wait4,
		SC_waitid,
		SC_clone,
		SC_clone3,
		SC_vfork,
		SC_set_tid_address,
		SC_exit,
		SC_execve,
		EV_thread_exit,
		EV_thread_start,
		EV_exec,
		EV_wakeup,
		EV_causal_wait,
		SC_pread64,
		SC_pread64,
		SC_pread64,
	};
	struct random r = { .state = 4711, .arena = &event_text.arena };
	int round, i;
	unsigned int n;

	(void)state;
	for (round = 0; round < 300; round++) {
		uint64_t now_ns = 0;

		rig_open("root", rules_default);
		for (i = 0; i < RIG_ACTIONS - 1; i++) {
			struct event ev = { .row = row_by_id(
						    rows[random_below(&r, ARRAY_LEN(rows))]) };

			ev.tid = 1 + (uint32_t)random_below(&r, 6);
			ev.pid = 1 + (uint32_t)random_below(&r, 2);
			now_ns += random_below(&r, 20);
			ev.exit_ns = now_ns;
			ev.enter_ns = now_ns - random_below(&r, now_ns + 1);
			ev.seq = (uint64_t)i;
			ev.outcome.ret = (int64_t)random_below(&r, 7);
			ev.outcome.err = random_below(&r, 4) ? 0 : 11;
			for (n = 0; n < ev.row->nr_args; n++) {
				if (random_below(&r, 3))
					ev.args[n] = random_value(&r, &ev.row->args[n]);
				if (ev.row->args[n].kind == KIND_ADDR ||
				    ev.row->args[n].kind == KIND_PID)
					ev.args[n] = value_uint(4 * random_below(&r, 3));
			}
			rig.facts.touches.len = 0;
			rig.facts.child_tid =
				rig_is_clone(ev.row) ? (uint32_t)random_below(&r, 7) : 0;
			if (random_below(&r, 2))
				order_ahead(rig.o, &ev);
			(void)rig_event(&ev, ev.tid, ev.row->id == SC_pread64);
			if (random_below(&r, 50) == 0)
				order_thread_end(rig.o, ev.tid);
		}
		rig_close();
		arena_reset(&event_text.arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_futexes),
		cmocka_unit_test(test_lives),
		cmocka_unit_test(test_rule_off),
		cmocka_unit_test(test_stream_without_actions),
		cmocka_unit_test(test_touches_without_actions),
		cmocka_unit_test(test_many_words),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, event_text_setup, event_text_teardown);
}
