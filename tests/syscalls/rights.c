/* SPDX-License-Identifier: MIT */
/* Landlock, security modules, keys: what a kernel without them refuses is recorded too. */
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

static void landlock(int dir)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE |
								   LANDLOCK_ACCESS_FS_MAKE_BLOCK };
	struct landlock_path_beneath_attr rule = { .allowed_access = LANDLOCK_ACCESS_FS_EXECUTE,
						   .parent_fd = dir };
	long fd, r;

	r = sys(landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	expect("landlock_create_ruleset(attr=NULL, size=0, flags=LANDLOCK_CREATE_RULESET_VERSION) = %s",
	       outcome(r));
	/* The first version of the struct has one field. */
	fd = sys(landlock_create_ruleset, &attr, 8, 0);
	expect("landlock_create_ruleset(attr={handled_access_fs=LANDLOCK_ACCESS_FS_EXECUTE|LANDLOCK_ACCESS_FS_MAKE_BLOCK, handled_access_net=?, scoped=?}, size=8, flags=0) = %s",
	       outcome(fd));
	r = sys(landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	expect("landlock_add_rule(ruleset_fd=%ld, rule_type=LANDLOCK_RULE_PATH_BENEATH, rule_attr={allowed_access=LANDLOCK_ACCESS_FS_EXECUTE, parent_fd=%d}, flags=0) = %s",
	       fd, dir, outcome(r));
	r = sys(landlock_restrict_self, fd, 0);
	expect("landlock_restrict_self(ruleset_fd=%ld, flags=0) = %s", fd, outcome(r));
	r = sys(landlock_add_rule, -1, 9, NULL, 1);
	expect("landlock_add_rule(ruleset_fd=-1, rule_type=9, rule_attr=NULL, flags=1) = %s",
	       outcome(r));
}

static void in_child(int dir)
{
	int status;
	pid_t pid = (pid_t)t_ok(fork());

	if (!pid) {
		t_thread();
		t_ok(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
		t_begin();
		landlock(dir);
		t_end();
		_exit(0);
	}
	t_is(waitpid(pid, &status, 0), pid);
	t_is(status, 0);
}

static void modules(void)
{
	uint64_t ids[16] = { 0 };
	uint32_t size = sizeof(ids);
	char *s = text("%s", ""), buf[100] = "";
	long r, i;

	r = sys(lsm_list_modules, ids, &size, 0);
	for (i = 0; i < r; i++)
		s = text("%s%s%lu", s, i ? ", " : "", ids[i]);
	expect("lsm_list_modules(ids=%s, size=[128], flags=0, size_after=*) = %s",
	       r < 0 ? pointer(ids) : text("[%s]", s), outcome(r));
	size = sizeof(buf);
	r = sys(lsm_get_self_attr, 100, buf, &size, 0);
	expect("lsm_get_self_attr(attr=LSM_ATTR_CURRENT, ctx=%s, size=[100], flags=0, size_after=*) = %s",
	       addr(buf), outcome(r));
	r = sys(lsm_set_self_attr, 101, "context", 7, 0);
	expect("lsm_set_self_attr(attr=LSM_ATTR_EXEC, ctx=\"context\", size=7, flags=0) = %s",
	       outcome(r));
}

static void keys(void)
{
	long key, r;

	key = sys(add_key, "user", "reprise test", "payload", 7, KEY_SPEC_PROCESS_KEYRING);
	expect("add_key(type=\"user\", description=\"reprise test\", payload=\"payload\", plen=7, keyring=-2) = %s",
	       outcome(key));
	r = sys(request_key, "user", "reprise test", NULL, 0);
	expect("request_key(type=\"user\", description=\"reprise test\", callout_info=NULL, dest_keyring=0) = %s",
	       outcome(r));
	r = sys(keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 0);
	expect("keyctl(operation=0, arg2=%s, arg3=0, arg4=0, arg5=0) = %s",
	       hex((unsigned long)KEY_SPEC_PROCESS_KEYRING), outcome(r));
	r = sys(add_key, "no such type", "x", NULL, 0, 0);
	expect("add_key(type=\"no such type\", description=\"x\", payload=NULL, plen=0, keyring=0) = %s",
	       outcome(r));
}

int main(void)
{
	int dir;

	t_init();
	dir = (int)t_ok(open(".", O_PATH));
	t_begin();
	modules();
	keys();
	t_end();
	in_child(dir);
	return 0;
}
