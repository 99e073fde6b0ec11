/* SPDX-License-Identifier: Apache-2.0 */
#include "text/args.h"

#include "text/choice.h"
#include "text/duration.h"
#include "text/kubename.h"
#include "text/section.h"

#include <stdio.h>
#include <string.h>

#define LEVELS_MAX        4u /* NVLink domain, leaf, spine, core */
#define PERMIT_WAIT_S_MAX 900u
#define NODE_LEASE_S_MAX  3600u
#define MOVES_MAX         10000u
#define PERMIT_WAIT_S     60u
#define WAIT_MS           300000
#define UNAVAILABLE_MS    60000
#define NODE_LEASE_S      40u
#define CONCURRENT_MOVES  8u
#define MOVES_PER_MINUTE  60u
#define GPUS_PER_LEAF_MAX (FROND_NODES_MAX * FROND_GPUS_MAX)
#define SUBPATH_BYTES     32u /* "args.topologyConstraints" */

/* The names of the terms in scoringWeights, by enum score_term. */
static const char *const term_names[SCORE_TERMS] = {
	"resourceAvailability", "topologyAlignment", "domainUtilization", "historicalPerformance",
	"modelCache",           "costEfficiency",    "dataLocality",      "utilization",
};

/* Reference 3.4. Preset `utilization` "turns it on": the default as it is and measured use beside it, weighing as much
 * as domainUtilization, the other term about use. The others keep their proportions, so that leaves without figures are
 * judged as by default. */
static const struct choice preset_words = {3, {"training", "agents", "utilization"}};
static const uint32_t preset_weights[3][SCORE_TERMS] = {
	WEIGHTS_TRAINING,
	{300, 250, 0, 0, 200, 150, 100, 0},
	{400, 300, 200, 100, 0, 0, 0, 200},
};

/* Reference 4: GPU feature discovery labels the NVLink domain, whoever labels the network. */
#define DOMAIN_LABEL "nvidia.com/gpu.clique"

/* Reference 4: who labels nodes, and how. Topograph counts tiers from the node, EKS counts layers from the top. GKE's
 * third label, gce-topology-host, is one machine, below a leaf. */
static const struct choice topology_words = {6, {"topograph", "topograph-legacy", "eks", "gke", "oci", "coreweave"}};
static const struct {
	const char *leaf;
	const char *spine;
	const char *core; /* "": the provider tells two levels */
} topology_labels[6] = {
	{"fabric.topograph.run/tier-0", "fabric.topograph.run/tier-1", "fabric.topograph.run/tier-2"},
	{"network.topology.nvidia.com/leaf", "network.topology.nvidia.com/spine", "network.topology.nvidia.com/core"},
	{"topology.k8s.aws/network-node-layer-3", "topology.k8s.aws/network-node-layer-2",
	 "topology.k8s.aws/network-node-layer-1"},
	{"cloud.google.com/gce-topology-subblock", "cloud.google.com/gce-topology-block", ""},
	{"oci.oraclecloud.com/host.rack_id", "oci.oraclecloud.com/host.network_block_id", ""},
	{"backend.coreweave.cloud/leafgroup", "backend.coreweave.cloud/fabric", ""},
};

static const struct choice exit_words = {3, {[EXIT_ANNOTATE] = "annotate", [EXIT_ENV] = "env", [EXIT_DRA] = "dra"}};

static void defaults_set(struct args *args);
static int32_t root_read(const struct section *root, struct args *args);
static int32_t kind_read(const struct section *root);
static int32_t weights_read(const struct section *root, struct tuning *tuning);
static int32_t constraints_read(const struct section *root, struct tuning *tuning);
static int32_t topology_read(const struct section *root, struct args *args);
static int32_t levels_read(const struct section *topology, struct args *args);
static int32_t workload_defaults_read(const struct section *root, struct args *args);
static int32_t unavailable_read(const struct section *root, struct args *args);
static int32_t device_exit_read(const struct section *root, struct args *args);
static int32_t resources_read(const struct section *root, struct args *args);
static int32_t locks_read(const struct section *root, struct args *args);
static int32_t recovery_section_read(const struct section *root, struct args *args);

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

int32_t args_read(const char *json, uint32_t len, struct args *out, struct complaint *complaint)
{
	cJSON *document = NULL;
	int32_t code = section_parse("args", json, len, &document, complaint);
	if (code != FROND_OK)
		return code;

	struct args args;
	defaults_set(&args);
	struct section root = {.object = document, .path = "args", .complaint = complaint};
	code = root_read(&root, &args);
	cJSON_Delete(document);
	if (code == FROND_OK)
		*out = args;
	return code;
}

