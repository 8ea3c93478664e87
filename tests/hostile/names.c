/* SPDX-License-Identifier: MIT */
/* Programs that name files without the right to read them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"

static int flags_of(const char *word)
{
	static const struct {
		const char *word;
		int flags;
	} known[] = {
		{ "read", O_RDONLY },
		{ "write", O_WRONLY | O_TRUNC },
		{ "both", O_RDWR | O_TRUNC },
		{ "path", O_PATH },
		{ "nonblock", O_RDONLY | O_NONBLOCK },
	};
	unsigned int i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strcmp(word, known[i].word))
			return known[i].flags;
	}
	errno = EINVAL;
	give_up("%s", word);
}

/* open HOW NAME...: prints "ok" or an error for each. */
int mode_open(int argc, char **argv)
{
	char data[256];
	struct stat st;
	int i, fd;

	for (i = 1; i < argc; i++) {
		fd = open(argv[i], flags_of(argv[0]) | O_CLOEXEC, 0600);
		puts(fd < 0 ? strerrorname_np(errno) : "ok");
		(void)stat(argv[i], &st);
		if (fd < 0)
			continue;
		(void)!read(fd, data, sizeof(data));
		(void)close(fd);
	}
	return 0;
}

/* move rename|link|symlink FROM TO */
int mode_move(int argc, char **argv)
{
	int r = -1;

	if (argc < 3)
		return BROKEN;
	if (!strcmp(argv[0], "rename"))
		r = rename(argv[1], argv[2]);
	else if (!strcmp(argv[0], "link"))
		r = link(argv[1], argv[2]);
	else if (!strcmp(argv[0], "symlink"))
		r = symlink(argv[1], argv[2]);
	puts(r < 0 ? strerrorname_np(errno) : "ok");
	return 0;
}

/* swap MS NAME A B: opens NAME for MS milliseconds while a child exchanges A and B. */
int mode_swap(int argc, char **argv)
{
	uint64_t end = now_ms() + (argc > 3 ? strtoul(argv[0], NULL, 10) : 0);
	struct stat st;
	pid_t pid;
	int fd;

	if (argc < 4)
		return BROKEN;
	pid = fork();
	while (!pid)
		must(syscall(SYS_renameat2, AT_FDCWD, argv[2], AT_FDCWD, argv[3],
			     2 /* RENAME_EXCHANGE */),
		     "renameat2");
	while (now_ms() < end) {
		fd = open(argv[1], O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			(void)close(fd);
		(void)stat(argv[1], &st);
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return 0;
}

/* confined HOW NAME...: like `open`, but Landlock allows only system files. */
int mode_confined(int argc, char **argv)
{
	static const char *const allowed[] = { "/usr", "/lib", "/lib64", "/etc", "/proc" };
	struct landlock_ruleset_attr rules = { .handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE |
								    LANDLOCK_ACCESS_FS_WRITE_FILE };
	struct landlock_path_beneath_attr rule = { .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE };
	long fd = syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
	unsigned int i;

	if (fd < 0)
		return NOT_HERE;
	for (i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		rule.parent_fd = open(allowed[i], O_PATH | O_CLOEXEC);
		if (rule.parent_fd >= 0)
			(void)syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &rule,
				      0);
	}
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl");
	must(syscall(SYS_landlock_restrict_self, fd, 0), "landlock_restrict_self");
	return mode_open(argc, argv);
}
