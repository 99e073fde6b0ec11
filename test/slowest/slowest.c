/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slowest - looks for the slowest call of the engine: random clusters of 100 to 100,000 nodes, random calls on them, and
 * small changes of the slowest ones found so far. Prints the ten slowest as a Markdown table, each with the input that makes
 * it; last line: N passed, N failed.
 *
 *   slowest [--lib FILE] [--calls N] [--seed S] [--nodes-most N] [--most-ms N] [--hold]
 *           [--only CALL] [--call 'nodes=100 …'] [--digests]
 *
 * --hold: a call that takes longer than reference 9 allows is a failure. A call that is refused as bad input, or that finds an
 * invariant broken, always is one. --only: calls of one kind. --call: this input alone. --digests: a line for each random call with a number that
 * stands for its answer, no changes: two libraries that answer alike print the same lines.
 *
 * What is ranked is processor time, relative to what reference 9 allows on so many nodes. A call that is slower than others of
 * its class is made three times more, each on the engine as it was made, with nothing remembered; the least time counts.
 */
#include "call.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN         10u
#define SIZES         3u /* of clusters: see bands[] */
#define CLASSES       (CALL_KINDS * 12u * SIZES)
#define BURST         200u /* calls on a cluster: making it takes as long as some of them */
#define KEPT          3u   /* clusters alive at a time */
#define AGAIN         3u
#define LIMIT_SMALL   20000000ull /* ns on 10,000 nodes: reference 9 */
#define LIMIT_LARGE   50000000ull /* on 100,000 */
#define NODES_SMALL   10000u
#define NODES_LARGE   100000u
#define DESCRIPTION   1024u
#define COMMON_FAULTS 5u /* said in full */

/* Clusters of a size: up to so many nodes, and so many of a hundred. A call on a large one takes as long as thirty on a
 * small one; each size gets about a third of the time, and all have every shape. */
static const struct {
	uint32_t least, most, share;
} bands[SIZES] = {{100, 3000, 78}, {3001, 20000, 19}, {20001, NODES_LARGE, 3}};

struct options {
	const char *lib, *call;
	uint32_t only; /* CALL_KINDS: all of them */
	uint64_t calls, seed;
	uint32_t nodes_most, most_ms;
	bool hold, digests;
};

struct found { /* the slowest of a class */
	struct input input;
	struct result result;
	uint64_t share; /* of what is allowed, in thousandths; 0: none yet */
};

struct search {
	struct options options;
	const struct frond_abi *abi;
	struct dice dice;
	struct caller *caller;
	struct cluster *kept[KEPT];
	uint64_t used[KEPT], uses; /* when each was last used */
	char *text;
	struct found found[CLASSES];
	uint64_t calls, by_outcome[8], refused, stopped, over, faults;
};

static void die(const char *what)
{
	fprintf(stderr, "slowest: %s\n", what);
	exit(2);
}

/* ---- what counts ---------------------------------------------------------------------------------------------------------- */

static uint64_t allowed_ns(uint32_t nodes)
{
	if (nodes <= NODES_SMALL)
		return LIMIT_SMALL;
	return LIMIT_SMALL + (LIMIT_LARGE - LIMIT_SMALL) * (nodes - NODES_SMALL) / (NODES_LARGE - NODES_SMALL);
}

static uint64_t share_of(const struct input *input, const struct result *result)
{
	return result->ns * 1000 / allowed_ns(input->number[N_NODES]);
}

/* Calls of different classes are looked for apart, so that one slow path does not hide the others. */
static uint32_t class_of(const struct input *input)
{
	const uint32_t *number = input->number;
	bool mixed = number[N_SECOND] > 0 && number[N_SECOND] != number[N_GPUS];
	uint32_t band = 0;
	while (number[N_NODES] > bands[band].most)
		band++;
	return band * (CLASSES / SIZES) + ((number[N_CALL] * 3 + number[N_MODE]) * 2 + mixed) * 2 +
	       (number[N_CLAIM] > 0);
}

static bool fault_of(const struct result *result)
{
	return !result->stopped && (result->code == FROND_BAD || result->code == FROND_BROKEN);
}

/* ---- clusters --------------------------------------------------------------------------------------------------------------- */

