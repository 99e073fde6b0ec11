/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report.h"

#include "text/duration.h"
#include "text/json.h"

#include <inttypes.h>
#include <stdlib.h>

static void placed_json(const struct report *report, const struct answer_placed *answer);
static void placed_text(const struct report *report, const struct answer_placed *answer);
static void warnings_json(FILE *stream, const struct warnings *warnings);
static void warnings_text(FILE *stream, const struct warnings *warnings);
static void member_json(const struct report *report, uint32_t rank, const struct frond_place *place);
static uint32_t spread_sort(const struct report *report, const struct answer_placed *answer);
static void string_json(FILE *stream, const char *text);
static const char *rule_name(uint32_t rule);
static const char *spine_of(const struct report *report, uint32_t leaf);
static int number_compare(const void *a, const void *b);

void report_begin(struct report *report)
{
	if (report->format == FORMAT_JSON)
		fputs("{\"jobs\": [", report->stream);
}

void report_placed(struct report *report, const struct answer_placed *answer)
{
	if (report->format == FORMAT_JSON) {
		fputs(report->answers == 0 ? "\n " : ",\n ", report->stream);
		placed_json(report, answer);
	} else {
		placed_text(report, answer);
	}
	report->answers++;
}

void report_refused(struct report *report, const char *name, const char *reason, const struct warnings *warnings)
{
	if (report->format == FORMAT_JSON) {
		fputs(report->answers == 0 ? "\n {\"name\": " : ",\n {\"name\": ", report->stream);
		string_json(report->stream, name);
		fputs(", \"placed\": false, \"reason\": ", report->stream);
		string_json(report->stream, reason);
		warnings_json(report->stream, warnings);
		fputs("}", report->stream);
	} else {
		fprintf(report->stream, "%s: not placed: %s\n", name, reason);
		warnings_text(report->stream, warnings);
	}
	report->answers++;
}

void report_end(struct report *report)
{
	if (report->format == FORMAT_JSON)
		fputs("\n]}\n", report->stream);
}

static void victims_json(const struct report *report, const struct answer_victims *answer)
{
	FILE *stream = report->stream;
	const struct frond_victims *cost = answer->cost;
	fputs("{\"placed\": true, \"victims\": [", stream);
	for (uint32_t i = 0; i < cost->count; i++) {
		fputs(i == 0 ? "{\"job\": " : ", {\"job\": ", stream);
		string_json(stream, answer->jobs[i]);
		fprintf(stream, ", \"rank\": %" PRIu32 "}", answer->ranks[i]);
	}
	fprintf(stream,
		"], \"cost\": {\"budgets\": %" PRIu32 ", \"priority\": %" PRId32 ", \"gangs\": %" PRIu32
		", \"pods\": %" PRIu32 ", \"gpus\": %" PRIu32 "}, \"plan\": ",
		cost->budgets, cost->priority, cost->gangs, cost->count, cost->gpus);
	placed_json(report, answer->placed);
	fputs("}\n", stream);
}

void report_victims(struct report *report, const struct answer_victims *answer)
{
	const struct frond_victims *cost = answer->cost;
	report->answers++;
	if (report->format == FORMAT_JSON) {
		victims_json(report, answer);
		return;
	}
	for (uint32_t i = 0; i < cost->count; i++)
		fprintf(report->stream, "%s rank %" PRIu32 " goes\n", answer->jobs[i], answer->ranks[i]);
	if (cost->count == 0)
		fputs("nobody has to go\n", report->stream);
	else
		fprintf(report->stream,
			"%" PRIu32 " pod%s of %" PRIu32 " gang%s with %" PRIu32 " GPUs, of priority %" PRId32
			" at most, %" PRIu32 " against a disruption budget\n",
			cost->count, cost->count == 1 ? "" : "s", cost->gangs, cost->gangs == 1 ? "" : "s", cost->gpus,
			cost->priority, cost->budgets);
	placed_text(report, answer->placed);
}

void report_stays(struct report *report, const char *name, const char *reason, const struct warnings *warnings)
{
	report->answers++;
	if (report->format == FORMAT_TEXT) {
		fprintf(report->stream, "%s: not placed: %s\n", name, reason);
		warnings_text(report->stream, warnings);
		return;
	}
	fputs("{\"placed\": false, \"reason\": ", report->stream);
	string_json(report->stream, reason);
	warnings_json(report->stream, warnings);
	fputs("}\n", report->stream);
}

