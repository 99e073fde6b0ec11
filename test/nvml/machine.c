/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX      12u
#define LINE_BYTES_MAX 256u
#define INCLUDES_MAX   2u

struct line {
	uint32_t count;
	char *words[WORDS_MAX];
};

static uint32_t file_read(const char *path, uint32_t depth, struct machine *out);
static bool include(const char *from, const char *name, uint32_t depth, struct machine *out);
static bool line_read(struct machine *machine, const struct line *line, const char *rest);

uint32_t machine_read(const char *path, struct machine *out)
{
	memset(out, 0, sizeof(*out));
	return file_read(path, 0, out);
}

static uint32_t file_read(const char *path, uint32_t depth, struct machine *out)
{
	FILE *file = fopen(path, "r");
	if (file == NULL)
		return UINT32_MAX;
	char text[LINE_BYTES_MAX], copy[LINE_BYTES_MAX];
	uint32_t at = 0, bad = 0;
	while (bad == 0 && fgets(text, sizeof(text), file) != NULL) {
		at++;
		if (strchr(text, '\n') == NULL && !feof(file))
			bad = at;
		text[strcspn(text, "#\n")] = '\0';
		memcpy(copy, text, sizeof(copy));
		struct line line = {.count = 0};
		char *save = NULL, *word = strtok_r(text, " \t", &save);
		for (; word != NULL && line.count < WORDS_MAX; word = strtok_r(NULL, " \t", &save))
			line.words[line.count++] = word;
		if (line.count == 0)
			continue;
		const char *rest = copy + (line.count > 1 ? line.words[1] - text : 0);
		bool good = word == NULL;
		if (good && strcmp(line.words[0], "include") == 0)
			good = line.count == 2 && depth < INCLUDES_MAX && include(path, line.words[1], depth, out);
		else
			good = good && line_read(out, &line, rest);
		if (!good)
			bad = at;
	}
	fclose(file);
	return bad;
}

/* A file of the same folder, or one with its whole path. */
static bool include(const char *from, const char *name, uint32_t depth, struct machine *out)
{
	const char *slash = strrchr(from, '/');
	int folder = slash == NULL || name[0] == '/' ? 0 : (int)(slash - from) + 1;
	char path[512];
	int len = snprintf(path, sizeof(path), "%.*s%s", folder, from, name);
	return len > 0 && len < (int)sizeof(path) && file_read(path, depth + 1, out) == 0;
}

void machine_uuid(const struct machine *machine, uint32_t gpu, char out[48])
{
	uint32_t shown = machine->gpus[gpu].twin > 0 ? machine->gpus[gpu].twin - 1 : gpu;
	snprintf(out, 48, "GPU-%s-%04x-4000-8000-0000000000%02x", machine->uuid, machine->node & 0xffffu,
		 shown & 0xffu);
}

void machine_mig_uuid(const struct machine *machine, uint32_t gpu, uint32_t instance, char out[48])
{
	snprintf(out, 48, "MIG-%s-%04x-5000-8000-00000000%02x%02x", machine->uuid, machine->node & 0xffffu, gpu & 0xffu,
		 instance & 0xffu);
}

