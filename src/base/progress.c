/* SPDX-License-Identifier: MIT */
#include "base/progress.h"

#include "base/banned.h"
#include "base/clock.h"
#include "base/strings.h"

#define FIRST_DRAW_NS NS_PER_S
#define DRAW_EVERY_NS (100 * NS_PER_MS)
/*
 * The clock is read about this often: well within the time between two draws.
 */
#define CHECK_EVERY_NS (20 * NS_PER_MS)
#define INTERVAL_MAX (1u << 20)

void progress_begin(struct progress *p, const struct progress_sink *sink, const char *label,
		    const char *unit)
{
	uint64_t now = sink->now_ns(sink->arg);

	*p = (struct progress){
		.sink = sink,
		.label = label,
		.unit = unit,
		.start_ns = now,
		.last_check_ns = now,
		.next_draw_ns = now + FIRST_DRAW_NS,
		.countdown = 1,
		.interval = 1,
	};
}

static void put_amount(struct progress *p, uint64_t n)
{
	if (p->unit)
		strings_put_count(&p->line, n);
	else
		strings_put_bytes(&p->line, n);
}

static void format_line(struct progress *p, uint64_t elapsed_ns)
{
	double elapsed_s = (double)elapsed_ns / (double)NS_PER_S;
	double rate = elapsed_s > 0 ? (double)p->done / elapsed_s : 0;

	buf_clear(&p->line);
	buf_printf(&p->line, "%s: ", p->label);
	put_amount(p, p->done);
	/* A total that was guessed too low is not worth showing. */
	if (p->total >= p->done && p->total > 0) {
		buf_putc(&p->line, '/');
		put_amount(p, p->total);
	}
	if (p->unit)
		buf_printf(&p->line, " %s", p->unit);
	buf_puts(&p->line, ", ");
	put_amount(p, (uint64_t)rate);
	buf_puts(&p->line, "/s");
	if (p->total > p->done && rate > 0) {
		double left_s = (double)(p->total - p->done) / rate;

		buf_puts(&p->line, ", ");
		/*
		 * Beyond that it is no estimate; and the conversion must not
		 * overflow.
		 */
		if (left_s < 1e6)
			strings_put_duration(&p->line, (uint64_t)(left_s * 1e9));
		else
			buf_puts(&p->line, "days");
		buf_puts(&p->line, " left");
	}
}

/*
 * Replaces what is on the terminal line by p->line. The cursor stays off the
 * last column, where some terminals would wrap.
 */
static void draw(struct progress *p)
{
	size_t room = p->sink->columns > 1 ? p->sink->columns - 1 : 79;
	size_t text_columns;

	if (p->line.len > room)
		p->line.len = room;
	text_columns = p->line.len;
	while (p->line.len < p->drawn_columns)
		buf_putc(&p->line, ' ');
	buf_putc(&p->line, '\r');
	p->drawn_columns = (unsigned int)text_columns;
	p->sink->write(p->sink->arg, p->line.data, p->line.len);
}

void progress_check(struct progress *p)
{
	uint64_t now, since_check;

	p->countdown = p->interval;
	if (!p->sink)
		return;
	now = p->sink->now_ns(p->sink->arg);
	since_check = clock_sub_ns(now, p->last_check_ns);
	p->last_check_ns = now;
	if (since_check < CHECK_EVERY_NS / 2 && p->interval < INTERVAL_MAX)
		p->interval *= 2;
	else if (since_check > CHECK_EVERY_NS)
		/*
		 * Straight to where it should be: a task that slows down must
		 * not leave the line standing.
		 */
		p->interval = (uint32_t)(p->interval * CHECK_EVERY_NS / since_check) + 1;
	p->countdown = p->interval;
	if (now < p->next_draw_ns)
		return;
	format_line(p, now - p->start_ns);
	draw(p);
	p->next_draw_ns = now + DRAW_EVERY_NS;
}

void progress_end(struct progress *p)
{
	if (!p || !p->sink)
		return;
	if (p->drawn_columns) {
		buf_clear(&p->line);
		draw(p);
	}
	buf_release(&p->line);
	p->sink = NULL;
}
