// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Upstream tells plugins nothing about leadership, and a standby runs them, too. What upstream's election does tell, as it
// happens, is a provider of metrics. There can be one only, so ours keeps the two metrics that upstream's would: main does not
// link upstream's.
var (
	leaderStatus = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name:           "leader_election_master_status",
		StabilityLevel: metrics.ALPHA,
		Help:           "1 while this process is the leader by the Lease of that name, 0 while it is a standby.",
	}, []string{"name"})
	leaderSlowpath = metrics.NewCounterVec(&metrics.CounterOpts{
		Name:           "leader_election_slowpath_total",
		StabilityLevel: metrics.ALPHA,
		Help:           "How often the leader had to read the Lease of that name before it renewed it.",
	}, []string{"name"})

	registerLeader = sync.OnceFunc(func() { legacyregistry.MustRegister(leaderStatus, leaderSlowpath) })
)

// leaderAge is how late the work of a new leader may begin: who does it asks once in so long, and who must be certain asks the
// API server.
const leaderAge = time.Second

// unelected is how long after everything has been seen upstream may take to begin with its election. It begins at once.
const unelected = 10 * time.Second

// Leader knows whether this process leads: the election says so at each change.
type Leader struct {
	mu     sync.Mutex
	leases map[string]bool // by name of their Leases: is this process the leader
}

// WatchElection makes a Leader of this process, before upstream begins with its election. Only the first call has an effect
// on what is heard.
func WatchElection() *Leader {
	l := &Leader{leases: map[string]bool{}}
	leaderelection.SetProvider(l)
	return l
}

var _ leaderelection.MetricsProvider = &Leader{}

// NewLeaderMetric is called once by each election.
func (l *Leader) NewLeaderMetric() leaderelection.LeaderMetric {
	registerLeader()
	return leaderMetric{l}
}

// Leading says whether this process is the leader; elected is false when there is no election, or none yet.
func (l *Leader) Leading() (leading, elected bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, leads := range l.leases {
		leading = leading || leads
	}
	return leading, len(l.leases) > 0
}

func (l *Leader) set(lease string, leads bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases[lease] = leads
}

type leaderMetric struct{ leader *Leader }

func (m leaderMetric) On(lease string) {
	m.leader.set(lease, true)
	leaderStatus.WithLabelValues(lease).Set(1)
}

func (m leaderMetric) Off(lease string) {
	m.leader.set(lease, false)
	leaderStatus.WithLabelValues(lease).Set(0)
}

func (m leaderMetric) SlowpathExercised(lease string) { leaderSlowpath.WithLabelValues(lease).Inc() }

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