int32_t tuning_read(const char *json, uint32_t len, const struct tuning *start, struct tuning *out,
		    struct complaint *complaint)
{
	static const char *const known[] = {"scoringPreset", "scoringWeights", "topologyConstraints"};
	cJSON *document = NULL;
	int32_t code = section_parse("spec", json, len, &document, complaint);
	if (code != FROND_OK)
		return code;

	struct tuning tuning = *start;
	struct section root = {.object = document, .path = "spec", .complaint = complaint};
	code = section_check(&root, known, COUNT(known));
	if (code == FROND_OK)
		code = weights_read(&root, &tuning);
	if (code == FROND_OK)
		code = constraints_read(&root, &tuning);
	cJSON_Delete(document);
	if (code == FROND_OK)
		*out = tuning;
	return code;
}

static void defaults_set(struct args *args)
{
	memset(args, 0, sizeof(*args));
	memcpy(args->tuning.weight, preset_weights[0], sizeof(args->tuning.weight));
	strcpy(args->domain_label, DOMAIN_LABEL);
	args->strategy = STRATEGY_BALANCED;
	args->mode = MODE_REQUIRED;
	args->wait_ms = WAIT_MS;
	args->unavailable_after_ms = UNAVAILABLE_MS;
	args->device_exit = EXIT_ANNOTATE;
	args->permit_wait_s = PERMIT_WAIT_S;
	args->resource_count = 2;
	strcpy(args->resources[0], "nvidia.com/gpu");
	strcpy(args->resources[1], "amd.com/gpu");
	args->locks_enabled = true;
	strcpy(args->locks_namespace, "frond-system");
	args->recovery = RECOVERY_REPLACE;
	args->node_lease_s = NODE_LEASE_S;
	args->max_concurrent_moves = CONCURRENT_MOVES;
	args->max_moves_per_minute = MOVES_PER_MINUTE;
}

static int32_t root_read(const struct section *root, struct args *args)
{
	static const char *const known[] = {
		"apiVersion",
		"kind",
		"scoringPreset",
		"scoringWeights",
		"topologyConstraints",
		"topology",
		"defaultStrategy",
		"defaultTopologyMode",
		"defaultTopologyWait",
		"unavailableAfter",
		"deviceExit",
		"permitWaitingTimeSeconds",
		"gpuResources",
		"deviceLocks",
		"recovery",
		"corePath",
	};
	int32_t (*const readers[])(const struct section *, struct args *) = {
		topology_read, workload_defaults_read, unavailable_read, device_exit_read, resources_read,
		locks_read,    recovery_section_read,
	};
	int32_t code = section_check(root, known, COUNT(known));
	if (code == FROND_OK)
		code = kind_read(root);
	if (code == FROND_OK)
		code = weights_read(root, &args->tuning);
	if (code == FROND_OK)
		code = constraints_read(root, &args->tuning);
	for (uint32_t i = 0; i < COUNT(readers) && code == FROND_OK; i++)
		code = readers[i](root, args);
	if (code == FROND_OK)
		code = section_whole(root, "permitWaitingTimeSeconds", 1, PERMIT_WAIT_S_MAX, &args->permit_wait_s);
	if (code == FROND_OK)
		code = section_path(root, "corePath", PATH_MAX_BYTES, args->core_path);
	return code;
}

static int32_t kind_read(const struct section *root)
{
	static const struct choice kinds = {1, {"TopologyGPUArgs"}};
	static const struct choice versions = {2, {"kubescheduler.config.k8s.io/v1", "topology.scheduler/v1alpha1"}};
	uint32_t unused = 0;
	int32_t code = section_choice(root, "apiVersion", &versions, &unused);
	return code == FROND_OK ? section_choice(root, "kind", &kinds, &unused) : code;
}

static int32_t weights_read(const struct section *root, struct tuning *tuning)
{
	uint32_t preset = FROND_NONE;
	int32_t code = section_choice(root, "scoringPreset", &preset_words, &preset);
	if (code != FROND_OK)
		return code;
	if (preset != FROND_NONE)
		memcpy(tuning->weight, preset_weights[preset], sizeof(tuning->weight));

	char path[SUBPATH_BYTES];
	snprintf(path, sizeof(path), "%s.scoringWeights", root->path);
	struct section weights = section_of(root, "scoringWeights", path);
	code = section_check(&weights, term_names, SCORE_TERMS);
	uint32_t sum = 0;
	for (uint32_t i = 0; i < SCORE_TERMS && code == FROND_OK; i++) {
		code = section_thousandths(&weights, term_names[i], &tuning->weight[i]);
		sum += tuning->weight[i];
	}
	if (code == FROND_OK && sum == 0)
		return complain(root->complaint, 0, "%s: all weights are 0; at least one must be above", path);
	return code;
}

