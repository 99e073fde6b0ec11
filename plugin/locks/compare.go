// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Double is a GPU with two bound pods. It is reported and left alone: both run, and only people can say which must go.
type Double struct {
	Node string
	GPU  string
	Pods []types.UID
}

// Report of a comparison.
type Report struct {
	Repairs
	Doubles []Double // by node and GPU
	Errors  []error  // nodes that could not be compared; the next comparison tries again
}

// Compare finds differences between Leases and bound pods, and repairs them: entries without a living pod are freed, bound
// pods entered, damaged Leases rebuilt, Leases of nodes that are gone deleted. Run calls it every minute.
func (l *Locks) Compare(ctx context.Context) Report {
	p := &pass{all: true, bound: map[string]map[string][]Holding{}}
	p.census = sync.OnceValues(func() (map[types.UID]sighting, error) { return l.census(ctx) })
	nodes := map[string]bool{}
	l.mu.Lock()
	for name := range l.nodes {
		nodes[name] = true
	}
	l.mu.Unlock()
	if l.opts.Bound != nil {
		for _, h := range l.opts.Bound() {
			if err := check(h.Node, []Claimant{h.Claimant}); err != nil {
				p.failed(err)
				continue
			}
			gpus := p.bound[h.Node]
			if gpus == nil {
				gpus = map[string][]Holding{}
				p.bound[h.Node] = gpus
			}
			for _, gpu := range h.GPUs {
				gpus[gpu] = append(gpus[gpu], h)
				slices.SortFunc(gpus[gpu], func(a, b Holding) int { return cmp.Compare(a.Pod, b.Pod) })
			}
			nodes[h.Node] = true
		}
	}
	names := slices.Sorted(maps.Keys(nodes))
	parallel(len(names), func(i int) {
		if l.agrees(names[i], p.bound[names[i]]) {
			return
		}
		if err := l.tidy(ctx, names[i], p); err != nil {
			p.failed(err)
		}
	})
	slices.SortFunc(p.report.Doubles, func(a, b Double) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.GPU, b.GPU))
	})
	slices.SortFunc(p.report.Errors, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	if p.wait > 0 {
		l.soon(p.wait)
	}
	return p.report
}

// agrees: nothing is to be done, which is so for nearly every node of every comparison.
func (l *Locks) agrees(name string, gpus map[string][]Holding) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.nodes[name]
	if n == nil || n.lease == nil || n.table.err != nil || len(n.unwanted) > 0 || n.doubtful() || len(n.table.owners) != len(gpus) || len(gpus) == 0 {
		return false
	}
	for gpu, uid := range n.table.owners {
		if holders := gpus[gpu]; len(holders) != 1 || holders[0].Pod != uid {
			return false
		}
	}
	return true
}
