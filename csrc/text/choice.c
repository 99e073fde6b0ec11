/* SPDX-License-Identifier: Apache-2.0 */
#include "text/choice.h"

#include "text/words.h"

#include <stdio.h>
#include <string.h>

const struct choice choice_strategy = {3,
				       {[STRATEGY_BALANCED] = "balanced",
					[STRATEGY_CONSOLIDATED] = "consolidated",
					[STRATEGY_DISTRIBUTED] = "distributed"}};
const struct choice choice_mode = {
	3, {[MODE_REQUIRED] = "Required", [MODE_PREFERRED] = "Preferred", [MODE_IGNORE] = "Ignore"}};
const struct choice choice_recovery = {
	3, {[RECOVERY_REPLACE] = "Replace", [RECOVERY_MOVE_GANG] = "MoveGang", [RECOVERY_WAIT] = "Wait"}};

uint32_t choice_find(const struct choice *choice, const char *value, uint64_t len)
{
	for (uint32_t i = 0; i < choice->count; i++) {
		if (strlen(choice->words[i]) == len && memcmp(choice->words[i], value, len) == 0)
			return i;
	}
	return FROND_NONE;
}

struct choice_list choice_list(const struct choice *choice)
{
	struct choice_list out = {""};
	uint32_t used = 0;
	for (uint32_t i = 0; i < choice->count && used < sizeof(out.text); i++) {
		const char *between = i == 0 ? "" : i + 1 == choice->count ? " or " : ", ";
		used += (uint32_t)snprintf(out.text + used, sizeof(out.text) - used, "%s%s", between, choice->words[i]);
	}
	return out;
}