static int32_t constraints_read(const struct section *root, struct tuning *tuning)
{
	static const char *const known[] = {"maxNodesPerLeaf", "maxGPUsPerLeaf"};
	char path[SUBPATH_BYTES];
	snprintf(path, sizeof(path), "%s.topologyConstraints", root->path);
	struct section section = section_of(root, "topologyConstraints", path);
	int32_t code = section_check(&section, known, COUNT(known));
	if (code == FROND_OK)
		code = section_whole(&section, known[0], 1, FROND_NODES_MAX, &tuning->max_nodes_per_leaf);
	if (code == FROND_OK)
		code = section_whole(&section, known[1], 1, GPUS_PER_LEAF_MAX, &tuning->max_gpus_per_leaf);
	return code;
}

/* Labels come from `levels` or from a preset; from the default preset only when there is no file either. */
static int32_t topology_read(const struct section *root, struct args *args)
{
	static const char *const known[] = {"preset", "levels", "fabricFile"};
	struct section section = section_of(root, "topology", "args.topology");
	int32_t code = section_check(&section, known, COUNT(known));
	if (code == FROND_OK)
		code = section_path(&section, "fabricFile", PATH_MAX_BYTES, args->fabric_file);
	if (code != FROND_OK)
		return code;

	bool levels = section_field(&section, "levels") != NULL, preset = section_field(&section, "preset") != NULL;
	if (levels && preset)
		return complain(root->complaint, 0,
				"args.topology: has both preset and levels; only one of them is allowed");
	if (levels)
		return levels_read(&section, args);
	uint32_t which = 0;
	code = section_choice(&section, "preset", &topology_words, &which);
	if (code == FROND_OK && (preset || args->fabric_file[0] == '\0')) {
		strcpy(args->leaf_label, topology_labels[which].leaf);
		strcpy(args->spine_label, topology_labels[which].spine);
		strcpy(args->core_label, topology_labels[which].core);
	}
	return code;
}

static int32_t levels_read(const struct section *topology, struct args *args)
{
	const cJSON *list = section_field(topology, "levels"), *item;
	if (!cJSON_IsArray(list))
		return section_refuse(topology, "levels", "must be a list of label keys, nearest first", list);
	const char *keys[LEVELS_MAX];
	uint32_t count = 0;
	for (item = list->child; item != NULL; item = item->next, count++) {
		if (count == LEVELS_MAX)
			return complain(topology->complaint, 0,
					"args.topology.levels: has more than %u entries; allowed are NVLink domain, "
					"leaf, spine and core",
					LEVELS_MAX);
		if (!cJSON_IsString(item))
			return complain(topology->complaint, 0,
					"args.topology.levels[%u]: must be a label key in quotes", count);
		uint64_t len = strlen(item->valuestring);
		if (!is_label_key(item->valuestring, len))
			return complain(
				topology->complaint, 0,
				"args.topology.levels[%u]: \"%s\" is not a label key; allowed is " LABEL_KEY_RULE,
				count, shown(item->valuestring, len).text);
		for (uint32_t i = 0; i < count; i++) {
			if (strcmp(keys[i], item->valuestring) == 0)
				return complain(topology->complaint, 0,
						"args.topology.levels[%u]: repeats \"%s\"; each level has its own key",
						count, shown(item->valuestring, len).text);
		}
		keys[count] = item->valuestring;
	}
	if (count == 0)
		return complain(topology->complaint, 0,
				"args.topology.levels: is empty; 1 to %u label keys are allowed", LEVELS_MAX);

	/* Only all four begin with the NVLink domain: it has a default, a leaf has none. */
	char *const labels[LEVELS_MAX] = {args->domain_label, args->leaf_label, args->spine_label, args->core_label};
	uint32_t first = count == LEVELS_MAX ? 0 : 1;
	for (uint32_t i = 0; i < count; i++)
		strcpy(labels[first + i], keys[i]); /* its length is part of is_label_key */
	return FROND_OK;
}

static int32_t workload_defaults_read(const struct section *root, struct args *args)
{
	uint32_t strategy = args->strategy, mode = args->mode;
	int32_t code = section_choice(root, "defaultStrategy", &choice_strategy, &strategy);
	if (code == FROND_OK)
		code = section_choice(root, "defaultTopologyMode", &choice_mode, &mode);
	if (code != FROND_OK)
		return code;
	args->strategy = (enum strategy)strategy;
	args->mode = (enum mode)mode;

	const cJSON *wait = section_field(root, "defaultTopologyWait");
	if (wait == NULL)
		return FROND_OK;
	if (!cJSON_IsString(wait))
		return section_refuse(root, "defaultTopologyWait",
				      "must be a duration in quotes, for example \"10m\" or \"forever\"", wait);
	uint64_t len = strlen(wait->valuestring);
	const char *what = duration_read(wait->valuestring, len, &args->wait_ms);
	if (what != NULL)
		return complain(root->complaint, 0, "args.defaultTopologyWait: \"%s\" is not %s",
				shown(wait->valuestring, len).text, what);
	return FROND_OK;
}

