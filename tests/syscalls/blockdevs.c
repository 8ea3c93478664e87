/* SPDX-License-Identifier: MIT */
/*
 * ioctl on block devices. Those that ask are made on a device of this machine
 * where there is one that we may open; those that change something only on a
 * file, which refuses them.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib.h"

#ifndef BLKROTATIONAL
#define BLKROTATIONAL _IO(0x12, 126)
#endif

struct question {
	unsigned long cmd;
	const char *name;
	unsigned int width_bytes;
	bool is_signed;
};

static const struct question questions[] = {
	{ BLKGETSIZE64, "blkgetsize64", 8, false },
	{ BLKGETSIZE, "blkgetsize", 8, false },
	{ BLKSSZGET, "blksszget", 4, true },
	{ BLKBSZGET, "blkbszget", 4, true },
	{ BLKPBSZGET, "blkpbszget", 4, false },
	{ BLKIOMIN, "blkiomin", 4, false },
	{ BLKIOOPT, "blkioopt", 4, false },
	{ BLKALIGNOFF, "blkalignoff", 4, true },
	{ BLKROTATIONAL, "blkrotational", 2, false },
	{ BLKSECTGET, "blksectget", 2, false },
	{ BLKROGET, "blkroget", 4, true },
	{ BLKRAGET, "blkraget", 8, true },
};

static char *answer(const struct question *q, const void *p)
{
	uint64_t wide = 0;
	uint32_t word = 0;
	uint16_t half = 0;

	memcpy(&wide, p, sizeof(wide));
	memcpy(&word, p, sizeof(word));
	memcpy(&half, p, sizeof(half));
	switch (q->width_bytes) {
	case 8:
		return q->is_signed ? text("[%ld]", (long)wide) : text("[%lu]", wide);
	case 4:
		return q->is_signed ? text("[%d]", (int)word) : text("[%u]", word);
	}
	return text("[%u]", half);
}

static void ask(int fd)
{
	uint64_t value;
	size_t i;
	long r;

	for (i = 0; i < ARRAY_LEN(questions); i++) {
		const struct question *q = &questions[i];

		value = 0;
		r = sys(ioctl, fd, q->cmd, &value);
		expect("ioctl_%s(fd=%d, arg=%s) = %s", q->name, fd,
		       r < 0 ? pointer(&value) : answer(q, &value), outcome(r));
	}
}

static void change(int fd)
{
	uint64_t range[2] = { 4096, 8192 };
	int n = 512;

	expect("ioctl_blkbszset(fd=%d, arg=[512]) = -1 ENOTTY", fd);
	t_fails(sys(ioctl, fd, BLKBSZSET, &n), ENOTTY);
	expect("ioctl_blkroset(fd=%d, arg=[512]) = -1 ENOTTY", fd);
	t_fails(sys(ioctl, fd, BLKROSET, &n), ENOTTY);
	expect("ioctl_blkraset(fd=%d, arg=77) = -1 ENOTTY", fd);
	t_fails(sys(ioctl, fd, BLKRASET, 77), ENOTTY);
	expect("ioctl_blkdiscard(fd=%d, arg=[4096, 8192]) = -1 ENOTTY", fd);
	t_fails(sys(ioctl, fd, BLKDISCARD, range), ENOTTY);
	expect("ioctl_blksecdiscard(fd=%d, arg=[4096, 8192]) = -1 ENOTTY", fd);
	t_fails(sys(ioctl, fd, BLKSECDISCARD, range), ENOTTY);
	expect("ioctl_blkzeroout(fd=%d, arg=[4096, 8192]) = -1 ENOTTY", fd);
	t_fails(sys(ioctl, fd, BLKZEROOUT, range), ENOTTY);
	expect("ioctl_blkflsbuf(fd=%d) = -1 ENOTTY", fd);
	t_fails(sys(ioctl, fd, BLKFLSBUF, 0), ENOTTY);
	expect("ioctl_blkrrpart(fd=%d) = -1 ENOTTY", fd);
	t_fails(sys(ioctl, fd, BLKRRPART, 0), ENOTTY);
}

/* Any block device that can be opened for reading, or -1. */
static int find_device(void)
{
	DIR *d = opendir("/sys/block");
	struct dirent *de;
	int fd = -1;

	while (d && fd < 0 && (de = readdir(d)))
		if (de->d_name[0] != '.')
			fd = open(text("/dev/%s", de->d_name), O_RDONLY | O_NONBLOCK);
	if (d)
		(void)closedir(d);
	return fd;
}

int main(void)
{
	int file, device;

	t_init();
	file = (int)t_ok(open("f", O_RDWR | O_CREAT, 0600));
	device = find_device();
	t_begin();
	ask(file);
	change(file);
	if (device >= 0)
		ask(device);
	else
		t_skip("no block device can be opened");
	t_end();
	return 0;
}
