/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/plan.h"

#include "sim/summary.h"

int32_t plan_run(const struct planning *planning, struct report *report, struct complaint *complaint)
{
	struct sim sim;
	int32_t code = sim_open(&sim, planning, complaint);
	if (code == FROND_OK)
		report_begin(report);
	for (uint32_t i = 0; i < planning->jobs->count && code == FROND_OK; i++) {
		const struct job *job = &planning->jobs->list[i];
		code = sim_job(&sim, i);
		if (code != FROND_OK || job->removes != FROND_NONE)
			continue;
		struct warnings warnings = warnings_of(planning->fabric, planning->jobs, job, sim.plan.flags);
		if (sim.plan.outcome == FROND_PLACED)
			report_placed(report, &(struct answer_placed){.name = job->name,
								      .plan = &sim.plan,
								      .places = sim.places,
								      .members = sim.placed[i],
								      .asked = job->members,
								      .scratch = sim.scratch,
								      .warnings = &warnings});
		else
			report_refused(report, job->name, sim.reason, &warnings);
	}
	if (code == FROND_OK)
		report_end(report);
	if (code == FROND_OK)
		code = summary_write(&sim, report);
	sim_close(&sim);
	return code;
}
