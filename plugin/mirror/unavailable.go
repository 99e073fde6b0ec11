// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/frond-scheduler/frond/shim"
)

// Maintenance is not weather (reference 3.3): a node that has been cordoned, not ready or tainted for longer than
// unavailableAfter, and GPUs that have been unhealthy for as long, are no capacity for a gang's rule. The mirror knows since
// when: from the node's conditions and taints where they tell, else since it first saw it so. What opens again counts at
// once. A taint closes a node to some pods only, so the engine is not told: Known lists the taints that have lasted.

// age is since when things of a node have been as they are.
type age struct {
	begun  time.Time // the node's own word for it, when it is closed; zero: it has none
	closed time.Time // zero: open
	sick   [shim.GPUsMax]time.Time
	taints []tainted
	lasted int // taints that had lasted at the last look
}

type tainted struct {
	v1.Taint
	since time.Time
}

// SetUnavailableAfter says how long is too long, and whose clock counts; before the first node comes.
func (m *Mirror) SetUnavailableAfter(after time.Duration, now func() time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.after, m.now = after, now
}

// since when something is as it is: what was written about it, else now. A clock that runs ahead is not believed.
func (m *Mirror) since(written time.Time, now time.Time) time.Time {
	switch {
	case !written.IsZero() && written.Before(now):
		return written
	case written.IsZero() && m.snapshot:
		return now.Add(-m.after) // nobody watches: what there is, lasts
	default:
		return now
	}
}

func (m *Mirror) lasted(since, now time.Time) bool { return !now.Before(since.Add(m.after)) }

// begun is when a closed node says that it was closed; zero: it does not say.
func begun(object *v1.Node) (first time.Time) {
	earlier := func(at time.Time) {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for i := range object.Status.Conditions {
		if c := &object.Status.Conditions[i]; c.Type == v1.NodeReady && c.Status != v1.ConditionTrue {
			earlier(c.LastTransitionTime.Time)
		}
	}
	for i := range object.Spec.Taints {
		if t := &object.Spec.Taints[i]; object.Spec.Unschedulable && t.Key == v1.TaintNodeUnschedulable && t.TimeAdded != nil {
			earlier(t.TimeAdded.Time)
		}
	}
	return first
}

// keepsOut: a taint that keeps pods away for a while. What GPU nodes are dedicated with stays for good, and pods that ask for
// GPUs tolerate it; what goes with a cordon or a failure the engine knows.
func keepsOut(t *v1.Taint) bool {
	if t.Effect != v1.TaintEffectNoSchedule && t.Effect != v1.TaintEffectNoExecute {
		return false
	}
	switch t.Key {
	case "nvidia.com/gpu", "amd.com/gpu", v1.TaintNodeUnschedulable, v1.TaintNodeNotReady, v1.TaintNodeUnreachable:
		return false
	}
	return true
}

// setTaints keeps the time of those that were there before.
func (m *Mirror) setTaints(name string, n *node, taints []v1.Taint) {
	now, before := m.now(), n.age.taints
	n.age.taints = nil
	for _, t := range taints {
		if !keepsOut(&t) {
			continue
		}
		written := time.Time{}
		if t.TimeAdded != nil {
			written = t.TimeAdded.Time
		}
		since := m.since(written, now)
		for _, old := range before {
			if old.MatchTaint(&t) && old.Value == t.Value && old.since.Before(since) {
				since = old.since
			}
		}
		n.age.taints = append(n.age.taints, tainted{t, since})
	}
	n.age.lasted = len(m.lasting(n, now))
	m.watchAge(name, n, now)
}

// lasting are the taints of a node that have kept pods out for too long.
func (m *Mirror) lasting(n *node, now time.Time) (taints []v1.Taint) {
	for _, t := range n.age.taints {
		if m.lasted(t.since, now) {
			taints = append(taints, t.Taint)
		}
	}
	return taints
}

// grow marks in what the engine is told of a node what is no capacity for the rule.
func (m *Mirror) grow(name string, n *node, entry *shim.Node) {
	now := m.now()
	if entry.Flags&(shim.NodeCordoned|shim.NodeDown) == 0 {
		n.age.closed = time.Time{}
	} else {
		if n.age.closed.IsZero() {
			n.age.closed = m.since(n.age.begun, now)
		}
		if m.lasted(n.age.closed, now) {
			entry.Flags |= shim.NodeUnavailable
		}
	}
	for gpu := range n.age.sick {
		sick := &n.age.sick[gpu]
		switch {
		case entry.UnhealthyMask>>gpu&1 == 0:
			*sick = time.Time{}
			continue
		case sick.IsZero():
			*sick = m.since(time.Time{}, now)
		}
		if m.lasted(*sick, now) {
			entry.UnavailableMask |= 1 << gpu
		}
	}
	m.watchAge(name, n, now)
}

// watchAge keeps a node in mind of which something will have lasted too long.
func (m *Mirror) watchAge(name string, n *node, now time.Time) {
	young := func(since time.Time) bool { return !since.IsZero() && !m.lasted(since, now) }
	if young(n.age.closed) || slices.ContainsFunc(n.age.sick[:], young) ||
		slices.ContainsFunc(n.age.taints, func(t tainted) bool { return young(t.since) }) {
		m.aging[name] = struct{}{}
	} else {
		delete(m.aging, name)
	}
}

// Age looks for what has lasted too long by now. changed: gangs have another rule than before.
func (m *Mirror) Age() (changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.aging {
		n := m.nodes[name]
		if n == nil {
			delete(m.aging, name)
			continue
		}
		now := m.now()
		if lasted := len(m.lasting(n, now)); lasted != n.age.lasted {
			n.age.lasted, changed = lasted, true
		}
		renewed, _ := m.renew(name, false) // a pod that the engine cannot take was told when it came
		changed = renewed || changed
		if m.nodes[name] != nil {
			m.watchAge(name, n, now)
		}
	}
	return changed
}

// agePause is how often nodes are looked at that have been closed for some time.
const agePause = time.Second

// RunAge looks at them until the context ends. Gangs that wait may start when less is asked of them.
func (m *Mirror) RunAge(ctx context.Context, observer Observer) {
	ticker := time.NewTicker(agePause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if m.Age() {
				observer.Freed(true)
			}
			m.Tell(observer)
		}
	}
}
