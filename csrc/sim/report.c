/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report.h"

#include "text/json.h"

#include <inttypes.h>
#include <stdlib.h>

static void placed_json(const struct report *report, const struct answer_placed *answer);
static void placed_text(const struct report *report, const struct answer_placed *answer);
static void member_json(const struct report *report, uint32_t rank, const struct frond_place *place);
static void spread_sort(const struct report *report, const struct answer_placed *answer);
static void string_json(FILE *stream, const char *text);
static const char *rule_name(uint32_t rule);
static const char *spine_of(const struct report *report, uint32_t leaf);

void report_begin(struct report *report)
{
	if (report->format == FORMAT_JSON)
		fputs("{\"jobs\": [", report->stream);
}

void report_placed(struct report *report, const struct answer_placed *answer)
{
	if (report->format == FORMAT_JSON) {
		fputs(report->answers == 0 ? "\n" : ",\n", report->stream);
		placed_json(report, answer);
	} else {
		placed_text(report, answer);
	}
	report->answers++;
}

void report_refused(struct report *report, const char *name, const char *reason)
{
	if (report->format == FORMAT_JSON) {
		fputs(report->answers == 0 ? "\n {\"name\": " : ",\n {\"name\": ", report->stream);
		string_json(report->stream, name);
		fputs(", \"placed\": false, \"reason\": ", report->stream);
		string_json(report->stream, reason);
		fputs("}", report->stream);
	} else {
		fprintf(report->stream, "%s: not placed: %s\n", name, reason);
	}
	report->answers++;
}

void report_end(struct report *report)
{
	if (report->format == FORMAT_JSON)
		fputs("\n]}\n", report->stream);
}

static void placed_json(const struct report *report, const struct answer_placed *answer)
{
	FILE *stream = report->stream;
	fputs(" {\"name\": ", stream);
	string_json(stream, answer->name);
	fprintf(stream, ", \"placed\": true, \"rule\": \"%s\", \"relaxed\": %s", rule_name(answer->plan->rule),
		(answer->plan->flags & FROND_PLAN_RELAXED) != 0 ? "true" : "false");

	spread_sort(report, answer);
	const char *before = ", \"spines\": [";
	for (uint32_t i = 0, last = FROND_NONE; i < answer->members; i++) {
		uint32_t spine = report->fabric->leaves[answer->scratch[i] >> 32].spine;
		if (spine == last)
			continue;
		fputs(before, stream);
		string_json(stream, report->fabric->spines[spine].name);
		before = ", ";
		last = spine;
	}
	before = "], \"leaves\": [";
	for (uint32_t i = 0, last = FROND_NONE; i < answer->members; i++) {
		uint32_t leaf = (uint32_t)(answer->scratch[i] >> 32);
		if (leaf == last)
			continue;
		fputs(before, stream);
		string_json(stream, report->fabric->leaves[leaf].name);
		before = ", ";
		last = leaf;
	}
	before = "], \"members\": [";
	for (uint32_t rank = 0; rank < answer->members; rank++) {
		fputs(before, stream);
		member_json(report, rank, &answer->places[rank]);
		before = ", ";
	}
	fputs("]}", stream);
}

static void member_json(const struct report *report, uint32_t rank, const struct frond_place *place)
{
	FILE *stream = report->stream;
	const struct fabric_node *node = &report->fabric->nodes[place->slot];
	fprintf(stream, "{\"rank\": %" PRIu32 ", \"node\": ", rank);
	string_json(stream, node->name);
	fputs(", \"domain\": ", stream);
	char domain[2 * FROND_NAME_MAX + 2];
	snprintf(domain, sizeof(domain), "%s/%s", spine_of(report, node->leaf),
		 report->fabric->leaves[node->leaf].name);
	string_json(stream, domain);
	const char *before = ", \"gpus\": [";
	for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++) {
		if ((place->gpu_mask >> gpu & 1) == 0)
			continue;
		fprintf(stream, "%s%" PRIu32, before, gpu);
		before = ",";
	}
	fputs("]}", stream);
}

/* A line for the job, a line for each leaf, a line for each member. */
static void placed_text(const struct report *report, const struct answer_placed *answer)
{
	FILE *stream = report->stream;
	const struct frond_plan *plan = answer->plan;
	fprintf(stream,
		"%s: placed, rule %s%s, members %" PRIu32 ", nodes %" PRIu32 ", leaves %" PRIu32 ", spines %" PRIu32
		"\n",
		answer->name, rule_name(plan->rule), (plan->flags & FROND_PLAN_RELAXED) != 0 ? " (relaxed)" : "",
		answer->members, plan->nodes, plan->leaves, plan->spines);
	int width = 0;
	for (uint32_t rank = 0; rank < answer->members; rank++) {
		int len = (int)strlen(report->fabric->nodes[answer->places[rank].slot].name);
		width = len > width ? len : width;
	}
	spread_sort(report, answer);
	for (uint32_t i = 0, last = FROND_NONE; i < answer->members; i++) {
		uint32_t leaf = (uint32_t)(answer->scratch[i] >> 32), rank = (uint32_t)answer->scratch[i];
		const struct frond_place *place = &answer->places[rank];
		if (leaf != last)
			fprintf(stream, "  %s/%s\n", spine_of(report, leaf), report->fabric->leaves[leaf].name);
		last = leaf;
		fprintf(stream, "  %6" PRIu32 "  %-*s  gpus", rank, width, report->fabric->nodes[place->slot].name);
		for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++) {
			if ((place->gpu_mask >> gpu & 1) != 0)
				fprintf(stream, " %" PRIu32, gpu);
		}
		fputs("\n", stream);
	}
}

static int number_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* scratch: leaf << 32 | rank, ascending, so leaves come in fabric order and ranks in order inside each. */
static void spread_sort(const struct report *report, const struct answer_placed *answer)
{
	for (uint32_t rank = 0; rank < answer->members; rank++) {
		uint32_t leaf = report->fabric->nodes[answer->places[rank].slot].leaf;
		answer->scratch[rank] = (uint64_t)leaf << 32 | rank;
	}
	qsort(answer->scratch, answer->members, sizeof(*answer->scratch), number_compare);
}

/* A name, a domain or a sentence: escaped it is at most six times as long. */
static void string_json(FILE *stream, const char *text)
{
	char escaped[6 * FROND_TEXT_MAX + 3];
	struct out out = {.text = escaped, .cap = sizeof(escaped)};
	json_string(&out, text, strlen(text));
	assert(out.len < sizeof(escaped));
	fputs(escaped, stream);
}

static const char *rule_name(uint32_t rule)
{
	static const char *const names[] = {
		[FROND_RULE_NONE] = "none",
		[FROND_RULE_SINGLE_NODE] = "single node",
		[FROND_RULE_SAME_LEAF] = "same leaf",
		[FROND_RULE_COMPLETE_LEAF] = "complete leaf",
		[FROND_RULE_ADJACENT_LEAVES] = "adjacent leaves",
		[FROND_RULE_ADJACENT_SPINES] = "adjacent spines",
	};
	assert(rule < sizeof(names) / sizeof(names[0]));
	return names[rule];
}

static const char *spine_of(const struct report *report, uint32_t leaf)
{
	return report->fabric->spines[report->fabric->leaves[leaf].spine].name;
}
