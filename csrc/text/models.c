/* SPDX-License-Identifier: Apache-2.0 */
#include "text/models.h"

#include <assert.h>
#include <string.h>

/* NVIDIA's first DGX with V100: a hybrid cube mesh, 25 GB/s for one link, 50 for two. */
static const uint32_t dgx_1v[8][FROND_GPUS_MAX] = {
	{0, 25, 25, 50, 50, 0, 0, 0}, {25, 0, 50, 25, 0, 50, 0, 0}, {25, 50, 0, 50, 0, 0, 25, 0},
	{50, 25, 50, 0, 0, 0, 0, 25}, {50, 0, 0, 0, 0, 25, 25, 50}, {0, 50, 0, 0, 25, 0, 50, 25},
	{0, 0, 25, 0, 25, 50, 0, 50}, {0, 0, 0, 25, 50, 25, 50, 0},
};

const struct model_known models_known[MODELS_KNOWN] = {
	{"DGX-1V", 8, 0, dgx_1v},   {"DGX-2", 16, 150, NULL},   {"A100-SXM", 8, 300, NULL},
	{"H100-SXM", 8, 450, NULL}, {"B200-SXM", 8, 900, NULL}, {"GB200", 4, 900, NULL},
	{"MI300X", 8, 64, NULL},    {"PCIE-4", 4, 0, NULL},     {"PCIE-8", 8, 0, NULL},
};

void models_fill(uint32_t index, struct fabric_model *out)
{
	assert(index < MODELS_KNOWN);
	const struct model_known *known = &models_known[index];
	out->gpus = known->gpus;
	memset(out->link_gbps, 0, sizeof(out->link_gbps));
	for (uint32_t i = 0; i < known->gpus; i++) {
		for (uint32_t j = 0; j < known->gpus; j++) {
			if (i != j)
				out->link_gbps[i][j] = known->links != NULL ? known->links[i][j] : known->pair_gbps;
		}
	}
	models_numa_default(out);
}

void models_numa_default(struct fabric_model *model)
{
	memset(model->numa, 0, sizeof(model->numa));
	for (uint32_t i = 0; i < model->gpus; i++)
		model->numa[i] = i >= (model->gpus + 1) / 2;
}
