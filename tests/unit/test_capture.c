/* SPDX-License-Identifier: MIT */
/* Registers and memory to values: every kind of argument, and what a hostile program may pass. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "capture_rig.h"
#include "model/fields.h"
#include "model/kernel_structs.h"
#include "record/capture_inside.h"

/* Numbers. */

static void test_widths(void **state)
{
	(void)state;
	/* What stands in the upper half of a register does not count for a narrow argument. */
	CALL(SC_openat, 0xdeadbeefffffff9c, U(put(0, "/a", 3)), 0x7fff00080241, 0x1000001a4);
	SAYS("dirfd=AT_FDCWD, path=\"/a\", flags=O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, mode=0644");
	CALL(SC_lseek, 0xffffffff, (uint64_t)-5, 1);
	SAYS("fd=-1, offset=-5, whence=SEEK_CUR");
	CALL(SC_mmap, 0, UINT64_MAX, 3, 0x22, UINT64_MAX, 0);
	SAYS("addr=0, length=18446744073709551615, prot=PROT_READ|PROT_WRITE, "
	     "flags=MAP_PRIVATE|MAP_ANONYMOUS, fd=-1, offset=0");
	CALL(SC_close, 7);
	returns(0, 0);
	SAYS("fd=7");
}

static void test_holes(void **state)
{
	(void)state;
	CALL(SC_fcntl_dupfd, 3, 0, 10);
	assert_int_equal(args[1].type, VALUE_NONE);
	SAYS("fd=3, arg=10");
	assert_int_equal(nr_reads, 0);
}

/* Strings. */

static void test_string_at_end_of_memory(void **state)
{
	(void)state;
	CALL(SC_unlink, U(at_end("/x/y", 5)));
	SAYS("path=\"/x/y\"");
	/* The memory ends before the string does. */
	CALL(SC_unlink, U(at_end("/x/y", 4)));
	assert_int_equal(args[0].data->kept_bytes, 4);
	assert_int_equal(args[0].data->len_bytes, 5);
	assert_int_equal(capture.truncated_bytes, 1);
}

static void test_string_across_pages(void **state)
{
	char long_path[4000];

	(void)state;
	CALL(SC_unlink, U(put(PAGE - 3, "/abcdefg", 9)));
	SAYS("path=\"/abcdefg\"");
	memset(long_path, 'p', sizeof(long_path));
	long_path[sizeof(long_path) - 1] = 0;
	CALL(SC_unlink, U(put(PAGE + 100, long_path, sizeof(long_path))));
	assert_int_equal(args[0].data->len_bytes, sizeof(long_path) - 1);
	assert_memory_equal(args[0].data->bytes, long_path, sizeof(long_path) - 1);
	assert_int_equal(capture.truncated_bytes, 0);
}

static void test_string_without_end(void **state)
{
	(void)state;
	memset(room, 'x', ROOM);
	CALL(SC_unlink, U(room));
	assert_int_equal(args[0].data->kept_bytes, 4096);
	assert_int_equal(args[0].data->len_bytes, 4097);
	assert_int_equal(capture.truncated_bytes, 0); /* the kernel does not look further either */
	CALL(SC_memfd_create, U(room), 0);
	assert_int_equal(args[0].data->kept_bytes, 65536);
	assert_int_equal(capture.truncated_bytes, 1);
}

static void test_pointers_to_nowhere(void **state)
{
	(void)state;
	CALL(SC_stat, 0, U(room));
	returns(-1, EFAULT);
	SAYS_AT("path=NULL, statbuf=&%p", (void *)room);
	CALL(SC_stat, 0x1234, 0x5678);
	returns(0, 0);
	SAYS("path=&0x1234, statbuf=&0x5678");
	CALL(SC_openat, 3, UINT64_MAX, 0, 0);
	SAYS("dirfd=3, path=&0xffffffffffffffff, flags=O_RDONLY, mode=0");
}

static void put_strings(size_t at, const char *const *strings, size_t nr)
{
	uint64_t pointers[64] = { 0 };
	size_t i, where = at + 1024;

	for (i = 0; i < nr; i++) {
		pointers[i] = U(put(where, strings[i], strlen(strings[i]) + 1));
		where += strlen(strings[i]) + 1;
	}
	(void)put(at, pointers, (nr + 1) * sizeof(*pointers));
}

static void test_string_vectors(void **state)
{
	static const char *const argv[] = { "ls", "-l", "" }, *const envp[] = { "A=1" };

	(void)state;
	put_strings(0, argv, 3);
	put_strings(8192, envp, 1);
	CALL(SC_execve, U(put(20000, "/bin/ls", 8)), U(room), U(room + 8192));
	SAYS("path=\"/bin/ls\", argv=[\"ls\", \"-l\", \"\"], envp=[\"A=1\"]");
	assert_int_equal(nr_reads, 3);
	CALL(SC_execve, U(room + 20000), 0, 0xbad);
	SAYS("path=\"/bin/ls\", argv=NULL, envp=&0xbad");
}

/* One behind the other, as the kernel puts them, across a page; and each of them again, in all orders. */
static void test_strings_side_by_side(void **state)
{
	static const size_t from = 3 * PAGE - 100, len = 13, nr = 16;
	const char *strings = (const char *)room + from;
	uint64_t pointers[40];
	size_t i, whole;

	(void)state;
	for (i = 0; i < nr; i++)
		(void)snprintf((char *)room + from + i * len, len + 1, "VARIABLE%02zu=%c", i,
			       "xy"[i % 2]);
	for (i = 0; i < nr; i++)
		pointers[i] = U(strings + i * len);
	pointers[nr] = U(strings + 5 * len); /* before the last one */
	pointers[nr + 1] = U(strings + 5 * len + 4);
	pointers[nr + 2] = U(strings + 5 * len + 4);
	pointers[nr + 3] = 0;
	(void)put(0, pointers, (nr + 4) * sizeof(*pointers));
	for (whole = 0; whole < 2; whole++) {
		memory.is_whole = whole;
		nr_spans = 0;
		CALL(SC_execve, 0, 0, U(room));
		assert_int_equal(args[2].count, nr + 3);
		for (i = 0; i < args[2].count; i++)
			assert_string_equal(args[2].items[i].data->bytes,
					    (char *)(uintptr_t)pointers[i]);
		/* Pointers, those of both pages, those from before on; the rest of the one across. */
		assert_int_equal(nr_spans, whole ? 1 + 3 + 1 : 1 + nr + 3 + 1);
	}
}

