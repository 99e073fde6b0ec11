// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/frond-scheduler/frond/plugin/mirror"
	"github.com/frond-scheduler/frond/plugin/nodereport"
	"github.com/frond-scheduler/frond/plugin/status"
)

// Reports that the scheduler cannot use as they are, of this process's own picture.
var (
	staleReports   = reportGauge("stale_reports", "Nodes whose agent has not been heard of for too long; what it said last stays.")
	heldNodes      = reportGauge("held_nodes", "Nodes that take no new pods because their agent has not been heard of.")
	refusedReports = reportGauge("refused_reports", "Nodes whose newest report contradicts itself or its node; the last good one stays.")

	registerReports = sync.OnceFunc(func() { legacyregistry.MustRegister(staleReports, heldNodes, refusedReports) })
)

func reportGauge(name, help string) *metrics.Gauge {
	return metrics.NewGauge(&metrics.GaugeOpts{Subsystem: "topology_scheduler", Name: name, Help: help, StabilityLevel: metrics.ALPHA})
}

// watchReports starts what brings the agents' reports into the mirror. synced: decisions need not wait for them any more.
func (o *observer) watchReports(ctx context.Context, config *rest.Config, out *status.Writer) (synced func() bool, err error) {
	registerReports()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for GpuNodeStatus objects: %w", err)
	}
	reports, reportsSeen, err := o.mirror.WatchReports(o.logger, client, o)
	if err != nil {
		return nil, err
	}
	leases, leasesSeen, err := o.mirror.WatchRenewals(o.logger, o.first.ClientSet(), o.now)
	if err != nil {
		return nil, err
	}
	// Who was silent before we started is no better than who falls silent later.
	first := sync.OnceFunc(func() { o.mirror.CheckReports(o.now()) })
	synced = func() bool {
		if !reportsSeen() || !leasesSeen() {
			return false
		}
		first()
		return true
	}
	told := &toldReports{out: out, leading: o.leading, before: map[string]mirror.Verdict{}}
	go reports.RunWithContext(ctx)
	go leases.RunWithContext(ctx)
	go o.mirror.RunReports(ctx, synced, o.now, o, func() {
		told.tell(o.mirror.Verdicts())
		if o.caughtUp.Load() && o.reportsChanged.Swap(false) {
			o.wakeSingle(o.logger)
		}
	})
	return synced, nil
}

// toldReports writes verdicts into the conditions of reports, each when it changes. Only the leader writes; one that has just
// become it tells all of them, because nobody knows what the one before it still managed to write.
type toldReports struct {
	out     interface{ Report(status.ReportState) }
	leading func() bool
	before  map[string]mirror.Verdict
}

func (r *toldReports) tell(verdicts []mirror.Verdict) {
	stale, held, refused := 0, 0, 0
	leading := r.leading()
	now := make(map[string]mirror.Verdict, len(verdicts))
	for _, v := range verdicts {
		if v.Stale != "" {
			stale++
		}
		if v.Held {
			held++
		}
		if v.Refused != "" {
			refused++
		}
		if !leading {
			continue
		}
		told := v
		told.Stale, _, _ = strings.Cut(v.Stale, nodereport.Got) // with a wrong clock every heartbeat is late, and each has another time
		now[v.Node] = told
		if told != r.before[v.Node] {
			r.out.Report(status.ReportState{Name: v.Node, UID: v.UID, Refused: v.Refused, Stale: v.Stale, Held: v.Held})
		}
	}
	r.before = now
	staleReports.Set(float64(stale))
	heldNodes.Set(float64(held))
	refusedReports.Set(float64(refused))
}