uint32_t machine_level(const struct machine_place *a, const struct machine_place *b)
{
	if (a->plx == b->plx && a->plx != MACHINE_NO_SWITCH)
		return 10;
	if (a->root == b->root)
		return 30;
	return a->numa == b->numa ? 40 : 50;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static bool number(const char *word, uint64_t max, uint32_t *out)
{
	char *end = NULL;
	unsigned long value = strtoul(word, &end, 10);
	*out = (uint32_t)value;
	return end != word && *end == '\0' && value <= max;
}

static bool text(const char *word, char *out, uint32_t room)
{
	if (strlen(word) >= room)
		return false;
	strcpy(out, word);
	return true;
}

static struct machine_gpu *gpu_of(struct machine *machine, const char *word)
{
	uint32_t index;
	return number(word, MACHINE_GPUS_MAX - 1, &index) && index < machine->gpu_count ? &machine->gpus[index] : NULL;
}

/* "0000:06:00.0 numa 0 root 0 plx 1"; plx - means a root port of its own. */
static bool place_read(struct machine *machine, char *const *words, struct machine_place *out)
{
	if (sscanf(words[0], "%x:%x:%x.0", &out->domain, &out->bus, &out->device) != 3)
		return false;
	if (strcmp(words[1], "numa") != 0 || strcmp(words[3], "root") != 0 || strcmp(words[5], "plx") != 0)
		return false;
	if (!number(words[2], 7, &out->numa) || !number(words[4], 63, &out->root))
		return false;
	if (out->numa >= machine->numa_count)
		machine->numa_count = out->numa + 1;
	out->plx = MACHINE_NO_SWITCH;
	return strcmp(words[6], "-") == 0 || number(words[6], 63, &out->plx);
}

static bool gpu_line(struct machine *machine, const struct line *line)
{
	struct machine_gpu *gpu = line->count == 9 ? gpu_of(machine, line->words[1]) : NULL;
	if (gpu == NULL)
		return false;
	gpu->placed = true;
	gpu->ecc_on = true;
	return place_read(machine, line->words + 2, &gpu->place);
}

static bool nic_line(struct machine *machine, const struct line *line)
{
	if (line->count != 9 || machine->nic_count == MACHINE_NICS_MAX)
		return false;
	struct machine_nic *nic = &machine->nics[machine->nic_count++];
	return text(line->words[1], nic->name, sizeof(nic->name)) && place_read(machine, line->words + 2, &nic->place);
}

static void link_add(struct machine *machine, uint32_t gpu, int32_t peer, uint32_t peer_link, uint32_t nvswitch)
{
	machine->gpus[gpu].links[machine->gpus[gpu].link_count++] = (struct machine_link){
		.peer = peer, .peer_link = peer_link, .nvswitch = nvswitch, .up = true, .mbps = machine->link_mbps};
}

/* "join A B N": N links between two GPUs. */
static bool join_line(struct machine *machine, const struct line *line)
{
	uint32_t a, b, links;
	if (line->count != 4 || !number(line->words[1], MACHINE_GPUS_MAX - 1, &a) ||
	    !number(line->words[2], MACHINE_GPUS_MAX - 1, &b) || !number(line->words[3], 6, &links) || a == b)
		return false;
	for (uint32_t i = 0; i < links; i++) {
		uint32_t at_a = machine->gpus[a].link_count, at_b = machine->gpus[b].link_count;
		if (at_a == MACHINE_LINKS_MAX || at_b == MACHINE_LINKS_MAX)
			return false;
		link_add(machine, a, (int32_t)b, at_b, 0);
		link_add(machine, b, (int32_t)a, at_a, 0);
	}
	return true;
}

/* "switched N S": every GPU has N links, spread over S switches. */
static bool switched_line(struct machine *machine, const struct line *line)
{
	uint32_t links, switches;
	if (line->count != 3 || !number(line->words[1], MACHINE_LINKS_MAX, &links) ||
	    !number(line->words[2], 64, &switches) || switches == 0)
		return false;
	for (uint32_t gpu = 0; gpu < machine->gpu_count; gpu++)
		for (uint32_t i = 0; i < links && machine->gpus[gpu].link_count < MACHINE_LINKS_MAX; i++)
			link_add(machine, gpu, MACHINE_ON_SWITCH, 0, i % switches);
	return true;
}

/* "down GPU LINK" and "speed GPU LINK MBPS": both ends. */
static bool link_line(struct machine *machine, const struct line *line, bool down)
{
	struct machine_gpu *gpu = line->count == (down ? 3u : 4u) ? gpu_of(machine, line->words[1]) : NULL;
	uint32_t at, mbps = 0;
	if (gpu == NULL || !number(line->words[2], MACHINE_LINKS_MAX - 1, &at) || at >= gpu->link_count ||
	    (!down && !number(line->words[3], 1000000, &mbps)))
		return false;
	struct machine_link *ends[2] = {&gpu->links[at], &gpu->links[at]};
	if (ends[0]->peer != MACHINE_ON_SWITCH)
		ends[1] = &machine->gpus[ends[0]->peer].links[ends[0]->peer_link];
	for (uint32_t i = 0; i < 2; i++) {
		if (down)
			ends[i]->up = false;
		else
			ends[i]->mbps = mbps;
	}
	return true;
}

/* "instance GPU PROFILE SLICES COMPUTE_SLICES MIB" */
static bool instance_line(struct machine *machine, const struct line *line)
{
	struct machine_gpu *gpu = line->count == 6 ? gpu_of(machine, line->words[1]) : NULL;
	if (gpu == NULL || gpu->instance_count == MACHINE_INSTANCES_MAX)
		return false;
	struct machine_instance *instance = &gpu->instances[gpu->instance_count++];
	gpu->mig_on = true;
	return text(line->words[2], instance->profile, sizeof(instance->profile)) &&
	       number(line->words[3], 8, &instance->slices) && number(line->words[4], 8, &instance->compute_slices) &&
	       number(line->words[5], 1u << 20, &instance->memory_mib);
}

/* "process GPU PID MIB [COUNT]": with COUNT that many, each with the next PID. */
static bool process_line(struct machine *machine, const struct line *line)
{
	struct machine_gpu *gpu = line->count >= 4 && line->count <= 5 ? gpu_of(machine, line->words[1]) : NULL;
	uint32_t pid, mib, count = 1;
	if (gpu == NULL || !number(line->words[2], INT32_MAX, &pid) || !number(line->words[3], 1u << 24, &mib) ||
	    (line->count == 5 && !number(line->words[4], MACHINE_PROCESSES_MAX, &count)) ||
	    gpu->process_count + count > MACHINE_PROCESSES_MAX)
		return false;
	for (uint32_t i = 0; i < count; i++)
		gpu->processes[gpu->process_count++] = (struct machine_process){.pid = pid + i, .memory_mib = mib};
	return true;
}

/* "fabric CLUSTER CLIQUE STATE STATUS", the cluster as 32 hexadecimal digits, the others as NVML counts them. */
static bool fabric_line(struct machine *machine, const struct line *line)
{
	if (line->count != 5 || strlen(line->words[1]) != 32)
		return false;
	for (uint32_t i = 0; i < 16; i++) {
		unsigned byte;
		if (sscanf(line->words[1] + 2 * i, "%2x", &byte) != 1)
			return false;
		machine->cluster[i] = (uint8_t)byte;
	}
	machine->fabric = true;
	return number(line->words[2], UINT32_MAX, &machine->clique) &&
	       number(line->words[3], 3, &machine->fabric_state) &&
	       number(line->words[4], 999, &machine->fabric_status);
}

/* "fail FUNCTION|all GPU|any CODE", "hang FUNCTION|all" */
static bool rule_line(struct machine *machine, const struct line *line, bool hang)
{
	if (line->count != (hang ? 2u : 4u) || machine->rule_count == MACHINE_RULES_MAX)
		return false;
	struct machine_rule *rule = &machine->rules[machine->rule_count++];
	uint32_t gpu = 0;
	rule->gpu = -1;
	if (!hang && strcmp(line->words[2], "any") != 0) {
		if (!number(line->words[2], MACHINE_GPUS_MAX - 1, &gpu))
			return false;
		rule->gpu = (int32_t)gpu;
	}
	return text(line->words[1], rule->function, sizeof(rule->function)) &&
	       (hang || (number(line->words[3], 999, &rule->code) && rule->code > 0));
}

/* "inject PERCENT SEED", "garbage PERCENT SEED" */
static bool dice_line(struct machine *machine, const struct line *line, uint32_t *percent)
{
	uint32_t seed;
	if (line->count != 3 || !number(line->words[1], 100, percent) || !number(line->words[2], UINT32_MAX, &seed))
		return false;
	machine->seed = seed;
	return true;
}

/* "bytes PATH": a file whose bytes are the dice of "inject" and "garbage", for a fuzzer. */
static bool bytes_line(struct machine *machine, const struct line *line)
{
	FILE *file = line->count == 2 ? fopen(line->words[1], "rb") : NULL;
	if (file == NULL)
		return false;
	machine->byte_count = (uint32_t)fread(machine->bytes, 1, sizeof(machine->bytes), file);
	fclose(file);
	return true;
}

/* One number of one GPU: "utilization GPU PERCENT" and the like. */
static bool value_line(struct machine *machine, const struct line *line)
{
	struct machine_gpu *gpu = line->count == 3 ? gpu_of(machine, line->words[1]) : NULL;
	const char *key = line->words[0];
	uint32_t value;
	if (gpu == NULL || !number(line->words[2], UINT32_MAX, &value))
		return false;
	if (strcmp(key, "utilization") == 0)
		gpu->utilization = value;
	else if (strcmp(key, "used") == 0)
		gpu->used_mib = value;
	else if (strcmp(key, "ecc") == 0)
		gpu->ecc_errors = value;
	else if (strcmp(key, "clique") == 0)
		gpu->clique_elsewhere = value;
	else if (strcmp(key, "mig-mode") == 0)
		gpu->mig_odd = value;
	else if (strcmp(key, "same-uuid") == 0 && value < machine->gpu_count)
		gpu->twin = value + 1;
	else if (strcmp(key, "same-bus") == 0 && value < machine->gpu_count)
		gpu->place = machine->gpus[value].place;
	else if (strcmp(key, "xid") == 0 && gpu->xid_count < MACHINE_XIDS_MAX)
		gpu->xids[gpu->xid_count++] = value;
	else
		return false;
	return true;
}

/* Something that is so of one GPU: "lost GPU" and the like. */
static bool flag_line(struct machine *machine, const struct line *line)
{
	struct machine_gpu *gpu = line->count == 2 ? gpu_of(machine, line->words[1]) : NULL;
	const char *key = line->words[0];
	if (gpu == NULL)
		return false;
	if (strcmp(key, "lost") == 0)
		gpu->lost = true;
	else if (strcmp(key, "mig") == 0)
		gpu->mig_on = true;
	else if (strcmp(key, "remap-failed") == 0)
		gpu->remap_failed = true;
	else if (strcmp(key, "remap-pending") == 0)
		gpu->remap_pending = true;
	else if (strcmp(key, "pages-pending") == 0)
		gpu->pages_pending = true;
	else
		return false;
	return true;
}

static bool line_read(struct machine *machine, const struct line *line, const char *rest)
{
	const char *key = line->words[0];
	char *const *words = line->words;
	if (strcmp(key, "driver") == 0)
		return line->count == 2 && text(words[1], machine->driver, sizeof(machine->driver));
	if (strcmp(key, "no-driver") == 0)
		return machine->no_driver = true;
	if (strcmp(key, "has-mig") == 0)
		return machine->has_mig = true;
	if (strcmp(key, "has-remap") == 0)
		return machine->has_remap = true;
	if (strcmp(key, "model") == 0)
		return line->count > 1 && text(rest, machine->model, sizeof(machine->model));
	if (strcmp(key, "uuid") == 0)
		return line->count == 2 && strlen(words[1]) == 8 &&
		       text(words[1], machine->uuid, sizeof(machine->uuid));
	if (strcmp(key, "cuda") == 0)
		return line->count == 2 && number(words[1], 99999, &machine->cuda);
	if (strcmp(key, "node") == 0)
		return line->count == 2 && number(words[1], 65535, &machine->node);
	if (strcmp(key, "memory") == 0)
		return line->count == 2 && number(words[1], 1u << 24, &machine->memory_mib);
	if (strcmp(key, "gpus") == 0)
		return line->count == 2 && number(words[1], MACHINE_GPUS_MAX, &machine->gpu_count);
	if (strcmp(key, "capability") == 0)
		return line->count == 3 && number(words[1], 99, &machine->major) &&
		       number(words[2], 9, &machine->minor);
	if (strcmp(key, "nvlink") == 0)
		return line->count == 3 && number(words[1], 99, &machine->link_version) &&
		       number(words[2], 1000000, &machine->link_mbps);
	if (strcmp(key, "gpu") == 0)
		return gpu_line(machine, line);
	if (strcmp(key, "nic") == 0)
		return nic_line(machine, line);
	if (strcmp(key, "join") == 0)
		return join_line(machine, line);
	if (strcmp(key, "switched") == 0)
		return switched_line(machine, line);
	if (strcmp(key, "down") == 0 || strcmp(key, "speed") == 0)
		return link_line(machine, line, key[0] == 'd');
	if (strcmp(key, "instance") == 0)
		return instance_line(machine, line);
	if (strcmp(key, "process") == 0)
		return process_line(machine, line);
	if (strcmp(key, "fabric") == 0)
		return fabric_line(machine, line);
	if (strcmp(key, "fail") == 0 || strcmp(key, "hang") == 0)
		return rule_line(machine, line, key[0] == 'h');
	if (strcmp(key, "bytes") == 0)
		return bytes_line(machine, line);
	if (strcmp(key, "inject") == 0)
		return dice_line(machine, line, &machine->inject_percent);
	if (strcmp(key, "garbage") == 0)
		return dice_line(machine, line, &machine->garbage_percent);
	return line->count == 3 ? value_line(machine, line) : flag_line(machine, line);
}
