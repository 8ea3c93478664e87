/* SPDX-License-Identifier: MIT */
/* ioctl on terminals: a pair of our own, which a child makes its controlling one. */
#include <asm/termbits.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

static int master, slave;

static char *termios_text(const struct termios *t)
{
	return text("{c_iflag=%s, c_oflag=%s, c_cflag=%s, c_lflag=%s, c_line=%u, c_cc=%s}",
		    hex(t->c_iflag), hex(t->c_oflag), hex(t->c_cflag), hex(t->c_lflag), t->c_line,
		    quote(t->c_cc, sizeof(t->c_cc)));
}

static void settings(int file)
{
	struct termios t;
	struct winsize w = { 24, 80, 640, 480 };

	t_ok(sys(ioctl, slave, TCGETS, &t));
	expect("ioctl_tcgets(fd=%d, arg=%s) = 0", slave, termios_text(&t));
	expect("ioctl_tcgets(fd=%d, arg=%s) = -1 ENOTTY", file, pointer(&t));
	t_fails(sys(ioctl, file, TCGETS, &t), ENOTTY);
	t.c_lflag &= ~(unsigned int)ECHO;
	expect("ioctl_tcsets(fd=%d, arg=%s) = 0", slave, termios_text(&t));
	t_ok(sys(ioctl, slave, TCSETS, &t));
	expect("ioctl_tcsetsw(fd=%d, arg=%s) = 0", slave, termios_text(&t));
	t_ok(sys(ioctl, slave, TCSETSW, &t));
	expect("ioctl_tcsetsf(fd=%d, arg=%s) = 0", slave, termios_text(&t));
	t_ok(sys(ioctl, slave, TCSETSF, &t));
	expect("ioctl_tcsets(fd=%d, arg=%s) = -1 ENOTTY", file, termios_text(&t));
	t_fails(sys(ioctl, file, TCSETS, &t), ENOTTY);
	expect("ioctl_tcsbrk(fd=%d, arg=1) = 0", slave);
	t_ok(sys(ioctl, slave, TCSBRK, 1));
	expect("ioctl_tcxonc(fd=%d, arg=%d) = 0", slave, TCOON);
	t_ok(sys(ioctl, slave, TCXONC, TCOON));
	expect("ioctl_tcflsh(fd=%d, arg=%d) = 0", slave, TCIOFLUSH);
	t_ok(sys(ioctl, slave, TCFLSH, TCIOFLUSH));
	expect("ioctl_tcflsh(fd=%d, arg=77) = -1 EINVAL", slave);
	t_fails(sys(ioctl, slave, TCFLSH, 77), EINVAL);
	expect("ioctl_tiocswinsz(fd=%d, arg={ws_row=24, ws_col=80, ws_xpixel=640, ws_ypixel=480}) = 0",
	       master);
	t_ok(sys(ioctl, master, TIOCSWINSZ, &w));
	memset(&w, 0, sizeof(w));
	expect("ioctl_tiocgwinsz(fd=%d, arg={ws_row=24, ws_col=80, ws_xpixel=640, ws_ypixel=480}) = 0",
	       slave);
	t_ok(sys(ioctl, slave, TIOCGWINSZ, &w));
	expect("ioctl_tiocgwinsz(fd=%d, arg=%s) = -1 ENOTTY", file, pointer(&w));
	t_fails(sys(ioctl, file, TIOCGWINSZ, &w), ENOTTY);
}

static void pair(void)
{
	int lock = 0;
	unsigned int n = 0;
	long fd;

	t_ok(sys(ioctl, master, TIOCGPTN, &n));
	expect("ioctl_tiocgptn(fd=%d, arg=[%u]) = 0", master, n);
	expect("ioctl_tiocsptlck(fd=%d, arg=[0]) = 0", master);
	t_ok(sys(ioctl, master, TIOCSPTLCK, &lock));
	fd = t_ok(sys(ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
	expect("ioctl_tiocgptpeer(fd=%d, arg=O_RDWR|O_NOCTTY|O_CLOEXEC) = %ld", master, fd);
	slave = (int)fd;
	expect("ioctl_tiocgptn(fd=%d, arg=%s) = -1 ENOTTY", slave, pointer(&n));
	t_fails(sys(ioctl, slave, TIOCGPTN, &n), ENOTTY);
}

/* A session of its own, with this terminal. */
static void session(void)
{
	pid_t self = getpid();
	int n = 0;

	(void)signal(SIGHUP, SIG_IGN);
	t_is(setsid(), self);
	t_begin();
	expect("ioctl_tiocsctty(fd=%d, arg=0) = 0", slave);
	t_ok(sys(ioctl, slave, TIOCSCTTY, 0));
	expect("ioctl_tiocgpgrp(fd=%d, arg=[%d]) = 0", slave, self);
	t_ok(sys(ioctl, slave, TIOCGPGRP, &n));
	expect("ioctl_tiocspgrp(fd=%d, arg=[%d]) = 0", slave, self);
	t_ok(sys(ioctl, slave, TIOCSPGRP, &n));
	expect("ioctl_tiocgsid(fd=%d, arg=[%d]) = 0", slave, self);
	t_ok(sys(ioctl, slave, TIOCGSID, &n));
	n = -1;
	expect("ioctl_tiocspgrp(fd=%d, arg=[-1]) = -1 EINVAL", slave);
	t_fails(sys(ioctl, slave, TIOCSPGRP, &n), EINVAL);
	t_end();
	/* Giving the terminal up, its leader is told by signals. */
	expect("ioctl_tiocnotty(fd=%d) = 0", slave);
	t_ok(sys(ioctl, slave, TIOCNOTTY));
	t_begin();
	expect("ioctl_tiocnotty(fd=%d) = -1 ENOTTY", slave);
	t_fails(sys(ioctl, slave, TIOCNOTTY), ENOTTY);
	t_end();
	_exit(0);
}

int main(void)
{
	int file, status = -1;
	pid_t pid;

	t_init();
	file = (int)t_ok(open("f", O_RDWR | O_CREAT, 0600));
	master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	if (master < 0) {
		t_skip("there are no terminals here: %s", strerror(errno));
		return 0;
	}
	t_begin();
	pair();
	settings(file);
	t_end();
	pid = (pid_t)t_ok(fork());
	if (!pid) {
		t_thread();
		session();
	}
	t_is(waitpid(pid, &status, 0), pid);
	t_is(status, 0);
	return 0;
}
