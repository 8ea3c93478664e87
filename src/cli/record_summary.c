/* SPDX-License-Identifier: MIT */
#include "cli/record_summary.h"

#include <string.h>
#include <sys/wait.h>

#include "base/json.h"
#include "model/vocab.h"

bool record_is_complete(const struct record_result *res)
{
	return !res->cut_short && !res->is_gone &&
	       res->nr_losses == res->nr_losses_by_kind[LOSS_FILTERED];
}

static void put_ledger(struct json *w, const struct record_result *res)
{
	unsigned int kind;

	json_key(w, "ledger");
	json_object_begin(w);
	for (kind = 0; kind < LOSS_KIND_MAX; kind++) {
		const char *name = vocab_name(SET_loss_kinds, kind);

		if (name || res->nr_losses_by_kind[kind])
			json_kv_u64(w, name ? name : "other", res->nr_losses_by_kind[kind]);
	}
	json_object_end(w);
}

static void put_number(struct json *w, const char *key, bool is_known, int n)
{
	json_key(w, key);
	if (is_known)
		json_i64(w, n);
	else
		json_null(w);
}

/* Of a process that was attached to, nobody but its parent knows how it ended. */
static void put_end(struct json *w, const struct record_options *o, const struct record_result *res)
{
	int status = res->wait_status;

	put_number(w, "exit_status", !o->attach_pid && WIFEXITED(status), WEXITSTATUS(status));
	put_number(w, "signal", !o->attach_pid && WIFSIGNALED(status), WTERMSIG(status));
}

void record_summary_json(FILE *out, const struct record_options *o, const struct record_result *res)
{
	struct json w;

	json_init_file(&w, out, JSON_PRETTY);
	json_object_begin(&w);
	json_kv_bytes(&w, "trace", o->output, strlen(o->output));
	json_kv_bool(&w, "complete", record_is_complete(res));
	json_kv_u64(&w, "events", res->nr_events);
	json_kv_u64(&w, "threads", res->nr_threads);
	json_kv_u64(&w, "bytes", res->file_bytes);
	json_kv_u64(&w, "elapsed_ns", res->elapsed_ns);
	json_key(&w, "slowdown");
	if (res->slowdown_percent)
		json_double(&w, (double)res->slowdown_percent / 100);
	else
		json_null(&w);
	put_end(&w, o, res);
	put_ledger(&w, res);
	json_kv_str(&w, "ended_early", res->cut_short ? res->why_cut.text : NULL);
	json_kv_bool(&w, "trace_gone", res->is_gone);
	json_kv_str(&w, "no_agent", *res->by_ptrace.text ? res->by_ptrace.text : NULL);
	json_object_end(&w);
	json_release(&w);
}
