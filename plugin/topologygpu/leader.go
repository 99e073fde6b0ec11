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

// unelected is how long after everything has been seen upstream may take to begin with its election. It begins at once.
const unelected = 10 * time.Second

// Leader knows whether this process leads.
type Leader struct {
	mu      sync.Mutex
	at      time.Time
	leading bool
	elected bool
}

// Leading says whether this process is the leader; elected is false when there is no election, or none yet.
func (l *Leader) Leading() (leading, elected bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) > leaderAge {
		l.leading, l.elected = leads()
		l.at = time.Now()
	}
	return l.leading, l.elected
}

func leads() (leading, elected bool) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return false, true // half a picture: better to leave things to the next round
	}
	for _, family := range families {
		if family.GetName() != leaderMetric {
			continue
		}
		elected = true
		for _, metric := range family.GetMetric() {
			leading = leading || metric.GetGauge().GetValue() == 1
		}
	}
	return leading, elected
}

// leadsAlone: where there is no election this process is alone. While there is none yet it cannot be told apart from that,
// but for two signs: pods are being scheduled, or everything has long been seen and still nobody has been elected.
func (c *cluster) leadsAlone() bool {
	if c.caughtUp.Load() {
		return true
	}
	if c.synced == nil || !c.synced() {
		return false
	}
	c.seenAll.CompareAndSwap(nil, new(c.now()))
	return c.now().Sub(*c.seenAll.Load()) > unelected
}
