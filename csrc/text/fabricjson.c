/* SPDX-License-Identifier: Apache-2.0 */
/* A fabric as the JSON of frond_abi.fabric_expand: every node in full, in fabric order. */
#include "text/fabricfile.h"

#include "text/json.h"

#include <stdlib.h>

static void fabric_write(struct out *out, const struct fabricfile *fabric);
static void node_write(struct out *out, const struct fabricfile *fabric, const struct fabric_node *node);
static void mask_write(struct out *out, uint32_t mask);
static void word_write(struct out *out, const char *text);

char *fabricfile_json(const struct fabricfile *fabric)
{
	struct out out = {0}; /* the first pass only counts */
	fabric_write(&out, fabric);
	if (out.len >= UINT32_MAX)
		return NULL;
	uint32_t cap = (uint32_t)out.len + 1;
	char *text = malloc(cap);
	if (text == NULL)
		return NULL;
	out = (struct out){.text = text, .cap = cap};
	fabric_write(&out, fabric);
	return text;
}

static void fabric_write(struct out *out, const struct fabricfile *fabric)
{
	out_printf(out, "{\"nodes\":[");
	for (uint32_t i = 0; i < fabric->node_count; i++) {
		out_printf(out, "%s", i == 0 ? "" : ",");
		node_write(out, fabric, &fabric->nodes[i]);
	}
	out_printf(out, "]}");
}

/* No model is "", unlimited is 0. */
static void node_write(struct out *out, const struct fabricfile *fabric, const struct fabric_node *node)
{
	const struct fabric_leaf *leaf = &fabric->leaves[node->leaf];
	out_printf(out, "{\"name\":");
	word_write(out, node->name);
	out_printf(out, ",\"spine\":");
	word_write(out, fabric->spines[leaf->spine].name);
	out_printf(out, ",\"leaf\":");
	word_write(out, leaf->name);
	out_printf(out, ",\"gpus\":%u,\"model\":", node->gpus);
	word_write(out, node->model == FROND_NONE ? "" : fabric->models[node->model].name);
	out_printf(out, ",\"uplinkGbps\":%u,\"usedGpus\":", node->uplink_gbps);
	mask_write(out, node->used_mask);
	out_printf(out, ",\"unhealthyGpus\":");
	mask_write(out, node->unhealthy_mask);
	out_printf(out, ",\"cordoned\":%s,\"labels\":{", node->cordoned ? "true" : "false");
	for (uint32_t i = 0; i < node->label_count; i++) {
		out_printf(out, "%s", i == 0 ? "" : ",");
		word_write(out, node->labels[i].key);
		out_printf(out, ":");
		word_write(out, node->labels[i].value);
	}
	out_printf(out, "}}");
}

static void mask_write(struct out *out, uint32_t mask)
{
	out_printf(out, "[");
	for (uint32_t gpu = 0, written = 0; gpu < FROND_GPUS_MAX; gpu++) {
		if ((mask & 1u << gpu) != 0)
			out_printf(out, "%s%u", written++ == 0 ? "" : ",", gpu);
	}
	out_printf(out, "]");
}

static void word_write(struct out *out, const char *text)
{
	json_string(out, text, strlen(text));
}
