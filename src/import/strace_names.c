/* SPDX-License-Identifier: MIT */
#include "import/strace_names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"
#include "base/mem.h"
#include "model/print.h"
#include "model/vocab.h"

/* The vocabulary of all words. */
#define SET_ANY SET_MAX

struct word {
	const char *text;
	size_t len;
	unsigned int set;
	bool disputed; /* of SET_ANY: vocabularies disagree */
	uint64_t value;
};

struct strace_names {
	struct word *words;
	struct strace_call_name *calls;
	uint32_t word_mask, call_mask; /* of the two tables, whose sizes are powers of two */
};

/* Names that strace uses, or used, for calls that the table calls otherwise. */
static const struct {
	const char *strace, *row;
} aliases[] = {
	{ "pread", "pread64" },		 { "pwrite", "pwrite64" },
	{ "umount", "umount2" },	 { "stat64", "stat" },
	{ "lstat64", "lstat" },		 { "fstat64", "fstat" },
	{ "fstatat64", "newfstatat" },	 { "fcntl64", "fcntl" },
	{ "truncate64", "truncate" },	 { "ftruncate64", "ftruncate" },
	{ "sendfile64", "sendfile" },	 { "mmap2", "mmap" },
	{ "old_mmap", "mmap" },		 { "_newselect", "select" },
	{ "sigreturn", "rt_sigreturn" }, { "fadvise64_64", "fadvise64" },
	{ "getuid32", "getuid" },	 { "getgid32", "getgid" },
	{ "geteuid32", "geteuid" },	 { "getegid32", "getegid" },
	{ "ugetrlimit", "getrlimit" },
};

/* Words that no vocabulary has. */
static const struct {
	const char *text;
	uint64_t value;
} more_words[] = {
	{ "NULL", 0 },
	{ "AT_FDCWD", (uint64_t)(int64_t)DIRFD_CWD },
	{ "SIG_DFL", 0 },
	{ "SIG_IGN", 1 },
	{ "SIG_ERR", UINT64_MAX },
	{ "RLIM_INFINITY", UINT64_MAX },
	{ "RLIM64_INFINITY", UINT64_MAX },
	{ "S_ISUID", S_ISUID },
	{ "S_ISGID", S_ISGID },
	{ "S_ISVTX", S_ISVTX },
	{ "UTIME_NOW", UTIME_NOW },
	{ "UTIME_OMIT", UTIME_OMIT },
	{ "SI_USER", 0 },
	{ "SI_KERNEL", 0x80 },
	{ "SI_QUEUE", (uint64_t)-1 },
	{ "SI_TIMER", (uint64_t)-2 },
	{ "SI_MESGQ", (uint64_t)-3 },
	{ "SI_ASYNCIO", (uint64_t)-4 },
	{ "SI_SIGIO", (uint64_t)-5 },
	{ "SI_TKILL", (uint64_t)-6 },
	{ "CLD_EXITED", 1 },
	{ "CLD_KILLED", 2 },
	{ "CLD_DUMPED", 3 },
	{ "CLD_TRAPPED", 4 },
	{ "CLD_STOPPED", 5 },
	{ "CLD_CONTINUED", 6 },
	{ "SEGV_MAPERR", 1 },
	{ "SEGV_ACCERR", 2 },
	{ "BUS_ADRALN", 1 },
	{ "BUS_ADRERR", 2 },
	{ "BUS_OBJERR", 3 },
	{ "FPE_INTDIV", 1 },
	{ "ILL_ILLOPC", 1 },
	{ "ILL_ILLOPN", 2 },
	{ "POLL_IN", 1 },
	{ "SCM_RIGHTS", 1 },
	{ "SCM_CREDENTIALS", 2 },
	{ "SO_DEBUG", 1 },
	{ "SO_REUSEADDR", 2 },
	{ "SO_TYPE", 3 },
	{ "SO_ERROR", 4 },
	{ "SO_DONTROUTE", 5 },
	{ "SO_BROADCAST", 6 },
	{ "SO_SNDBUF", 7 },
	{ "SO_RCVBUF", 8 },
	{ "SO_KEEPALIVE", 9 },
	{ "SO_OOBINLINE", 10 },
	{ "SO_LINGER", 13 },
	{ "SO_REUSEPORT", 15 },
	{ "SO_PASSCRED", 16 },
	{ "SO_PEERCRED", 17 },
	{ "SO_RCVLOWAT", 18 },
	{ "SO_RCVTIMEO", 20 },
	{ "SO_RCVTIMEO_OLD", 20 },
	{ "SO_SNDTIMEO", 21 },
	{ "SO_SNDTIMEO_OLD", 21 },
	{ "SO_ACCEPTCONN", 30 },
	{ "SO_SNDBUFFORCE", 32 },
	{ "SO_RCVBUFFORCE", 33 },
	{ "SO_PROTOCOL", 38 },
	{ "SO_DOMAIN", 39 },
	{ "TCP_NODELAY", 1 },
	{ "TCP_MAXSEG", 2 },
	{ "TCP_CORK", 3 },
	{ "TCP_KEEPIDLE", 4 },
	{ "TCP_KEEPINTVL", 5 },
	{ "TCP_KEEPCNT", 6 },
	{ "TCP_DEFER_ACCEPT", 9 },
	{ "TCP_INFO", 11 },
	{ "TCP_QUICKACK", 12 },
	{ "IPV6_V6ONLY", 26 },
	{ "IP_TOS", 1 },
	{ "IP_RECVERR", 11 },
	{ "NETLINK_ROUTE", 0 },
	{ "SOL_IP", 0 },
	{ "SOL_TCP", 6 },
	{ "SOL_UDP", 17 },
};

