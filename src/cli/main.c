/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/log.h"
#include "cli/cli.h"

/*
 * A program may be started with standard descriptors closed. The next file
 * opened would get such a number, and messages would be written into it. Fill
 * the gaps with something that fails in the direction in which it is used.
 */
static int fill_standard_fds(void)
{
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/*
		 * Inherited by children, as standard descriptors are: no
		 * O_CLOEXEC.
		 */
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return -EBADF;
	}
	return 0;
}

static int print_page(const struct cli *cli, const struct command *cmd)
{
	struct buf page = { 0 };

	if (cmd == &command_program)
		help_put_overview(&page);
	else
		help_put_command(cmd, &page);
	(void)!fwrite(page.data, 1, page.len, cli->out); /* cli_close() checks */
	buf_release(&page);
	return CLI_DONE;
}

/* Parses the command's own words and runs it. */
static int run_command(struct cli *cli, int argc, char **argv)
{
	const struct command *cmd = cli->command;
	void *options = options_new(cmd);
	struct err err = { 0 };
	int r, status;

	r = options_parse(cmd, argc, argv, options, &err);
	if (r == -ECANCELED)
		status = print_page(cli, cmd);
	else if (r < 0)
		status = cli_fail(cli, &err);
	else
		status = cmd->run(cli, options, r, argv);
	options_free(cmd, options);
	return status;
}

static int run_without_command(void)
{
	struct buf page = { 0 };

	/*
	 * Asked for nothing: in a script that is a mistake, so it is no
	 * success.
	 */
	help_put_overview(&page);
	(void)!fwrite(page.data, 1, page.len, stderr);
	buf_release(&page);
	return CLI_FAILED;
}

static int run_program(struct cli *cli, int argc, char **argv)
{
	struct program_options options = { 0 };
	struct err err = { 0 };
	int r;

	r = log_set_areas(getenv("REPRISE_DEBUG"), &err);
	if (r < 0) {
		(void)err_wrap(&err, r, "REPRISE_DEBUG");
		return cli_fail(cli, &err);
	}
	r = options_parse(&command_program, argc, argv, &options, &err);
	if (r == -ECANCELED)
		return print_page(cli, &command_program);
	if (r < 0)
		return cli_fail(cli, &err);
	if (options.version) {
		fprintf(cli->out, CLI_PROGRAM " " REPRISE_VERSION "\n");
		return CLI_DONE;
	}
	if (r == 0)
		return run_without_command();
	if (cli_find_command(argv[0], &cli->command, &err) < 0)
		return cli_fail(cli, &err);
	return run_command(cli, r - 1, argv + 1);
}

int main(int argc, char **argv)
{
	struct cli cli;
	int status;

	if (fill_standard_fds() < 0)
		return CLI_FAILED;
	cli_open(&cli);
	status = run_program(&cli, argc > 0 ? argc - 1 : 0, argv + 1);
	return cli_close(&cli, status);
}