/* In scratch: node after node in fabric order, each once. Returns how many. */
static uint32_t window_nodes(const struct answer_window *answer)
{
	uint32_t placed = 0, nodes = 0;
	for (uint32_t i = 0; i < answer->members; i++)
		if (answer->places[i].slot != FROND_NONE)
			answer->scratch[placed++] = answer->places[i].slot;
	qsort(answer->scratch, placed, sizeof(*answer->scratch), number_compare);
	for (uint32_t i = 0; i < placed; i++)
		if (i == 0 || answer->scratch[i] != answer->scratch[i - 1])
			answer->scratch[nodes++] = answer->scratch[i];
	return nodes;
}

static void window_json(const struct report *report, const struct answer_window *answer, uint32_t nodes)
{
	FILE *stream = report->stream;
	const struct fabric_node *node = report->fabric->nodes;
	fputs("{\"start\": ", stream);
	string_json(stream, duration_text(answer->window->start_ms).text);
	fputs(", \"nodes\": [", stream);
	for (uint32_t i = 0; i < nodes; i++) {
		fputs(i == 0 ? "" : ", ", stream);
		string_json(stream, node[answer->scratch[i]].name);
	}
	fprintf(stream, "], \"free\": %" PRIu32 ", \"leaves\": [", answer->window->free);
	for (uint32_t i = 0, last = FROND_NONE; i < nodes; i++) {
		uint32_t leaf = node[answer->scratch[i]].leaf;
		if (leaf == last)
			continue;
		fputs(last == FROND_NONE ? "" : ", ", stream);
		string_json(stream, report->fabric->leaves[leaf].name);
		last = leaf;
	}
	fputs("]", stream);
	warnings_json(stream, answer->warnings);
	fputs("}\n", stream);
}

void report_window(struct report *report, const struct answer_window *answer)
{
	uint32_t nodes = window_nodes(answer);
	report->answers++;
	if (report->format == FORMAT_JSON) {
		window_json(report, answer, nodes);
		return;
	}
	fprintf(report->stream, "%s: start %s: %s\n", answer->name, duration_text(answer->window->start_ms).text,
		answer->reason);
	for (uint32_t i = 0; i < nodes; i++) {
		const struct fabric_node *node = &report->fabric->nodes[answer->scratch[i]];
		fprintf(report->stream, "  %s/%s  %s\n", spine_of(report, node->leaf),
			report->fabric->leaves[node->leaf].name, node->name);
	}
	warnings_text(report->stream, answer->warnings);
}

int32_t report_moves_begin(struct report *report, struct complaint *complaint)
{
	struct report_tail *tails[] = {&report->unrepaired, &report->warned};
	if (report->format == FORMAT_JSON)
		fputs("{\"moves\": [", report->stream);
	for (uint32_t i = 0; i < 2; i++)
		if ((tails[i]->stream = open_memstream(&tails[i]->text, &tails[i]->len)) == NULL)
			return complain(complaint, 0, "out of memory");
	return FROND_OK;
}

void report_move(struct report *report, const char *job, uint32_t rank, uint32_t from, uint32_t to)
{
	FILE *stream = report->stream;
	const char *source = report->fabric->nodes[from].name, *target = report->fabric->nodes[to].name;
	if (report->format == FORMAT_TEXT) {
		fprintf(stream, "%s rank %" PRIu32 ": %s to %s\n", job, rank, source, target);
		report->answers++;
		return;
	}
	fputs(report->answers++ == 0 ? "{\"job\": " : ", {\"job\": ", stream);
	string_json(stream, job);
	fprintf(stream, ", \"rank\": %" PRIu32 ", \"from\": ", rank);
	string_json(stream, source);
	fputs(", \"to\": ", stream);
	string_json(stream, target);
	fputs("}", stream);
}