static void test_string_vector_without_end(void **state)
{
	uint64_t *pointers = (uint64_t *)(void *)room;
	size_t i;

	(void)state;
	/* Each is 4000 bytes long; 6 MiB of them are kept. */
	memset(room, 'y', ROOM);
	room[ROOM - 1] = 0;
	for (i = 0; i < 100000; i++)
		pointers[i] = U(room + ROOM - 4001);
	CALL(SC_execve, 0, U(room), 0);
	assert_int_equal(args[1].count, ROOM / sizeof(*pointers));
	assert_int_equal(args[1].items[0].data->kept_bytes, 4000);
	assert_int_equal(args[1].items[65535].data->kept_bytes, 0);
	assert_true(capture.truncated_bytes > 200000000);
}

/* Data. */

static void test_data_small_and_large(void **state)
{
	uint8_t big[70];

	(void)state;
	CALL(SC_write, 1, U(put(0, "hello\n", 6)), 6);
	SAYS("fd=1, buf=\"hello\\n\", count=6");
	memset(big, 'b', sizeof(big));
	CALL(SC_write, 1, U(put(0, big, sizeof(big))), sizeof(big));
	assert_true(args[1].data->refs && args[1].data->refs[0].blob);
	assert_true(hash_equal(args[1].data->refs[0].hash, hash_bytes(big, sizeof(big))));
	CALL(SC_write, 1, 0x10, 0);
	SAYS("fd=1, buf=\"\", count=0");
	CALL(SC_write, 1, 0, 0);
	SAYS("fd=1, buf=NULL, count=0");
	CALL(SC_write, 1, 0x10, 1);
	SAYS("fd=1, buf=&0x10, count=1");
	assert_int_equal(capture.truncated_bytes, 1);
}

static void test_data_in_pieces(void **state)
{
	size_t len = ROOM - 5, i;
	uint8_t *copy = arena_alloc(&arena, len);
	struct trace_stream *stream;
	struct trace_iter *it;
	struct event *ev;
	struct rng r = { 7 };

	(void)state;
	stream = trace_feed_open_stream(feed, 1, 1);
	rng_fill(&r, room, ROOM);
	memcpy(copy, room + 5, len);
	CALL(SC_pwrite64, 1, U(room + 5), len, 0);
	assert_int_equal(nr_reads, 2);
	memset(room, 0, ROOM);
	OK(trace_feed_event(feed, stream,
			    &(struct event){ .row = row, .args = { args[0], args[1], args[2] } }));
	end();
	reopen();
	it = iterate(&(struct trace_query){ 0 });
	ev = next(it);
	assert_int_equal(ev->args[1].data->len_bytes, len);
	for (i = 0; i < 2; i++) {
		const uint8_t *bytes;
		size_t piece_len;

		assert_int_equal(
			trace_load_piece(trace, ev->args[1].data, i, &bytes, &piece_len, &err), 1);
		assert_memory_equal(bytes, copy + i * BLOB_MAX_BYTES, piece_len);
	}
	trace_iter_close(it);
}

static void test_data_that_ends_early(void **state)
{
	(void)state;
	memset(room, 'q', ROOM);
	/* Within what is read at once, and piece by piece. */
	CALL(SC_write, 1, U(room + ROOM - 100), 150);
	assert_int_equal(args[1].data->len_bytes, 150);
	assert_int_equal(args[1].data->kept_bytes, 100);
	assert_int_equal(capture.truncated_bytes, 50);
	capture.truncated_bytes = 0;
	CALL(SC_write, 1, U(room), 3 * ROOM);
	assert_int_equal(args[1].data->kept_bytes, ROOM);
	assert_int_equal(data_nr_pieces(args[1].data), 2);
	assert_int_equal(capture.truncated_bytes, 2 * ROOM);
	/* A length that no call can mean. */
	CALL(SC_write, 1, U(room), UINT64_MAX);
	assert_int_equal(args[1].data->len_bytes, UINT64_MAX);
	assert_int_equal(args[1].data->kept_bytes, ROOM);
}

/* The bytes that could not be read were not written either. */
static void test_unused_is_no_loss(void **state)
{
	struct iovec iov[] = { { put(100, "one", 3), 3 }, { (void *)16, 4 } };
	char bytes[96] = { 0 };

	(void)state;
	CALL(SC_pwrite64, 1, U(at_end(bytes, sizeof(bytes))), 200, 0);
	assert_int_equal(capture.truncated_bytes, 104);
	returns(96, 0);
	assert_int_equal(capture.truncated_bytes, 0);
	CALL(SC_writev, 1, U(put(0, iov, sizeof(iov))), 2);
	assert_int_equal(capture.truncated_bytes, 4);
	returns(3, 0);
	assert_int_equal(capture.truncated_bytes, 0);
	CALL(SC_writev, 1, U(room), UINT64_MAX);
	assert_true(capture.truncated_bytes > 0);
	returns(-1, EINVAL);
	assert_int_equal(capture.truncated_bytes, 0);
	/* But what the kernel could read and we could not is lost. */
	CALL(SC_writev, 1, U(room), 2);
	returns(7, 0);
	assert_int_equal(capture.truncated_bytes, 4);
}

