// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
)

// leaderMetric is upstream's own gauge, 1 while this process leads. Upstream tells plugins nothing about leadership, and a
// standby runs them, too.
const leaderMetric = "leader_election_master_status"

// leaderAge is how old an answer may be: looking costs a millisecond, and who must be certain asks the API server.
const leaderAge = time.Second

// Leader knows whether this process leads.
type Leader struct {
	mu      sync.Mutex
	at      time.Time
	leading bool
}

// Leading says whether this process is the leader, or is alone because leader election is off.
func (l *Leader) Leading() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) > leaderAge {
		l.leading, l.at = leads(), time.Now()
	}
	return l.leading
}

func leads() bool {
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
