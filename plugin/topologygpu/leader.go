// SPDX-License-Identifier: Apache-2.0

package topologygpu

import "k8s.io/component-base/metrics/legacyregistry"

// leaderMetric is upstream's own gauge, 1 while this process leads. Upstream tells plugins nothing about leadership, and a
// standby runs them, too.
const leaderMetric = "leader_election_master_status"

// Leading says whether this process is the leader, or is alone because leader election is off.
func Leading() bool {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return false // half a picture: better to leave things to the next round
	}
	elected := false
	for _, family := range families {
		if family.GetName() != leaderMetric {
			continue
		}
		elected = true
		for _, metric := range family.GetMetric() {
			if metric.GetGauge().GetValue() == 1 {
				return true
			}
		}
	}
	return !elected
}