static void test_narrow(void **state)
{
	int32_t old_time[2] = { 1, 2 };
	struct timespec new_time = { 3, 4 };
	uint32_t last[2] = { (uint32_t)-1, 0 };

	(void)state;
	capture.narrow = true;
	capture.narrow_nr = 162;
	CALL(SC_nanosleep, U(put(0, old_time, sizeof(old_time))), 0);
	SAYS("duration={tv_sec=1, tv_nsec=2}");
	/* A call that came with 64-bit times. */
	capture.narrow_nr = 407;
	CALL(SC_clock_nanosleep, 1, 0, U(put(0, &new_time, sizeof(new_time))), 0);
	SAYS("clockid=CLOCK_MONOTONIC, flags=0, t={tv_sec=3, tv_nsec=4}");
	CALL(SC_unlink, U(put(0, "f", 2)));
	SAYS("path=\"f\"");
	/* At the end of memory: not a byte more than there is. A pointer to nothing is kept as such. */
	CALL(SC_writev, 1, U(at_end(last, sizeof(last))), 1);
	SAYS("fd=1, iov=[{iov_base=\"\", iov_len=0}], iovcnt=1");
	assert_int_equal(capture.nr_unread_structs, 0);
	/* Laid out in another way, which is not known. */
	CALL(SC_sysinfo, U(room));
	returns(0, 0);
	assert_int_equal(args[0].type, VALUE_ADDR);
	assert_int_equal(capture.nr_unread_structs, 1);
}

static void test_data_policies(void **state)
{
	uint8_t *big = room;

	(void)state;
	memset(big, 'z', 3 * BLOB_MAX_BYTES / 2);
	capture.policy = DATA_WRITES;
	CALL(SC_write, 1, U(big), 5);
	SAYS("fd=1, buf=\"zzzzz\", count=5");
	CALL(SC_read, 0, U(big), 100);
	returns(5, 0);
	assert_true(!args[1].data->bytes && !args[1].data->refs[0].blob);
	assert_true(hash_equal(args[1].data->refs[0].hash, hash_bytes("zzzzz", 5)));
	capture.policy = DATA_HASH;
	CALL(SC_write, 1, U(big), 3 * BLOB_MAX_BYTES / 2);
	assert_int_equal(args[1].data->kept_bytes, 3 * BLOB_MAX_BYTES / 2);
	assert_true(!args[1].data->refs[0].blob && !args[1].data->refs[1].blob);
	assert_true(hash_equal(args[1].data->refs[1].hash, hash_bytes(big, BLOB_MAX_BYTES / 2)));
	capture.policy = DATA_NONE;
	nr_reads = 0;
	CALL(SC_write, 1, U(big), 77);
	assert_true(args[1].data->len_bytes == 77 && !args[1].data->kept_bytes);
	assert_int_equal(nr_reads, 0);
	/* Names are no data. */
	CALL(SC_readlink, U(put(0, "l", 2)), U(put(10, "target", 6)), 64);
	returns(6, 0);
	SAYS("path=\"l\", buf=\"target\", bufsiz=64");
}

static void test_results(void **state)
{
	(void)state;
	(void)put(0, "0123456789", 10);
	CALL(SC_read, 0, U(room), 100);
	SAYS("fd=0, count=100");
	returns(4, 0);
	SAYS("fd=0, buf=\"0123\", count=100");
	CALL(SC_read, 0, U(room), 100);
	returns(-1, EIO);
	SAYS_AT("fd=0, buf=&%p, count=100", (void *)room);
	/* The result says how much there would have been. */
	CALL(SC_getxattr, U(put(100, "f", 2)), U(put(110, "user.a", 7)), 0, 0);
	returns(30, 0);
	SAYS("path=\"f\", name=\"user.a\", value=NULL, size=0");
	CALL(SC_recvfrom, 3, U(room), 3, 0x20, 0, 0);
	returns(1000, 0);
	SAYS("sockfd=3, buf=\"012\", len=3, flags=MSG_TRUNC, src_addr=NULL, addrlen=NULL, "
	     "addrlen_after=NULL");
}

/* Vectors. */

static void test_writev(void **state)
{
	struct iovec iov[] = { { put(100, "ab", 2), 2 }, { NULL, 0 }, { put(200, "cde", 3), 3 } };

	(void)state;
	CALL(SC_writev, 1, U(put(0, iov, sizeof(iov))), 3);
	SAYS("fd=1, iov=[{iov_base=\"ab\", iov_len=2}, {iov_base=NULL, iov_len=0}, "
	     "{iov_base=\"cde\", iov_len=3}], iovcnt=3");
	/* One read for the vectors, one for all that they point to. */
	assert_int_equal(nr_reads, 2);
}

static void test_readv(void **state)
{
	struct iovec iov[] = { { put(100, "abcd", 4), 4 },
			       { put(200, "efgh", 4), 4 },
			       { put(300, "ijkl", 4), 4 } };

	(void)state;
	CALL(SC_preadv, 0, U(put(0, iov, sizeof(iov))), 3, 0);
	returns(6, 0);
	SAYS("fd=0, iov=[{iov_base=\"abcd\", iov_len=4}, {iov_base=\"ef\", iov_len=4}, "
	     "{iov_base=\"\", iov_len=4}], iovcnt=3, offset=0");
	CALL(SC_preadv, 0, U(room), 3, 0);
	returns(-1, EINVAL);
	SAYS_AT("fd=0, iov=&%p, iovcnt=3, offset=0", (void *)room);
}