static struct cluster *cluster_for(struct search *search, const struct input *input)
{
	uint32_t at = 0;
	for (uint32_t i = 0; i < KEPT; i++) {
		if (search->kept[i] != NULL && memcmp(search->kept[i]->input.number, input->number,
						      CLUSTER_NUMBERS * sizeof *input->number) == 0) {
			search->used[i] = ++search->uses;
			return search->kept[i];
		}
		at = search->used[i] < search->used[at] ? i : at;
	}
	cluster_close(search->kept[at]);
	search->kept[at] = cluster_open(search->abi, input, search->text);
	if (search->kept[at] == NULL)
		die("out of memory");
	search->used[at] = ++search->uses;
	return search->kept[at];
}

/* ---- one call ----------------------------------------------------------------------------------------------------------------- */

static void complain(struct search *search, const struct input *input, const struct cluster *cluster,
		     const struct result *result)
{
	char text[DESCRIPTION];
	if (search->faults++ >= COMMON_FAULTS)
		return;
	input_print(input, text, sizeof text);
	printf("FAILED %s: %s: %.*s\n  --call '%s'\n", call_name(input->number[N_CALL]),
	       search->abi->code_text(result->code), (int)cluster->len, cluster->text, text);
}

/* The least time of a few, each with nothing remembered; once it is no more than `share` no further ones. */
static struct result again(struct search *search, struct cluster *cluster, const struct input *input,
			   struct result least, uint64_t share)
{
	for (uint32_t i = 0; i < AGAIN && !least.stopped && share_of(input, &least) > share; i++) {
		cluster->dirty = true;
		struct result result = call_make(search->caller, cluster, input);
		if (result.ns < least.ns || i == 0)
			least = result;
	}
	return least;
}

static void attempt(struct search *search, struct cluster *cluster, const struct input *input)
{
	struct found *found = &search->found[class_of(input)];
	struct result result = call_make(search->caller, cluster, input);
	search->calls++;
	search->stopped += result.stopped;
	search->refused += !result.stopped && result.code != FROND_OK;
	search->by_outcome[result.outcome & 7]++;
	search->over += result.ns > allowed_ns(cluster->nodes);
	if (fault_of(&result))
		complain(search, input, cluster, &result);
	if (share_of(input, &result) <= found->share)
		return;
	result = again(search, cluster, input, result, found->share);
	if (share_of(input, &result) > found->share)
		*found = (struct found){*input, result, share_of(input, &result)};
}

/* ---- the search --------------------------------------------------------------------------------------------------------------- */

/* The slower of two classes on clusters of a size, or NULL: none has been met. */
static const struct found *slow_one(struct search *search, uint32_t band)
{
	const struct found *best = NULL;
	for (uint32_t tries = 0, picked = 0; tries < 64 && picked < 2; tries++) {
		const struct found *one =
			&search->found[band * (CLASSES / SIZES) + below(&search->dice, CLASSES / SIZES)];
		if (one->share == 0)
			continue;
		best = best == NULL || one->share > best->share ? one : best;
		picked++;
	}
	return best;
}

static uint32_t roll_band(struct search *search)
{
	uint32_t band = 0;
	for (uint32_t left = below(&search->dice, 100); left >= bands[band].share; band++)
		left -= bands[band].share;
	while (band > 0 && bands[band].least > search->options.nodes_most)
		band--;
	return band;
}

/* Sizes between 100 and 100,000 nodes, small ones as often as large ones: the whole range is rolled until one is of the
 * band. */
static void roll_nodes(struct search *search, struct input *input, uint32_t band)
{
	uint32_t most = bands[band].most < search->options.nodes_most ? bands[band].most : search->options.nodes_most;
	do
		input_roll(input, &search->dice, N_NODES, N_NODES + 1, search->options.nodes_most);
	while (input->number[N_NODES] < bands[band].least || input->number[N_NODES] > most);
}

