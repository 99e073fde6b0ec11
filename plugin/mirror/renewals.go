// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/plugin/nodereport"
)

// renewal is the Lease of a node's agent. A time in it is by the node's clock, and nobody knows how wrong that is; so what
// counts is when a later one was seen here, as with the Leases of kubelets. Only the first one, and one that goes back, count
// as what they say: who was silent before we started is no better than who falls silent later.
type renewal struct {
	said  time.Time // renewTime
	heard time.Time // of the agent, by this process's clock
	wrote bool      // a report since the last look: a sign of life as well
	gone  bool      // the Lease was deleted; its agent makes it again, if it lives
}

// SetRenewal takes the renewTime of the Lease of a node's agent.
func (m *Mirror) SetRenewal(name string, said, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.renewals[name]
	if r == nil {
		r = &renewal{said: said, heard: said}
		m.renewals[name] = r
	}
	switch r.gone = false; {
	case said.After(r.said):
		r.heard = now
	case said.Before(r.said):
		r.heard = said
	}
	if r.heard.After(now) {
		r.heard = now
	}
	r.said = said
}

// DropRenewal: the Lease is gone. Its last renewal counts for as long as it would have.
func (m *Mirror) DropRenewal(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.renewals[name]; r != nil {
		r.gone = true
	}
}

// wroteReport: where there is a Lease, a report is a sign of life, whatever time is in it. An agent that may not renew its
// Lease any more, or an older one in its place, says by reports that it lives.
func (m *Mirror) wroteReport(before, report *nodereport.Report) {
	if r := m.renewals[report.Node]; r != nil && before != nil && !before.Heartbeat.Equal(report.Heartbeat) {
		r.wrote = true
	}
}

// silent is why nobody knows whether a node's report is still true; "": its agent was heard of.
func (m *Mirror) silent(name string, report *nodereport.Report, now time.Time) string {
	r := m.renewals[name]
	switch {
	case r == nil: // an older agent, or one that may not have a Lease
		return report.Stale(now)
	case now.Sub(r.heard) <= nodereport.Patience:
		return ""
	case r.gone:
		return report.Stale(now)
	}
	return fmt.Sprintf("Lease %s/%s%s: must be renewed within %s%s%s", apis.HeartbeatNamespace, apis.HeartbeatPrefix, name,
		nodereport.Patience, nodereport.Got, r.said.UTC().Format(time.RFC3339))
}

// checkRenewals forgets Leases that are gone for good.
func (m *Mirror) checkRenewals(now time.Time) {
	for name, r := range m.renewals {
		if r.wrote {
			r.heard, r.wrote = now, false
		}
		if r.gone && now.Sub(r.heard) > nodereport.Patience {
			delete(m.renewals, name)
		}
	}
}

// heartbeat is what the informer keeps of a Lease: there are thousands.
type heartbeat struct {
	metav1.ObjectMeta
	said time.Time // zero: never renewed
}

func readLease(object any) (any, error) {
	lease, ok := object.(*coordinationv1.Lease)
	if !ok {
		return object, nil // read already, or a tombstone of one that is
	}
	kept := &heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name, ResourceVersion: lease.ResourceVersion}}
	if lease.Spec.RenewTime != nil {
		kept.said = lease.Spec.RenewTime.Time
	}
	return kept, nil
}

// node of a Lease that an agent renews; "": it is none.
func (h *heartbeat) node() string {
	name, ours := strings.CutPrefix(h.Name, apis.HeartbeatPrefix)
	if !ours || h.said.IsZero() {
		return ""
	}
	return name
}

// WatchRenewals makes an informer of the Leases that agents renew, and of no others; the caller runs it. synced: all that were
// there at the start are known, or none can be read, which is said once: then reports say themselves how old they are.
func (m *Mirror) WatchRenewals(logger klog.Logger, client kubernetes.Interface, now func() time.Time) (informer cache.SharedIndexInformer, synced func() bool, err error) {
	informer = coordinationinformers.NewFilteredLeaseInformer(client, apis.HeartbeatNamespace, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.LabelSelector = apis.HeartbeatLabel })
	var once sync.Once
	var unreadable atomic.Bool
	err = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			unreadable.Store(true)
		}
		once.Do(func() {
			logger.Info("Leases of agents cannot be read; reports are as old as they say", "namespace", apis.HeartbeatNamespace, "err", err)
		})
	})
	if err == nil {
		err = informer.SetTransform(readLease)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("preparing to watch Leases of agents: %w", err)
	}
	set := func(object any) {
		if kept, ok := object.(*heartbeat); ok && kept.node() != "" {
			m.SetRenewal(kept.node(), kept.said, now())
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, object any) { set(object) },
		DeleteFunc: func(object any) {
			if kept, ok := last[*heartbeat](object); ok {
				m.DropRenewal(kept.node())
			}
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watching Leases of agents: %w", err)
	}
	return informer, func() bool { return unreadable.Load() || registration.HasSynced() }, nil
}