static void test_many_vectors(void **state)
{
	struct iovec *iov = (struct iovec *)(void *)room;
	size_t i;

	(void)state;
	/* More than go into one read, and more bytes than one turn holds. */
	for (i = 0; i < 1024; i++)
		iov[i] = (struct iovec){ room + ROOM / 2, 4096 };
	CALL(SC_writev, 1, U(iov), 1024);
	assert_int_equal(args[1].count, 1024);
	for (i = 0; i < 1024; i++)
		assert_int_equal(value_field(&args[1].items[i], 0)->data->kept_bytes, 4096);
	assert_int_equal(capture.truncated_bytes, 0);
	/* In one that cannot be read the others are not lost. */
	iov[3].iov_base = (void *)16;
	CALL(SC_writev, 1, U(iov), 5);
	assert_int_equal(value_field(&args[1].items[3], 0)->type, VALUE_ADDR);
	assert_int_equal(value_field(&args[1].items[4], 0)->data->kept_bytes, 4096);
}

/* Sockets. */

static void test_addresses(void **state)
{
	struct sockaddr_un un = { AF_UNIX, "/tmp/socket" };
	struct sockaddr_un hidden = { AF_UNIX, "\0name" };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(80) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(8080),
				    .sin6_scope_id = 2 };
	uint8_t netlink[] = { AF_NETLINK, 0, 1, 2, 3, 4 };

	(void)state;
	CALL(SC_bind, 3, U(put(0, &un, sizeof(un))), sizeof(un));
	SAYS("sockfd=3, addr={family=AF_UNIX, path=\"/tmp/socket\"}, addrlen=110");
	CALL(SC_connect, 3, U(put(0, &hidden, sizeof(hidden))), 2 + 5);
	SAYS("sockfd=3, addr={family=AF_UNIX, address=\"@name\"}, addrlen=7");
	CALL(SC_connect, 3, U(room), 2);
	SAYS("sockfd=3, addr={family=AF_UNIX}, addrlen=2");
	in.sin_addr.s_addr = htonl(0x7f000001);
	CALL(SC_connect, 3, U(put(0, &in, sizeof(in))), sizeof(in));
	SAYS("sockfd=3, addr={family=AF_INET, port=80, address=\"127.0.0.1\"}, addrlen=16");
	in6.sin6_addr.s6_addr[15] = 1;
	CALL(SC_connect, 3, U(put(0, &in6, sizeof(in6))), sizeof(in6));
	SAYS("sockfd=3, addr={family=AF_INET6, port=8080, address=\"::1%2\"}, addrlen=28");
	CALL(SC_connect, 3, U(put(0, netlink, sizeof(netlink))), sizeof(netlink));
	SAYS("sockfd=3, addr={family=AF_NETLINK, raw=\"\\x01\\x02\\x03\\x04\"}, addrlen=6");
	CALL(SC_connect, 3, U(room), (uint64_t)-1);
	SAYS("sockfd=3, addr={}, addrlen=-1");
}

static void test_accept(void **state)
{
	struct sockaddr_un un = { AF_UNIX, "/tmp/peer" };
	int len = 110;

	(void)state;
	(void)put(0, &un, sizeof(un));
	CALL(SC_accept, 3, U(room), U(put(200, &len, 4)));
	/* More than there was room for. */
	len = 120;
	(void)put(200, &len, 4);
	returns(4, 0);
	SAYS("sockfd=3, addr={family=AF_UNIX, path=\"/tmp/peer\"}, addrlen=[110], "
	     "addrlen_after=[120]");
	CALL(SC_accept, 3, 0, 0);
	returns(4, 0);
	SAYS("sockfd=3, addr=NULL, addrlen=NULL, addrlen_after=NULL");
}

/* A message with one vector, an address and two descriptors, at `at`. */
static uint64_t put_message(size_t at, const char *text_bytes)
{
	struct sockaddr_un un = { AF_UNIX, "/s" };
	struct iovec iov = { put(at + 100, text_bytes, strlen(text_bytes)), strlen(text_bytes) };
	struct {
		struct k_cmsghdr h;
		int32_t fds[2];
		struct k_cmsghdr other;
		uint8_t bytes[4];
	} control = {
		{ .cmsg_len = 24, .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS },
		{ 5, 6 },
		{ .cmsg_len = 20, .cmsg_level = SOL_SOCKET, .cmsg_type = 2 },
		{ 1, 2, 3, 4 },
	};
	struct k_msghdr m = { .msg_name = put(at + 200, &un, 5),
			      .msg_namelen = 5,
			      .msg_iov = put(at + 300, &iov, sizeof(iov)),
			      .msg_iovlen = 1,
			      .msg_control = put(at + 400, &control, sizeof(control)),
			      .msg_controllen = 44 };

	return U(put(at, &m, sizeof(m)));
}

static void test_sendmsg(void **state)
{
	uint64_t m = put_message(0, "hi");

	(void)state;
	CALL(SC_sendmsg, 3, m, 0);
	SAYS("sockfd=3, msg={msg_name={family=AF_UNIX, path=\"/s\"}, msg_namelen=5, "
	     "msg_iov=[{iov_base=\"hi\", iov_len=2}], msg_iovlen=1, "
	     "msg_control=[{cmsg_len=24, cmsg_level=SOL_SOCKET, cmsg_type=1, fds=[5, 6]}, "
	     "{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=2, cmsg_data=\"\\x01\\x02\\x03\\x04\"}], "
	     "msg_controllen=44, msg_flags=0}, flags=0");
	assert_int_equal(nr_reads, 3);
}

static void test_recvmsg(void **state)
{
	uint64_t m = put_message(0, "hi");

	(void)state;
	CALL(SC_recvmsg, 3, m, 0);
	SAYS("sockfd=3, flags=0");
	returns(1, 0);
	HAS("msg_iov=[{iov_base=\"h\", iov_len=2}]");
	returns(-1, EAGAIN);
	SAYS_AT("sockfd=3, msg=&%p, flags=0", (void *)room);
}