/* A new cluster, or that of a slow call, mostly changed. */
static void choose_cluster(struct search *search, struct input *input, uint32_t band)
{
	const struct found *slow = percent(&search->dice, 60) ? slow_one(search, band) : NULL;
	if (slow == NULL) {
		input_roll(input, &search->dice, 0, CLUSTER_NUMBERS, search->options.nodes_most);
		roll_nodes(search, input, band);
		return;
	}
	*input = slow->input;
	if (percent(&search->dice, 70))
		input_change(input, &search->dice, 0, CLUSTER_NUMBERS, search->options.nodes_most);
	if (input->number[N_NODES] < bands[band].least || input->number[N_NODES] > bands[band].most)
		input->number[N_NODES] = slow->input.number[N_NODES];
}

static void roll_call(struct search *search, struct input *input)
{
	input_roll(input, &search->dice, CLUSTER_NUMBERS, NUMBERS, search->options.nodes_most);
	if (search->options.only < CALL_KINDS)
		input->number[N_CALL] = search->options.only;
	input_trim(input);
}

static void choose_call(struct search *search, struct input *input, uint32_t band)
{
	const struct found *slow = percent(&search->dice, 35) ? slow_one(search, band) : NULL;
	if (slow == NULL) {
		roll_call(search, input);
		return;
	}
	memcpy(input->number + CLUSTER_NUMBERS, slow->input.number + CLUSTER_NUMBERS,
	       (NUMBERS - CLUSTER_NUMBERS) * sizeof *input->number);
	input_change(input, &search->dice, CLUSTER_NUMBERS, NUMBERS, search->options.nodes_most);
	input_trim(input);
}

static void look(struct search *search)
{
	while (search->calls < search->options.calls) {
		struct input input = {{0}};
		uint32_t band = roll_band(search);
		choose_cluster(search, &input, band);
		struct cluster *cluster = cluster_for(search, &input);
		for (uint32_t i = 0; i < BURST && search->calls < search->options.calls; i++) {
			choose_call(search, &input, band);
			attempt(search, cluster, &input);
		}
	}
}

static void print_digests(struct search *search)
{
	while (search->calls < search->options.calls) {
		struct input input;
		input_roll(&input, &search->dice, 0, CLUSTER_NUMBERS, search->options.nodes_most);
		struct cluster *cluster = cluster_for(search, &input);
		for (uint32_t i = 0; i < 20 && search->calls < search->options.calls; i++, search->calls++) {
			char text[DESCRIPTION];
			roll_call(search, &input);
			struct result result = call_make(search->caller, cluster, &input);
			input_print(&input, text, sizeof text);
			if (result.stopped)
				printf("stopped --call '%s'\n", text);
			else
				printf("%016" PRIx64 " code %" PRId32 " outcome %" PRIu32 " --call '%s'\n",
				       result.digest, result.code, result.outcome, text);
		}
	}
}

/* ---- what was found ----------------------------------------------------------------------------------------------------------- */

static int by_share(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	return (x->share < y->share) - (x->share > y->share);
}

static void print_found(const struct found *found)
{
	static const char *const outcomes[] = {"-", "placed", "waits", "never", "refused", "undecided", "-", "-"};
	char text[DESCRIPTION];
	input_print(&found->input, text, sizeof text);
	printf("| %s%.3f | %" PRIu64 " | %s | %s%s%s | `%s` |\n", found->result.stopped ? "> " : "",
	       (double)found->result.ns / 1e6, allowed_ns(found->input.number[N_NODES]) / 1000000,
	       call_name(found->input.number[N_CALL]), outcomes[found->result.outcome & 7],
	       found->result.flags & FROND_PLAN_BOUNDED ? ", bounded" : "", found->share > 1000 ? ", **over**" : "",
	       text);
}

static uint64_t report(struct search *search)
{
	uint64_t over = 0;
	qsort(search->found, CLASSES, sizeof *search->found, by_share);
	printf("| ms | may take | call | answer | input |\n|---|---|---|---|---|\n");
	for (uint32_t i = 0; i < CLASSES; i++) {
		over += search->found[i].share > 1000;
		if (search->found[i].share > 0 && (i < SHOWN || search->found[i].share > 1000))
			print_found(&search->found[i]);
	}
	printf("\n%" PRIu64 " calls: %" PRIu64 " placed, %" PRIu64 " wait, %" PRIu64 " never, %" PRIu64
	       " refused, %" PRIu64 " undecided, %" PRIu64 " with a code; %" PRIu64 " over the limit at first, %" PRIu64
	       " given up; %" PRIu64 " of %u classes over it when measured again\n",
	       search->calls, search->by_outcome[1], search->by_outcome[2], search->by_outcome[3],
	       search->by_outcome[4], search->by_outcome[5], search->refused, search->over, search->stopped, over,
	       CLASSES);
	return over;
}

