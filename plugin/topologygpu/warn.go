// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// Reasons of the Warning events that a gang's lead, or a single pod, gets when it is placed.
const (
	reasonUnknownDomain = "UnknownDomain"
	reasonUnknownGPU    = "UnknownPreferredGPU"
	reasonNoTopology    = "NoTopology"
	reasonRuleNeverMet  = "RuleNeverMet"
	reasonRuleRelaxed   = "RuleRelaxed"
	reasonMixedModels   = "MixedGPUModels"
)

// warn turns what was special about a plan into events, each once: fresh says whether a flag is news.
func (p *Plugin) warn(pod *v1.Pod, plan shim.Plan, fresh func(shim.PlanFlag) bool) {
	tell := func(flag shim.PlanFlag, reason, text string) {
		if plan.Flags&flag != 0 && fresh(flag) {
			p.handle.EventRecorder().Eventf(pod, nil, v1.EventTypeWarning, reason, "Scheduling", "%s", text)
		}
	}
	domain := p.reader.Annotations(pod)[workload.PreferredDomain]
	tell(shim.PlanUnknownDomain, reasonUnknownDomain, fmt.Sprintf("%s %.63q names nothing in the fabric and is ignored", workload.PreferredDomain, domain))
	if plan.Flags&shim.PlanUnknownGPU != 0 {
		tell(shim.PlanUnknownGPU, reasonUnknownGPU, unknownGPUs(p.reader.UnknownGPUs(pod)))
	}
	tell(shim.PlanNoTopology, reasonNoTopology, "the cluster has no topology; the job is placed without a rule")
	tell(shim.PlanShapeless, reasonRuleNeverMet, fmt.Sprintf("the cluster never has the shape that the rule %q asks for; it counts as a preference", plan.Rule.String()))
	if plan.Outcome == shim.Placed {
		tell(shim.PlanRelaxed, reasonRuleRelaxed, fmt.Sprintf("the rule %q could not be met and was allowed to break", plan.Rule.String()))
		tell(shim.PlanMixedModels, reasonMixedModels, "its GPUs are of more than one model: no place with a single one is as good by the steps before")
	}
}

// unknownGPUs names the first ids that nobody knows.
func unknownGPUs(ids []string) string {
	const most = 4
	text := "preferIds of its GpuClaim lists GPUs that are not in the cluster"
	for i, id := range ids[:min(len(ids), most)] {
		if i == 0 {
			text += ":"
		}
		text += fmt.Sprintf(" %.64q", id)
	}
	if len(ids) > most {
		text += fmt.Sprintf(" and %d more", len(ids)-most)
	}
	return text + "; they are ignored"
}