static void test_many_messages(void **state)
{
	struct k_mmsghdr all[2] = { { .msg_len = 77 }, { .msg_len = 77 } };

	(void)state;
	memcpy(&all[0].msg_hdr, (void *)(uintptr_t)put_message(1000, "one"),
	       sizeof(struct k_msghdr));
	memcpy(&all[1].msg_hdr, (void *)(uintptr_t)put_message(3000, "two"),
	       sizeof(struct k_msghdr));
	CALL(SC_sendmmsg, 3, U(put(0, all, sizeof(all))), 2, 0);
	HAS("{iov_base=\"two\", iov_len=3}");
	HAS_NOT("msg_len=77");
	all[0].msg_len = 3;
	all[1].msg_len = 2;
	(void)put(0, all, sizeof(all));
	returns(2, 0);
	HAS("msg_len=2");
	HAS("{iov_base=\"two\", iov_len=3}");

	CALL(SC_recvmmsg, 3, U(room), 2, 0, 0);
	returns(2, 0);
	/* Of each message as much as it says. */
	HAS("{iov_base=\"one\", iov_len=3}");
	HAS("{iov_base=\"tw\", iov_len=3}");
}

/* Directories. */

static size_t put_dirent64(uint8_t *p, uint64_t ino, const char *name, uint8_t type)
{
	uint16_t reclen = (uint16_t)((19 + strlen(name) + 1 + 7) & ~7u);

	memset(p, 0, reclen);
	memcpy(p, &ino, 8);
	memcpy(p + 16, &reclen, 2);
	p[18] = type;
	memcpy(p + 19, name, strlen(name) + 1);
	return reclen;
}

static void test_dirents(void **state)
{
	uint8_t old[] = { 5, 0, 0, 0, 0,  0, 0,	  0,   9,   0, 0, 0,
			  0, 0, 0, 0, 24, 0, 'o', 'l', 'd', 0, 0, 4 };
	size_t len = put_dirent64(room, 11, ".", 4);

	(void)state;
	len += put_dirent64(room + len, 12, "file", 8);
	CALL(SC_getdents64, 3, U(room), 32768);
	returns((int64_t)len, 0);
	SAYS("fd=3, dirp=[{d_ino=11, d_off=0, d_reclen=24, d_type=DT_DIR, d_name=\".\"}, "
	     "{d_ino=12, d_off=0, d_reclen=24, d_type=DT_REG, d_name=\"file\"}], count=32768");
	CALL(SC_getdents, 3, U(put(0, old, sizeof(old))), 32768);
	returns(sizeof(old), 0);
	SAYS("fd=3, dirp=[{d_ino=5, d_off=9, d_reclen=24, d_type=DT_DIR, d_name=\"old\"}], "
	     "count=32768");
	CALL(SC_getdents64, 3, U(room), 32768);
	returns(0, 0);
	SAYS("fd=3, dirp=[], count=32768");
}

static void test_many_dirents(void **state)
{
	size_t len = 0, nr = 0, i;

	(void)state;
	/* Several turns, whose ends do not fall between records. */
	while (len + 64 < ROOM) {
		char name[32];

		(void)snprintf(name, sizeof(name), "name%zu%s", nr, nr % 3 ? "" : "-longer");
		len += put_dirent64(room + len, nr++, name, 8);
	}
	CALL(SC_getdents64, 3, U(room), ROOM);
	returns((int64_t)len, 0);
	assert_int_equal(args[1].count, nr);
	for (i = 0; i < nr; i++)
		assert_int_equal(value_field(&args[1].items[i], 0)->u, i);
	assert_int_equal(capture.truncated_bytes, 0);
	/* A record that claims nonsense ends the list. */
	room[32 + 16] = 3;
	returns((int64_t)len, 0);
	assert_int_equal(args[1].count, 1);
	assert_int_equal(capture.truncated_bytes, len - 32);
}

/* Waiting. */

static void test_poll(void **state)
{
	struct k_pollfd fds[] = { { 3, 1, 0x7777 }, { 4, 4, 0x7777 } };

	(void)state;
	CALL(SC_poll, U(put(0, fds, sizeof(fds))), 2, 1000);
	SAYS("fds=[{fd=3, events=POLLIN}, {fd=4, events=POLLOUT}], nfds=2, timeout=1000");
	fds[0].revents = 1;
	fds[1].revents = 0;
	(void)put(0, fds, sizeof(fds));
	returns(1, 0);
	SAYS("fds=[{fd=3, events=POLLIN, revents=POLLIN}, {fd=4, events=POLLOUT, revents=0}], "
	     "nfds=2, timeout=1000");
	CALL(SC_poll, U(room), 1, 1000);
	returns(-1, EINTR);
	SAYS("fds=[{fd=3, events=POLLIN}], nfds=1, timeout=1000");
}

static void test_select(void **state)
{
	uint64_t in[2] = { 1u << 3 | 1, 1u << 2 }, out[2] = { 8, 0 };

	(void)state;
	CALL(SC_select, 67, U(put(0, in, sizeof(in))), 0, 0, 0);
	(void)put(0, out, sizeof(out));
	returns(1, 0);
	SAYS("nfds=67, readfds=[0, 3, 66], writefds=NULL, exceptfds=NULL, timeout=NULL, "
	     "readfds_after=[3], writefds_after=NULL, exceptfds_after=NULL, timeout_after=NULL");
	/* Bits beyond nfds do not count. */
	CALL(SC_select, 3, U(put(0, in, sizeof(in))), 0, 0, 0);
	assert_int_equal(args[1].count, 1);
	/* No more than there is, whatever is claimed. */
	memset(room, 0xff, ROOM);
	CALL(SC_select, INT32_MAX, U(room), 0, 0, 0);
	assert_int_equal(args[1].count, CAPTURE_FDSET_MAX_BITS);
}

