/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pace.h"

/* 0 … below-1; splitmix64. */
static int64_t rolled(struct pace *pace, int64_t below)
{
	uint64_t x = pace->dice += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	x ^= x >> 31;
	return below <= 0 ? 0 : (int64_t)(x % (uint64_t)below);
}

void pace_start(struct pace *pace, int64_t period_ms, uint64_t seed, int64_t now_ms)
{
	*pace = (struct pace){.period_ms = period_ms,
			      .dice = seed,
			      .due_ms = now_ms,
			      .not_before_ms = now_ms,
			      .never_before_ms = now_ms};
}

int64_t pace_wait_ms(const struct pace *pace, enum pace_news news, int64_t now_ms)
{
	int64_t at = news == PACE_NO_NEWS ? pace->due_ms : news == PACE_NEWS ? pace->not_before_ms : now_ms;
	at = at < pace->never_before_ms ? pace->never_before_ms : at;
	return at > now_ms ? at - now_ms : 0;
}

void pace_wrote(struct pace *pace, int64_t now_ms)
{
	pace->failures = 0;
	pace->spent_ms = (pace->spent_ms > now_ms ? pace->spent_ms : now_ms) + PACE_GAP_MS;
	if (pace->spent_ms > now_ms + PACE_BURST * PACE_GAP_MS) /* bad news came out of turn; that is over now */
		pace->spent_ms = now_ms + PACE_BURST * PACE_GAP_MS;
	pace->not_before_ms = pace->spent_ms - (PACE_BURST - 1) * PACE_GAP_MS;
	pace->never_before_ms = now_ms + PACE_LEAST_MS;
	/* Earlier, never later: whoever waits for a heartbeat counts on the time that was promised. */
	pace->due_ms = now_ms + pace->period_ms - rolled(pace, pace->period_ms / 10);
}

void pace_answered(struct pace *pace)
{
	pace->failures = 0;
}

void pace_failed(struct pace *pace, int64_t retry_after_s, int64_t now_ms)
{
	int64_t wait = PACE_BACKOFF_MAX;
	if (pace->failures < 5)
		wait = PACE_BACKOFF_MS << pace->failures;
	if (pace->failures < UINT32_MAX)
		pace->failures++;
	wait = wait / 2 + rolled(pace, wait / 2 + 1);
	if (retry_after_s > PACE_OBEYED_MAX_S)
		retry_after_s = PACE_OBEYED_MAX_S;
	if (wait < retry_after_s * 1000)
		wait = retry_after_s * 1000 + rolled(pace, 1000);
	pace->never_before_ms = now_ms + wait;
}

bool pace_refused(struct pace *pace, bool refused, int64_t now_ms)
{
	if (!pace->refused)
		pace->refused_ms = now_ms;
	pace->refused = refused;
	return refused && now_ms - pace->refused_ms >= PACE_REFUSAL_MS;
}