static uint64_t hash_word(const char *text, size_t len, unsigned int set)
{
	uint64_t h = (len + 1) * UINT64_C(0x9e3779b97f4a7c15) + set;

	for (; len >= 8; text += 8, len -= 8) {
		uint64_t w;

		memcpy(&w, text, 8);
		h = (h ^ w) * UINT64_C(0xff51afd7ed558ccd);
		h ^= h >> 32;
	}
	if (len) {
		uint64_t w = 0;
		size_t i;

		for (i = 0; i < len; i++)
			w = w << 8 | (uint8_t)text[i];
		h = (h ^ w) * UINT64_C(0xff51afd7ed558ccd);
	}
	return h ^ h >> 29;
}

static struct word *find_word(const struct strace_names *n, unsigned int set, const char *text,
			      size_t len)
{
	uint32_t i = (uint32_t)hash_word(text, len, set) & n->word_mask;

	while (n->words[i].text && (n->words[i].set != set || n->words[i].len != len ||
				    memcmp(n->words[i].text, text, len) != 0))
		i = (i + 1) & n->word_mask;
	return &n->words[i];
}

static void add_word(struct strace_names *n, unsigned int set, const char *text, uint64_t value)
{
	struct word *w = find_word(n, set, text, strlen(text));

	if (w->text) {
		w->disputed |= w->value != value;
		return;
	}
	*w = (struct word){ .text = text, .len = strlen(text), .set = set, .value = value };
}

static void add_words(struct strace_names *n)
{
	unsigned int set;
	size_t i;

	for (i = 0; i < ARRAY_LEN(more_words); i++)
		add_word(n, SET_ANY, more_words[i].text, more_words[i].value);
	for (i = 0; i < NR_MODE_TYPES; i++)
		add_word(n, SET_ANY, mode_types[i].name, mode_types[i].mode);
	for (set = SET_none + 1; set < SET_MAX; set++) {
		for (i = 0; i < set_descs[set].nr_entries; i++) {
			const struct set_entry *e = &set_descs[set].entries[i];

			add_word(n, set, e->name, e->value);
			add_word(n, SET_ANY, e->name, e->value);
		}
	}
}

static struct strace_call_name *find_call(const struct strace_names *n, const char *text,
					  size_t len)
{
	uint32_t i = (uint32_t)hash_word(text, len, 0) & n->call_mask;

	while (n->calls[i].name &&
	       (n->calls[i].len != len || memcmp(n->calls[i].name, text, len) != 0))
		i = (i + 1) & n->call_mask;
	return &n->calls[i];
}

static void add_call(struct strace_names *n, const char *name, const struct row *row)
{
	struct strace_call_name *c = find_call(n, name, strlen(name));

	if (!c->name)
		*c = (struct strace_call_name){ name, strlen(name), row, -1 };
}

static void add_calls(struct strace_names *n)
{
	unsigned int id;
	size_t i;

	for (id = 1; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);

		if (row && row->sort == ROW_CALL && !(row->class & A_MAC) && !row_variant_of(row))
			add_call(n, row->name, row);
	}
	for (id = 1; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);
		const struct row_variant *v = row ? row_variant_of(row) : NULL;
		const char *base = v ? row_by_id(v->base)->name : NULL;

		if (base)
			find_call(n, base, strlen(base))->selector = v->reg;
	}
	for (i = 0; i < ARRAY_LEN(aliases); i++) {
		const struct strace_call_name *c =
			find_call(n, aliases[i].row, strlen(aliases[i].row));
		int selector = c->selector;

		if (!c->name)
			continue;
		add_call(n, aliases[i].strace, c->row);
		find_call(n, aliases[i].strace, strlen(aliases[i].strace))->selector = selector;
	}
}

/* A power of two with room to spare. */
static uint32_t table_size(size_t nr)
{
	uint32_t size = 1;

	while (size < nr * 3)
		size *= 2;
	return size;
}

struct strace_names *strace_names_new(void)
{
	struct strace_names *n = xcalloc(1, sizeof(*n));
	size_t nr_words = ARRAY_LEN(more_words) + NR_MODE_TYPES;
	uint32_t size;
	unsigned int set;

	for (set = SET_none + 1; set < SET_MAX; set++)
		nr_words += 2 * set_descs[set].nr_entries;
	size = table_size(nr_words);
	n->words = xcalloc(size, sizeof(*n->words));
	n->word_mask = size - 1;
	size = table_size(ROW_ID_MAX / 4);
	n->calls = xcalloc(size, sizeof(*n->calls));
	n->call_mask = size - 1;
	add_words(n);
	add_calls(n);
	return n;
}

void strace_names_free(struct strace_names *n)
{
	if (!n)
		return;
	free(n->words);
	free(n->calls);
	free(n);
}

const struct strace_call_name *strace_names_call(const struct strace_names *n, const char *word,
						 size_t len)
{
	const struct strace_call_name *c = find_call(n, word, len);

	return c->name ? c : NULL;
}

bool strace_names_word(const struct strace_names *n, enum set_id set, const char *word, size_t len,
		       uint64_t *ret)
{
	const struct word *w = set ? find_word(n, set, word, len) : NULL;

	if (!w || !w->text)
		w = find_word(n, SET_ANY, word, len);
	if (!w->text || w->disputed)
		return false;
	*ret = w->value;
	return true;
}