static void test_epoll(void **state)
{
	struct k_epoll_event ev[2] = { { 1, 0x1111111122222222 }, { 4, 7 } };
	uint64_t mask = 1u << (SIGINT - 1);

	(void)state;
	CALL(SC_epoll_pwait, 5, U(put(0, ev, sizeof(ev))), 10, 100, U(put(100, &mask, 8)), 8);
	returns(2, 0);
	SAYS("epfd=5, events=[{events=EPOLLIN, data={u32=572662306, u64=1229782938533634594}}, "
	     "{events=EPOLLOUT, data={u32=7, u64=7}}], maxevents=10, timeout=100, "
	     "sigmask=[[INT]], sigsetsize=8");
}

static void test_interrupted_sleep(void **state)
{
	struct timespec wish = { 10, 0 }, left = { 3, 5 };

	(void)state;
	CALL(SC_nanosleep, U(put(0, &wish, sizeof(wish))), U(put(100, &left, sizeof(left))));
	returns(-1, EINTR);
	SAYS("duration={tv_sec=10, tv_nsec=0}, rem={tv_sec=3, tv_nsec=5}");
	CALL(SC_nanosleep, U(room), U(room + 100));
	returns(-1, EINVAL);
	SAYS_AT("duration={tv_sec=10, tv_nsec=0}, rem=&%p", (void *)(room + 100));
}

/* Structs. */

static void test_sized_struct(void **state)
{
	struct k_open_how how = { O_RDWR, 0600, 8 };

	(void)state;
	CALL(SC_openat2, 3, U(put(100, "f", 2)), U(put(0, &how, sizeof(how))), sizeof(how));
	SAYS("dirfd=3, path=\"f\", how={flags=O_RDWR, mode=0600, resolve=RESOLVE_BENEATH}, size=24");
	CALL(SC_openat2, 3, U(room + 100), U(room), 16);
	SAYS("dirfd=3, path=\"f\", how={flags=O_RDWR, mode=0600}, size=16");
	CALL(SC_openat2, 3, U(room + 100), U(room), 0);
	SAYS("dirfd=3, path=\"f\", how={}, size=0");
	/* Larger than we know it. */
	CALL(SC_openat2, 3, U(room + 100), U(room), UINT64_MAX);
	assert_int_equal(args[2].count, 3);
	/* The last field is not there any more. */
	CALL(SC_openat2, 3, U(room + 100), U(at_end(&how, 16)), 24);
	assert_int_equal(args[2].count, 2);
}

static void test_struct_with_vector(void **state)
{
	struct k_clone_args ca = { .flags = 0x100, .set_tid_size = 2 };
	int32_t tids[2] = { 10, 20 };

	(void)state;
	ca.set_tid = U(put(200, tids, sizeof(tids)));
	CALL(SC_clone3, U(put(0, &ca, sizeof(ca))), sizeof(ca));
	HAS("set_tid=[10, 20], set_tid_size=2");
	/* Older callers have a shorter one. */
	CALL(SC_clone3, U(room), 64);
	HAS_NOT("set_tid");
}

static void test_struct_both_ways(void **state)
{
	struct k_io_uring_params p = { .flags = 8, .sq_entries = 99, .cq_entries = 99 };

	(void)state;
	CALL(SC_io_uring_setup, 8, U(put(0, &p, sizeof(p))));
	SAYS("entries=8, params={flags=IORING_SETUP_CQSIZE, sq_thread_cpu=0, sq_thread_idle=0, "
	     "wq_fd=0}");
	p.sq_entries = 8;
	p.cq_entries = 128;
	p.sq_off.array = 320;
	(void)put(0, &p, sizeof(p));
	returns(4, 0);
	HAS("sq_entries=8, cq_entries=128, features=0, "
	    "sq_off={head=0, tail=0, ring_mask=0, ring_entries=0, "
	    "flags=0, dropped=0, array=320, user_addr=0}");
}

static void test_struct_with_tail(void **state)
{
	struct {
		struct k_fiemap head;
		struct k_fiemap_extent extents[2];
	} map = { .head = { .fm_length = 4096, .fm_extent_count = 2 } };
	struct {
		struct k_file_dedupe_range head;
		struct k_file_dedupe_range_info info[2];
	} same = { .head = { .src_length = 10, .dest_count = 2 },
		   .info = { { .dest_fd = 5 }, { .dest_fd = 6 } } };

	(void)state;
	CALL(SC_ioctl_fs_ioc_fiemap, 3, 0, U(put(0, &map, sizeof(map))));
	SAYS("fd=3, arg={fm_start=0, fm_length=4096, fm_flags=0, fm_extent_count=2}");
	map.head.fm_mapped_extents = 5; /* there are more than there is room for */
	map.extents[1].fe_length = 512;
	(void)put(0, &map, sizeof(map));
	returns(0, 0);
	HAS("fm_mapped_extents=5, fm_extents=[{fe_logical=0");
	HAS("fe_length=512, fe_flags=0}]}");

	CALL(SC_ioctl_fideduperange, 3, 0, U(put(0, &same, sizeof(same))));
	HAS("info=[{dest_fd=5, dest_offset=0}, {dest_fd=6");
	same.info[1].bytes_deduped = 10;
	(void)put(0, &same, sizeof(same));
	returns(0, 0);
	HAS("{dest_fd=6, dest_offset=0, bytes_deduped=10, status=0}");
}