void report_unrepaired(struct report *report, const char *job, const char *reason)
{
	struct report_tail *tail = &report->unrepaired;
	if (report->format == FORMAT_TEXT) {
		fprintf(tail->stream, "%s: unrepaired: %s\n", job, reason);
		return;
	}
	fputs(tail->count++ == 0 ? "{\"job\": " : ", {\"job\": ", tail->stream);
	string_json(tail->stream, job);
	fputs(", \"reason\": ", tail->stream);
	string_json(tail->stream, reason);
	fputs("}", tail->stream);
}

/* The answer is about many jobs, so each warning names its own. */
void report_warned(struct report *report, const char *job, const struct warnings *warnings)
{
	struct report_tail *tail = &report->warned;
	char text[FROND_NAME_MAX + 2 + FROND_TEXT_MAX];
	for (uint32_t i = 0; i < warnings->count; i++) {
		snprintf(text, sizeof(text), "%s: %s", job, warnings->text[i]);
		if (report->format == FORMAT_TEXT) {
			fprintf(tail->stream, "warning: %s\n", text);
			continue;
		}
		fputs(tail->count++ == 0 ? "" : ", ", tail->stream);
		string_json(tail->stream, text);
	}
}

/* Closes the tail and writes what it has collected. */
static void tail_write(FILE *stream, struct report_tail *tail)
{
	if (tail->stream == NULL)
		return;
	if (fclose(tail->stream) == 0)
		fputs(tail->text, stream);
	free(tail->text);
}

void report_moves_end(struct report *report, uint32_t lower_bound)
{
	FILE *stream = report->stream;
	if (report->format == FORMAT_TEXT) {
		tail_write(stream, &report->unrepaired);
		tail_write(stream, &report->warned);
		fprintf(stream, "%" PRIu32 " move%s; fewer than %" PRIu32 " are not possible\n", report->answers,
			report->answers == 1 ? "" : "s", lower_bound);
		return;
	}
	fprintf(stream, "], \"lowerBound\": %" PRIu32 ", \"unrepaired\": [", lower_bound);
	tail_write(stream, &report->unrepaired);
	fputs(report->warned.count == 0 ? "]" : "], \"warnings\": [", stream);
	tail_write(stream, &report->warned);
	fputs(report->warned.count == 0 ? "}\n" : "]}\n", stream);
}

void report_summary(struct report *report, const struct answer_summary *answer)
{
	fprintf(report->stream, "GPUs in use: %" PRIu32 " of %" PRIu32 "; ", answer->used, answer->gpus);
	if (answer->members == 0)
		fputs("no whole node is left for a gang\n", report->stream);
	else
		fprintf(report->stream,
			"largest gang that still fits: %s%" PRIu32 " whole node%s of %" PRIu32 " GPU%s\n",
			answer->exact ? "" : "at least ", answer->members, answer->members == 1 ? "" : "s",
			answer->gpus_each, answer->gpus_each == 1 ? "" : "s");
}

static void placed_json(const struct report *report, const struct answer_placed *answer)
{
	FILE *stream = report->stream;
	fputs("{\"name\": ", stream);
	string_json(stream, answer->name);
	fprintf(stream, ", \"placed\": true, \"rule\": \"%s\", \"relaxed\": %s", rule_name(answer->plan->rule),
		(answer->plan->flags & FROND_PLAN_RELAXED) != 0 ? "true" : "false");

	uint32_t placed = spread_sort(report, answer);
	fputs(", \"spines\": [", stream);
	const char *before = "";
	for (uint32_t i = 0, last = FROND_NONE; i < placed; i++) {
		uint32_t spine = report->fabric->leaves[answer->scratch[i] >> 32].spine;
		if (spine == last)
			continue;
		fputs(before, stream);
		string_json(stream, report->fabric->spines[spine].name);
		before = ", ";
		last = spine;
	}
	fputs("], \"leaves\": [", stream);
	before = "";
	for (uint32_t i = 0, last = FROND_NONE; i < placed; i++) {
		uint32_t leaf = (uint32_t)(answer->scratch[i] >> 32);
		if (leaf == last)
			continue;
		fputs(before, stream);
		string_json(stream, report->fabric->leaves[leaf].name);
		before = ", ";
		last = leaf;
	}
	fputs("], \"members\": [", stream);
	before = "";
	for (uint32_t rank = 0; rank < answer->members; rank++) {
		if (answer->places[rank].slot == FROND_NONE)
			continue; /* without GPUs: upstream's to place */
		fputs(before, stream);
		member_json(report, rank, &answer->places[rank]);
		before = ", ";
	}
	fputs("]", stream);
	if (answer->members < answer->asked)
		fprintf(stream, ", \"placedMembers\": %" PRIu32, answer->members);
	warnings_json(stream, answer->warnings);
	fputs("}", stream);
}