/* Reference 3.3. There is no "forever": what never counts as lost makes gangs wait for it. */
static int32_t unavailable_read(const struct section *root, struct args *args)
{
	static const char what[] = "must be a duration of at most 1000h in quotes, for example \"1m\"";
	const cJSON *after = section_field(root, "unavailableAfter");
	int64_t ms;
	if (after == NULL)
		return FROND_OK;
	if (!cJSON_IsString(after) || duration_read(after->valuestring, strlen(after->valuestring), &ms) != NULL ||
	    ms == WAIT_FOREVER)
		return section_refuse(root, "unavailableAfter", what, after);
	args->unavailable_after_ms = ms;
	return FROND_OK;
}

static int32_t device_exit_read(const struct section *root, struct args *args)
{
	uint32_t exit = EXIT_ANNOTATE;
	int32_t code = section_choice(root, "deviceExit", &exit_words, &exit);
	if (code == FROND_OK && exit != EXIT_ANNOTATE)
		return complain(root->complaint, 0,
				"args.deviceExit: %s is not supported by this version yet, use annotate",
				exit_words.words[exit]);
	args->device_exit = (enum device_exit)exit;
	return code;
}

static int32_t resources_read(const struct section *root, struct args *args)
{
	const cJSON *list = section_field(root, "gpuResources"), *item;
	if (list == NULL)
		return FROND_OK;
	if (!cJSON_IsArray(list))
		return section_refuse(root, "gpuResources", "must be a list of resource names", list);
	uint32_t count = 0;
	for (item = list->child; item != NULL; item = item->next, count++) {
		if (count == FROND_RESOURCES_MAX)
			return complain(root->complaint, 0, "args.gpuResources: has more than %u entries",
					FROND_RESOURCES_MAX);
		if (!cJSON_IsString(item) || !is_resource_name(item->valuestring, strlen(item->valuestring)))
			return complain(root->complaint, 0,
					"args.gpuResources[%u]: must be a resource name: " RESOURCE_RULE, count);
		for (uint32_t i = 0; i < count; i++) {
			if (strcmp(args->resources[i], item->valuestring) == 0)
				return complain(root->complaint, 0, "args.gpuResources[%u]: repeats entry %u", count,
						i);
		}
		strcpy(args->resources[count], item->valuestring); /* its length is part of is_resource_name */
	}
	if (count == 0)
		return complain(root->complaint, 0, "args.gpuResources: is empty; 1 to %u resource names are allowed",
				FROND_RESOURCES_MAX);
	for (uint32_t i = count; i < FROND_RESOURCES_MAX; i++)
		args->resources[i][0] = '\0';
	args->resource_count = count;
	return FROND_OK;
}

static int32_t locks_read(const struct section *root, struct args *args)
{
	static const char *const known[] = {"enabled", "namespace"};
	struct section section = section_of(root, "deviceLocks", "args.deviceLocks");
	int32_t code = section_check(&section, known, COUNT(known));
	if (code == FROND_OK)
		code = section_bool(&section, "enabled", &args->locks_enabled);
	const cJSON *name = code == FROND_OK ? section_field(&section, "namespace") : NULL;
	if (name == NULL)
		return code;
	if (!cJSON_IsString(name) || !is_namespace_name(name->valuestring, strlen(name->valuestring)))
		return section_refuse(&section, "namespace", "must be a namespace: " NAMESPACE_RULE, name);
	strcpy(args->locks_namespace, name->valuestring); /* at most 63 bytes */
	return FROND_OK;
}

static int32_t recovery_section_read(const struct section *root, struct args *args)
{
	static const char *const known[] = {"policy", "nodeLeaseSeconds", "forceDelete", "maxConcurrentMoves",
					    "maxMovesPerMinute"};
	struct section section = section_of(root, "recovery", "args.recovery");
	uint32_t policy = args->recovery;
	int32_t code = section_check(&section, known, COUNT(known));
	if (code == FROND_OK)
		code = section_choice(&section, "policy", &choice_recovery, &policy);
	if (code == FROND_OK)
		code = section_whole(&section, "nodeLeaseSeconds", 1, NODE_LEASE_S_MAX, &args->node_lease_s);
	if (code == FROND_OK)
		code = section_bool(&section, "forceDelete", &args->force_delete);
	if (code == FROND_OK)
		code = section_whole(&section, "maxConcurrentMoves", 1, MOVES_MAX, &args->max_concurrent_moves);
	if (code == FROND_OK)
		code = section_whole(&section, "maxMovesPerMinute", 1, MOVES_MAX, &args->max_moves_per_minute);
	args->recovery = (enum recovery)policy;
	return code;
}