static void test_length_outside_of_struct(void **state)
{
	struct {
		struct k_msgbuf head;
		char more[8];
	} m = { { .mtype = 3 }, "message" };
	struct k_xattr_args x = { .value = U(put(500, "value", 5)), .size = 3 };

	(void)state;
	CALL(SC_msgsnd, 1, U(put(0, &m, sizeof(m))), 7, 0);
	SAYS("msqid=1, msgp={mtype=3, mtext=\"message\"}, msgsz=7, msgflg=0");
	CALL(SC_msgrcv, 1, U(room), 100, 0, 0);
	returns(4, 0);
	SAYS("msqid=1, msgp={mtype=3, mtext=\"mess\"}, msgsz=100, msgtyp=0, msgflg=0");
	CALL(SC_getxattrat, 3, U(put(600, "f", 2)), 0, U(put(700, "n", 2)),
	     U(put(100, &x, sizeof(x))), sizeof(x));
	SAYS("dirfd=3, path=\"f\", at_flags=0, name=\"n\", uargs={size=3, flags=0}, usize=16");
	returns(5, 0);
	SAYS("dirfd=3, path=\"f\", at_flags=0, name=\"n\", uargs={value=\"val\", size=3, flags=0}, "
	     "usize=16");
}

static void test_siginfo(void **state)
{
	siginfo_t si = { .si_signo = SIGCHLD, .si_code = CLD_EXITED };

	(void)state;
	si.si_pid = 77;
	si.si_uid = 1000;
	si.si_status = 3;
	CALL(SC_waitid, 0, 0, U(put(0, &si, sizeof(si))), 4, 0);
	returns(0, 0);
	HAS("si_pid=77, si_uid=1000, si_status=3}");
	si = (siginfo_t){ .si_signo = SIGSEGV, .si_code = 1 };
	si.si_addr = (void *)0x1000;
	CALL(SC_rt_sigqueueinfo, 1, SIGSEGV, U(put(0, &si, sizeof(si))));
	HAS("si_addr=0x1000}");
	HAS_NOT("si_pid");
}

static void test_stat(void **state)
{
	struct stat st = { .st_ino = 5, .st_mode = S_IFREG | 0644, .st_size = 99 };

	(void)state;
	st.st_mtim.tv_nsec = 7;
	CALL(SC_fstat, 3, U(put(0, &st, sizeof(st))));
	returns(0, 0);
	HAS("st_ino=5, st_mode=S_IFREG|0644, st_nlink=0");
	HAS("st_mtime_nsec=7");
}

/* Requests. */

static void test_io_submit(void **state)
{
	struct iovec iov = { put(900, "vec", 3), 3 };
	struct k_iocb cb[3] = {
		{ .aio_lio_opcode = 1, .aio_fildes = 4, .aio_nbytes = 4, .aio_offset = 8 },
		{ .aio_lio_opcode = 8, .aio_fildes = 4, .aio_nbytes = 1 },
		{ .aio_lio_opcode = 7, .aio_fildes = 4, .aio_nbytes = 1 },
	};
	uint64_t pointers[4];
	size_t i;

	(void)state;
	cb[0].aio_buf = U(put(800, "data", 4));
	cb[1].aio_buf = cb[2].aio_buf = U(put(1000, &iov, sizeof(iov)));
	(void)put(100, cb, sizeof(cb));
	for (i = 0; i < 3; i++)
		pointers[i] = U(room + 100 + i * sizeof(*cb));
	pointers[3] = 0x33;
	CALL(SC_io_submit, 0x7000, 4, U(put(0, pointers, sizeof(pointers))));
	assert_int_equal(args[2].count, 4);
	assert_int_equal(value_field(&args[2].items[0], FIELD_OF(iocb, obj))->u, pointers[0]);
	HAS("buf=\"data\"}");
	HAS("iov=[{iov_base=\"vec\", iov_len=3}]}");
	/* What will be read into is not there yet. */
	assert_int_equal(
		value_field(&value_field(&args[2].items[2], FIELD_OF(iocb, iov))->items[0], 0)
			->type,
		VALUE_ADDR);
	assert_int_equal(args[2].items[3].type, VALUE_ADDR);
	/* The pointers, the blocks, the data and vectors, the data of the vectors. */
	assert_int_equal(nr_reads, 4);
}

/* Hostile. */

static void test_counts_are_bounded(void **state)
{
	(void)state;
	memset(room, 0, ROOM);
	CALL(SC_poll, U(room), UINT32_MAX, 0);
	assert_int_equal(args[0].count, 65536);
	returns(1, 0);
	assert_int_equal(args[0].count, 65536);
	CALL(SC_writev, 1, U(room), UINT64_MAX);
	assert_int_equal(args[1].count, 65536);
	CALL(SC_io_submit, 0, (uint64_t)-1, U(room));
	assert_int_equal(args[2].count, 0);
	CALL(SC_io_submit, 0, INT64_MAX, U(room));
	assert_int_equal(args[2].count, 65536);
	/* No more than memory holds. */
	CALL(SC_poll, U(room + ROOM - 20), 1000, 0);
	assert_int_equal(args[0].count, 2);
	CALL(SC_setgroups, 1000, U(room + ROOM - 10));
	assert_int_equal(args[1].count, 2);
}

/* A thousand times the same long list is not read a thousand times. */
static void test_targets_are_bounded(void **state)
{
	struct k_mmsghdr *all = (struct k_mmsghdr *)(void *)room;
	struct iovec *iov = (struct iovec *)(void *)(room + ROOM / 2);
	uint64_t nr_items = 0;
	size_t i;

	(void)state;
	for (i = 0; i < 1024; i++) {
		all[i].msg_hdr = (struct k_msghdr){ .msg_iov = iov, .msg_iovlen = 60000 };
		iov[i] = (struct iovec){ room, 1 };
	}
	CALL(SC_sendmmsg, 3, U(all), 1024, 0);
	assert_int_equal(args[1].count, 1024);
	for (i = 0; i < 1024; i++) {
		const struct value *v = value_field(value_field(&args[1].items[i], 0), 2);

		nr_items += v->type == VALUE_LIST ? v->count : 0;
	}
	assert_true(nr_items > 65536 && nr_items <= CAPTURE_ITEMS_MAX);
	assert_true(capture.truncated_bytes > 0);
}

