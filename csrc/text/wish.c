/* SPDX-License-Identifier: Apache-2.0 */
/* No memory is taken here: wishes are read for every gang, long after create(). */
#include "text/wish.h"

#include "text/choice.h"
#include "text/duration.h"
#include "text/kubename.h"

#include <string.h>

#define PREFIX             "topology.scheduler/"
#define GPU_COUNT_MAX      (UINT64_C(1) << 31)
#define SEGMENT_MAX        UINT64_C(2147483647)
#define BANDWIDTH_GBPS_MAX UINT64_C(1000000) /* 1000Tb, beyond any link */
#define BANDWIDTH_DECIMALS 6u
#define MICRO              UINT64_C(1000000) /* 10 to the power of BANDWIDTH_DECIMALS */

struct value {
	const char *key; /* without the prefix */
	const char *text;
	uint32_t len;
	struct complaint *complaint;
};

typedef int32_t value_reader(const struct value *value, struct wish *wish);

static value_reader gpu_count_read, domain_read, bandwidth_read, latency_read, strategy_read, mode_read, wait_read,
	recovery_read, segment_size_read, segment_level_read, expected_read, pass_over;

enum { KEY_MODE = 5, KEY_WAIT };

static const struct {
	const char *key;
	value_reader *read;
} keys[] = {
	{"gpu-count", gpu_count_read},
	{"preferred-domain", domain_read},
	{"network-bandwidth", bandwidth_read},
	{"latency-sensitive", latency_read},
	{"placement-strategy", strategy_read},
	[KEY_MODE] = {"topology-mode", mode_read},
	[KEY_WAIT] = {"topology-wait", wait_read},
	{"recovery", recovery_read},
	{"segment-size", segment_size_read},
	{"segment-level", segment_level_read},
	{"expected-duration", expected_read},
	{"rank", pass_over},   /* written by Frond itself (reference 3.6) */
	{"domain", pass_over}, /* likewise */
};
enum { KEY_COUNT = sizeof(keys) / sizeof(keys[0]) };

static int32_t pair_read(const char *key, uint32_t key_len, const struct value *given, uint32_t *seen,
			 struct wish *wish);
static int32_t refuse(const struct value *value, const char *what);
static bool digits_read(const char *text, uint32_t len, uint32_t *at, uint64_t max, uint64_t *out);

int32_t wish_read(const struct frond_pair *pairs, uint32_t count, const char *in, uint32_t in_len,
		  const struct args *args, struct wish *out, struct complaint *complaint)
{
	struct wish wish = {.strategy = args->strategy,
			    .mode = args->mode,
			    .wait_ms = args->wait_ms,
			    .recovery = args->recovery,
			    .expected_ms = WAIT_FOREVER};
	const uint32_t prefix = (uint32_t)strlen(PREFIX);
	uint32_t seen = 0; /* bit per entry of keys */
	for (uint32_t i = 0; i < count; i++) {
		struct frond_span key = pairs[i].key, text = pairs[i].value;
		if (!span_inside(key, in_len) || !span_inside(text, in_len))
			return complain(complaint, 0, "annotation %u: lies outside the text that came with it", i);
		if (key.len < prefix || memcmp(in + key.off, PREFIX, prefix) != 0)
			continue;
		struct value value = {.text = in + text.off, .len = text.len, .complaint = complaint};
		int32_t code = pair_read(in + key.off + prefix, key.len - prefix, &value, &seen, &wish);
		if (code != FROND_OK)
			return code;
	}
	if (wish.segments.level != SEGMENT_DEFAULT && wish.segments.size == 0)
		return complain(complaint, 0,
				PREFIX "segment-level: is given without a segment-size; write for example " PREFIX
				       "segment-size: \"16\"");
	if (wish.mode == MODE_REQUIRED && (seen & 1u << KEY_MODE) != 0 && (seen & 1u << KEY_WAIT) == 0)
		wish.wait_ms = WAIT_FOREVER; /* reference 3.1: who writes Required means it */
	if (wish.latency_sensitive) {        /* reference 3.1: Required without end, whatever else is written */
		wish.mode = MODE_REQUIRED;
		wish.wait_ms = WAIT_FOREVER;
	}
	*out = wish;
	return FROND_OK;
}