/* ---- the command line --------------------------------------------------------------------------------------------------------- */

static struct options options_read(int argc, char **argv)
{
	struct options options = {.lib = "bin/libfrond.so",
				  .calls = 1000,
				  .seed = 1,
				  .nodes_most = NODES_LARGE,
				  .most_ms = 1000,
				  .only = CALL_KINDS};
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
		if (strcmp(name, "--hold") == 0) {
			options.hold = true;
			continue;
		}
		if (strcmp(name, "--digests") == 0) {
			options.digests = true;
			continue;
		}
		if (value == NULL)
			die("usage: slowest [--lib FILE] [--calls N] [--seed S] [--nodes-most N] [--most-ms N] "
			    "[--hold] [--only CALL] [--call INPUT] [--digests]");
		if (strcmp(name, "--lib") == 0)
			options.lib = value;
		else if (strcmp(name, "--call") == 0)
			options.call = value;
		else if (strcmp(name, "--only") == 0)
			options.only = call_named(value, (uint32_t)strlen(value));
		else if (strcmp(name, "--calls") == 0)
			options.calls = strtoull(value, NULL, 10);
		else if (strcmp(name, "--seed") == 0)
			options.seed = strtoull(value, NULL, 10);
		else if (strcmp(name, "--nodes-most") == 0)
			options.nodes_most = (uint32_t)strtoul(value, NULL, 10);
		else if (strcmp(name, "--most-ms") == 0)
			options.most_ms = (uint32_t)strtoul(value, NULL, 10);
		else
			die("an option that there is not; without any: one line of usage at the top of slowest.c");
		i++;
	}
	if (options.nodes_most < 100 || options.nodes_most > NODES_LARGE || options.most_ms == 0)
		die("--nodes-most: 100 to 100000; --most-ms: 1 or more");
	return options;
}

static void one_call(struct search *search)
{
	struct input input;
	if (!input_read(&input, search->options.call))
		die("--call: NAME=NUMBER …, as the table prints it");
	struct cluster *cluster = cluster_for(search, &input);
	attempt(search, cluster, &input);
	printf("digest %016" PRIx64 " %.*s\n", search->found[class_of(&input)].result.digest,
	       cluster->len < FROND_TEXT_MAX ? (int)cluster->len : 0, cluster->text);
}

int main(int argc, char **argv)
{
	struct search *search = calloc(1, sizeof *search);
	if (search == NULL)
		die("out of memory");
	search->options = options_read(argc, argv);
	search->dice.state = search->options.seed * 0x9e3779b97f4a7c15u;
	search->text = malloc(TEXT_CAP);
	search->caller = caller_open(search->options.most_ms);
	void *lib = dlopen(search->options.lib, RTLD_NOW);
	const struct frond_abi *(*get)(void) = NULL;
	if (lib != NULL)
		*(void **)&get = dlsym(lib, "frond_abi_get");
	if (search->text == NULL || search->caller == NULL || get == NULL)
		die(get == NULL ? "--lib: not an engine; build bin/libfrond.so" : "out of memory");
	search->abi = get();
	if (search->abi->version != FROND_ABI_VERSION || search->abi->size != sizeof *search->abi)
		die("--lib: an engine of another version");
	uint64_t over = 0;
	if (search->options.digests) {
		print_digests(search);
	} else {
		printf("seed %" PRIu64 "; one call again: slowest --call 'INPUT'\n\n", search->options.seed);
		if (search->options.call != NULL)
			one_call(search);
		else
			look(search);
		over = report(search);
	}
	uint64_t failed = search->faults + (search->options.hold ? over : 0);
	if (!search->options.digests)
		printf("%" PRIu64 " passed, %" PRIu64 " failed\n",
		       search->calls - (failed < search->calls ? failed : search->calls), failed);
	for (uint32_t i = 0; i < KEPT; i++)
		cluster_close(search->kept[i]);
	caller_close(search->caller);
	free(search->text);
	free(search);
	dlclose(lib);
	return failed > 0;
}