/* Whatever the registers and the memory say, there is a value that can be written. */
static void test_every_row_with_garbage(void **state)
{
	struct trace_stream *stream = trace_feed_open_stream(feed, 1, 1);
	struct rng r = { 99 };
	unsigned int id, turn, i;

	(void)state;
	for (turn = 0; turn < 2; turn++) {
		/* Pointers into itself among the garbage, and small numbers. */
		rng_fill(&r, room, ROOM);
		for (i = 0; i < ROOM / 8; i += 1 + (unsigned int)rng_below(&r, 3))
			((uint64_t *)(void *)room)[i] = rng_below(&r, 2)
								? U(room) + rng_below(&r, ROOM)
								: rng_below(&r, 64);
		for (id = 0; id < ROW_ID_MAX; id++) {
			struct event ev = { .row = row_by_id(id) };
			struct outcome o = { .ret = (int64_t)rng_below(&r, 5000),
					     .err = (int32_t)rng_below(&r, 2) };

			if (!ev.row || ev.row->sort != ROW_CALL)
				continue;
			for (i = 0; i < 6; i++)
				regs[i] = rng_below(&r, 4) ? U(room) + rng_below(&r, ROOM)
							   : rng_below(&r, 100);
			arena_reset(&arena);
			OK(capture_entry(&capture, ev.row, regs, ev.args));
			OK(capture_exit(&capture, ev.row, regs, &o, ev.args));
			(void)!trace_feed_event(feed, stream, &ev); /* may be too large */
		}
	}
	end();
	assert_whole();
}

/* The table. */

static void assert_field(enum struct_id id, unsigned int n, const char *name)
{
	assert_true(n < struct_descs[id].nr_fields);
	assert_string_equal(struct_descs[id].fields[n].name, name);
}

/* Of every struct: that the numbers of model/fields.h are the places in the table. */
static void test_field_numbers(void **state)
{
	(void)state;
#define STRUCT(name_, ctype)                                                                       \
	{                                                                                          \
		enum struct_id id = STRUCT_##name_;                                                \
		unsigned int n = 0;
#define FIELD(member, name_, ...) assert_field(id, n++, #name_);
#define EXTRA(name_, ...) assert_field(id, n++, #name_);
#define END_STRUCT                                                                                 \
	assert_int_equal(n, struct_descs[id].nr_fields);                                           \
	}
#include "model/structs.def"
#undef STRUCT
#undef FIELD
#undef EXTRA
#undef END_STRUCT
	assert_field(STRUCT_sockaddr, FIELD_OF(sockaddr, raw), "raw");
	assert_field(STRUCT_siginfo, FIELD_OF(siginfo, si_fd), "si_fd");
	assert_field(STRUCT_stat, FIELD_OF(stat, st_mtime), "st_mtime");
}

/* What capture takes for granted. */
static void test_table_can_be_captured(void **state)
{
	unsigned int id, n;

	(void)state;
	for (id = 1; id < STRUCT_MAX; id++) {
		const struct struct_desc *d = &struct_descs[id];

		for (n = 0; n < d->nr_fields; n++) {
			const struct field_place *p = &d->places()[n];

			if (p->offset_bytes == OFFSET_NONE || d->fields[n].here)
				continue;
			if (capture_is_scalar(&d->fields[n]))
				assert_true(p->width_bytes == 1 || p->width_bytes == 2 ||
					    p->width_bytes == 4 || p->width_bytes == 8);
			else
				assert_int_equal(p->width_bytes, 8);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CAPTURE_TEST(test_widths),
		CAPTURE_TEST(test_holes),
		CAPTURE_TEST(test_string_at_end_of_memory),
		CAPTURE_TEST(test_string_across_pages),
		CAPTURE_TEST(test_string_without_end),
		CAPTURE_TEST(test_pointers_to_nowhere),
		CAPTURE_TEST(test_string_vectors),
		CAPTURE_TEST(test_strings_side_by_side),
		CAPTURE_TEST(test_string_vector_without_end),
		CAPTURE_TEST(test_data_small_and_large),
		CAPTURE_TEST(test_data_in_pieces),
		CAPTURE_TEST(test_data_that_ends_early),
		CAPTURE_TEST(test_unused_is_no_loss),
		CAPTURE_TEST(test_narrow),
		CAPTURE_TEST(test_data_policies),
		CAPTURE_TEST(test_results),
		CAPTURE_TEST(test_writev),
		CAPTURE_TEST(test_readv),
		CAPTURE_TEST(test_many_vectors),
		CAPTURE_TEST(test_addresses),
		CAPTURE_TEST(test_accept),
		CAPTURE_TEST(test_sendmsg),
		CAPTURE_TEST(test_recvmsg),
		CAPTURE_TEST(test_many_messages),
		CAPTURE_TEST(test_dirents),
		CAPTURE_TEST(test_many_dirents),
		CAPTURE_TEST(test_poll),
		CAPTURE_TEST(test_select),
		CAPTURE_TEST(test_epoll),
		CAPTURE_TEST(test_interrupted_sleep),
		CAPTURE_TEST(test_sized_struct),
		CAPTURE_TEST(test_struct_with_vector),
		CAPTURE_TEST(test_struct_both_ways),
		CAPTURE_TEST(test_struct_with_tail),
		CAPTURE_TEST(test_length_outside_of_struct),
		CAPTURE_TEST(test_siginfo),
		CAPTURE_TEST(test_stat),
		CAPTURE_TEST(test_io_submit),
		CAPTURE_TEST(test_counts_are_bounded),
		CAPTURE_TEST(test_targets_are_bounded),
		CAPTURE_TEST(test_every_row_with_garbage),
		CAPTURE_TEST(test_field_numbers),
		CAPTURE_TEST(test_table_can_be_captured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