static int32_t pair_read(const char *key, uint32_t key_len, const struct value *given, uint32_t *seen,
			 struct wish *wish)
{
	uint32_t i = 0;
	while (i < KEY_COUNT && (strlen(keys[i].key) != key_len || memcmp(keys[i].key, key, key_len) != 0))
		i++;
	if (i == KEY_COUNT)
		return complain(given->complaint, 0,
				PREFIX
				"%s: is not a known key; known are gpu-count, preferred-domain, network-bandwidth, "
				"latency-sensitive, placement-strategy, topology-mode, topology-wait, recovery, "
				"segment-size, segment-level, expected-duration",
				shown(key, key_len).text);
	if ((*seen & 1u << i) != 0)
		return complain(given->complaint, 0, PREFIX "%s: is written twice", keys[i].key);
	*seen |= 1u << i;
	if (given->len > FROND_VALUE_MAX)
		return complain(given->complaint, 0, PREFIX "%s: is %u bytes long; at most %u are read", keys[i].key,
				given->len, FROND_VALUE_MAX);
	struct value value = *given;
	value.key = keys[i].key;
	return keys[i].read(&value, wish);
}

static int32_t refuse(const struct value *value, const char *what)
{
	return complain(value->complaint, 0, PREFIX "%s: \"%s\" is not %s", value->key,
			shown(value->text, value->len).text, what);
}

static int32_t gpu_count_read(const struct value *value, struct wish *wish)
{
	uint32_t at = 0;
	uint64_t number;
	if (!digits_read(value->text, value->len, &at, GPU_COUNT_MAX, &number) || at != value->len || number == 0)
		return refuse(value, "a number of GPUs from 1 to 2147483648; write for example \"16\"");
	wish->gpu_count = number;
	return FROND_OK;
}

static int32_t domain_read(const struct value *value, struct wish *wish)
{
	if (!is_domain_name(value->text, value->len))
		return refuse(value, "the name of a domain; write for example \"leaf-1\" or \"spine-1\"");
	memcpy(wish->preferred_domain, value->text, value->len);
	wish->preferred_domain[value->len] = '\0';
	return FROND_OK;
}

/* DIGITS[.DIGITS](Mb|Gb|Tb), in whole gigabit/s, rounded up so that the floor holds. */
static int32_t bandwidth_read(const struct value *value, struct wish *wish)
{
	static const char what[] = "a bandwidth of at most 1000Tb; write for example \"100Gb\", \"1.6Tb\" or \"500Mb\"";
	static const struct {
		char letter;
		uint64_t mbps;
	} units[] = {{'M', 1}, {'G', 1000}, {'T', 1000000}};

	uint32_t at = 0;
	uint64_t whole, fraction = 0;
	if (!digits_read(value->text, value->len, &at, BANDWIDTH_GBPS_MAX * 1000, &whole))
		return refuse(value, what);
	if (at < value->len && value->text[at] == '.') {
		uint64_t scale = MICRO;
		uint32_t start = ++at;
		for (; at < value->len && value->text[at] >= '0' && value->text[at] <= '9'; at++) {
			if (at - start == BANDWIDTH_DECIMALS)
				return refuse(value, what);
			scale /= 10;
			fraction += (uint64_t)(value->text[at] - '0') * scale;
		}
		if (at == start)
			return refuse(value, what);
	}
	if (value->len - at != 2 || value->text[at + 1] != 'b')
		return refuse(value, what);

	for (uint32_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (units[i].letter != value->text[at])
			continue;
		if (whole > BANDWIDTH_GBPS_MAX * 1000 / units[i].mbps)
			return refuse(value, what);
		uint64_t micro_mbps = (whole * MICRO + fraction) * units[i].mbps;
		uint64_t gbps = (micro_mbps + MICRO * 1000 - 1) / (MICRO * 1000);
		if (gbps == 0 || gbps > BANDWIDTH_GBPS_MAX)
			return refuse(value, what);
		wish->bandwidth_gbps = (uint32_t)gbps;
		return FROND_OK;
	}
	return refuse(value, what);
}