static void warnings_json(FILE *stream, const struct warnings *warnings)
{
	for (uint32_t i = 0; i < warnings->count; i++) {
		fputs(i == 0 ? ", \"warnings\": [" : ", ", stream);
		string_json(stream, warnings->text[i]);
	}
	if (warnings->count > 0)
		fputs("]", stream);
}

static void warnings_text(FILE *stream, const struct warnings *warnings)
{
	for (uint32_t i = 0; i < warnings->count; i++)
		fprintf(stream, "  warning: %s\n", warnings->text[i]);
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
	uint32_t count = (uint32_t)__builtin_popcount(place->gpu_mask);
	for (uint32_t i = 0; i < count; i++) {
		fprintf(stream, "%s%" PRIu32, before, (uint32_t)(place->ring >> 4 * i & 15));
		before = ",";
	}
	fputs("]}", stream);
}

/* A line for the job, a line for each leaf, a line for each member. */
static void placed_text(const struct report *report, const struct answer_placed *answer)
{
	FILE *stream = report->stream;
	const struct frond_plan *plan = answer->plan;
	fprintf(stream, "%s: placed, rule %s%s, members %" PRIu32, answer->name, rule_name(plan->rule),
		(plan->flags & FROND_PLAN_RELAXED) != 0 ? " (relaxed)" : "", answer->members);
	if (answer->members < answer->asked)
		fprintf(stream, " of %" PRIu32, answer->asked);
	fprintf(stream, ", nodes %" PRIu32 ", leaves %" PRIu32 ", spines %" PRIu32 "\n", plan->nodes, plan->leaves,
		plan->spines);
	int width = 0;
	for (uint32_t rank = 0; rank < answer->members; rank++) {
		uint32_t slot = answer->places[rank].slot;
		int len = slot == FROND_NONE ? 0 : (int)strlen(report->fabric->nodes[slot].name);
		width = len > width ? len : width;
	}
	uint32_t placed = spread_sort(report, answer);
	for (uint32_t i = 0, last = FROND_NONE; i < placed; i++) {
		uint32_t leaf = (uint32_t)(answer->scratch[i] >> 32), rank = (uint32_t)answer->scratch[i];
		const struct frond_place *place = &answer->places[rank];
		if (leaf != last)
			fprintf(stream, "  %s/%s\n", spine_of(report, leaf), report->fabric->leaves[leaf].name);
		last = leaf;
		fprintf(stream, "  %6" PRIu32 "  %-*s  gpus", rank, width, report->fabric->nodes[place->slot].name);
		for (uint32_t j = 0; j < (uint32_t)__builtin_popcount(place->gpu_mask); j++)
			fprintf(stream, " %" PRIu32, (uint32_t)(place->ring >> 4 * j & 15));
		fputs("\n", stream);
	}
	warnings_text(stream, answer->warnings);
}

static int number_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* scratch: leaf << 32 | rank, ascending, so leaves come in fabric order and ranks in order inside each. Returns how many
 * members have a place. */
static uint32_t spread_sort(const struct report *report, const struct answer_placed *answer)
{
	uint32_t placed = 0;
	for (uint32_t rank = 0; rank < answer->members; rank++) {
		uint32_t slot = answer->places[rank].slot;
		if (slot != FROND_NONE)
			answer->scratch[placed++] = (uint64_t)report->fabric->nodes[slot].leaf << 32 | rank;
	}
	qsort(answer->scratch, placed, sizeof(*answer->scratch), number_compare);
	return placed;
}

/* A name, a domain, or a sentence with a name before it: escaped it is at most six times as long. */
static void string_json(FILE *stream, const char *text)
{
	char escaped[6 * (FROND_NAME_MAX + 2 + FROND_TEXT_MAX) + 3];
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
		[FROND_RULE_NVLINK_DOMAIN] = "nvlink domain",
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
