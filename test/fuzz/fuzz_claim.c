/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is the spec of a GpuClaim as JSON. What claim_read() accepts keeps its own limits; a refusal has a sentence
 * and leaves the claim as it was.
 */
#include "fuzz.h"

#include "text/claim.h"

static void check_prefer(const struct claim *claim)
{
	MUST(claim->prefer_count <= FROND_GPUS_MAX);
	for (uint32_t i = 0; i < claim->prefer_count; i++) {
		const struct claim_id *id = &claim->prefer[i];
		MUST(memchr(id->id, 0, sizeof id->id) != NULL);
		MUST(id->by_index ? id->index < FROND_GPUS_MAX && id->id[0] == 0 : id->id[0] != 0);
	}
}

static void check_labels(const struct claim *claim)
{
	MUST(claim->label_count <= CLAIM_LABELS_MAX);
	for (uint32_t i = 0; i < claim->label_count; i++) {
		const struct claim_label *label = &claim->labels[i];
		MUST(memchr(label->key, 0, sizeof label->key) != NULL && label->key[0] != 0);
		MUST(memchr(label->value, 0, sizeof label->value) != NULL);
		for (uint32_t j = 0; j < i; j++)
			MUST(strcmp(label->key, claim->labels[j].key) != 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct claim claim, before;
	struct complaint complaint;
	memset(&claim, 0xa5, sizeof claim);
	memset(&before, 0xa5, sizeof before);
	int32_t code = claim_read((const char *)data, (uint32_t)size, &claim, &complaint);
	MUST(code == FROND_OK || code == FROND_BAD);
	if (code == FROND_BAD) {
		must_be_sentence(complaint.text, strlen(complaint.text));
		MUST(memcmp(&claim, &before, sizeof claim) == 0);
		return 0;
	}
	MUST(claim.count <= FROND_GPUS_MAX && claim.min_gbps <= CLAIM_GBPS_MAX);
	MUST(claim.mode == MODE_REQUIRED || claim.mode == MODE_PREFERRED || claim.mode == MODE_IGNORE);
	MUST(memchr(claim.gang_ref, 0, sizeof claim.gang_ref) != NULL);
	check_prefer(&claim);
	check_labels(&claim);
	return 0;
}