static int32_t latency_read(const struct value *value, struct wish *wish)
{
	static const struct choice words = {2, {"false", "true"}};
	uint32_t found = choice_find(&words, value->text, value->len);
	if (found == FROND_NONE)
		return refuse(value, "true or false; write for example \"true\"");
	wish->latency_sensitive = found == 1;
	return FROND_OK;
}

static int32_t strategy_read(const struct value *value, struct wish *wish)
{
	uint32_t found = choice_find(&choice_strategy, value->text, value->len);
	if (found == FROND_NONE)
		return refuse(value, "a strategy; write \"consolidated\", \"distributed\" or \"balanced\"");
	wish->strategy = (enum strategy)found;
	return FROND_OK;
}

static int32_t mode_read(const struct value *value, struct wish *wish)
{
	uint32_t found = choice_find(&choice_mode, value->text, value->len);
	if (found == FROND_NONE)
		return refuse(value, "a mode; write \"Required\", \"Preferred\" or \"Ignore\"");
	wish->mode = (enum mode)found;
	return FROND_OK;
}

static int32_t wait_read(const struct value *value, struct wish *wish)
{
	const char *what = duration_read(value->text, value->len, &wish->wait_ms);
	return what == NULL ? FROND_OK : refuse(value, what);
}

static int32_t recovery_read(const struct value *value, struct wish *wish)
{
	uint32_t found = choice_find(&choice_recovery, value->text, value->len);
	if (found == FROND_NONE)
		return refuse(value, "a recovery policy; write \"Replace\", \"MoveGang\" or \"Wait\"");
	wish->recovery = (enum recovery)found;
	return FROND_OK;
}

/* A gang has FROND_MEMBERS_MAX members at most: a larger segment is the whole gang, as one of that size is. */
static int32_t segment_size_read(const struct value *value, struct wish *wish)
{
	uint32_t at = 0;
	uint64_t number;
	if (!digits_read(value->text, value->len, &at, SEGMENT_MAX, &number) || at != value->len || number == 0)
		return refuse(value, "a number of ranks from 1 to 2147483647; write for example \"16\"");
	wish->segments.size = (uint16_t)(number < FROND_MEMBERS_MAX ? number : FROND_MEMBERS_MAX);
	return FROND_OK;
}

static int32_t segment_level_read(const struct value *value, struct wish *wish)
{
	static const struct choice words = {2, {"nvlink", "leaf"}};
	uint32_t found = choice_find(&words, value->text, value->len);
	if (found == FROND_NONE)
		return refuse(value, "a level; write \"nvlink\" or \"leaf\"");
	wish->segments.level = found == 0 ? SEGMENT_NVLINK : SEGMENT_LEAF;
	return FROND_OK;
}

static int32_t expected_read(const struct value *value, struct wish *wish)
{
	if (duration_read(value->text, value->len, &wish->expected_ms) != NULL || wish->expected_ms == WAIT_FOREVER ||
	    wish->expected_ms == 0)
		return refuse(value, "how long a member runs; write for example \"2h\" or \"1h30m\"");
	return FROND_OK;
}

static int32_t pass_over(const struct value *value, struct wish *wish)
{
	(void)value;
	(void)wish;
	return FROND_OK;
}

/* Digits from *at on, at most max; no digits, a leading zero or more than max: false. */
static bool digits_read(const char *text, uint32_t len, uint32_t *at, uint64_t max, uint64_t *out)
{
	uint32_t start = *at;
	uint64_t number = 0;
	for (; *at < len && text[*at] >= '0' && text[*at] <= '9'; ++*at) {
		number = number * 10 + (uint64_t)(text[*at] - '0');
		if (number > max)
			return false;
	}
	if (*at == start || (text[start] == '0' && *at - start > 1))
		return false;
	*out = number;
	return true;
}
