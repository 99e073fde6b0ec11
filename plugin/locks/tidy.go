// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pass is one round of tidying: what one node was asked to free (the zero value), or all nodes against the bound pods.
type pass struct {
	all    bool                            // judge every entry, not only those that are to be freed
	bound  map[string]map[string][]Holding // by node and GPU
	census func() (map[types.UID]sighting, error)

	mu     sync.Mutex
	report Report
	wait   time.Duration // until a reservation of another scheduler may be revoked; 0: there is none
}

func (p *pass) done(d *draft) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.add(d.fixed)
	p.report.Doubles = append(p.report.Doubles, d.doubles...)
}

func (p *pass) due(in time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wait == 0 || in < p.wait {
		p.wait = in
	}
}

func (p *pass) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Errors = append(p.report.Errors, err)
}

// tidy brings one Lease in line: one write, however many entries change. It repeats when overtaken.
func (l *Locks) tidy(ctx context.Context, name string, p *pass) error {
	n, err := l.enter(ctx, name)
	if err != nil {
		return fmt.Errorf("tidy the lock of node %s: %w", name, err)
	}
	defer l.leave(n)
	lease, content, usable := l.known(n)
	for attempt := 0; ; attempt++ {
		if !usable {
			if lease, content, err = l.read(ctx, n); err != nil {
				return fmt.Errorf("tidy the lock of node %s: %w", name, err)
			}
		}
		usable = false
		err := l.tidyOnce(ctx, n, lease, content, p)
		if err == nil {
			return nil
		}
		if judgeWrite(err) == refused || attempt >= maxRaces {
			return fmt.Errorf("tidy the lock of node %s: %w", name, err)
		}
		if stop := l.wait(ctx, backoff(attempt)); stop != nil {
			return fmt.Errorf("tidy the lock of node %s: %w", name, errors.Join(stop, err))
		}
	}
}

// tidyOnce works in these steps: what is certain is changed; reservations that are to go are marked as revoked, their
// pods fenced, and then freed, unless somebody took them again in between.
func (l *Locks) tidyOnce(ctx context.Context, n *node, lease *coordinationv1.Lease, content table, p *pass) error {
	if content.alien || content.whole && !p.all { // only a comparison can tell what belongs there
		return nil
	}
	d := l.draft(n, p)
	if err := d.make(ctx, content, lease != nil); err != nil {
		return err
	}
	if len(d.revoke) > 0 {
		d.mark()
		marked := d.next.clone()
		var err error
		if lease, err = l.swap(ctx, n, lease, marked); err != nil {
			return err
		}
		if err := d.fence(ctx); err != nil {
			return err
		}
		content = marked
	}
	same := lease == nil && len(d.next.owners) == 0 || lease != nil && d.next.equal(content) && !l.inDoubt(n, lease)
	if !same {
		var err error
		if lease, err = l.swap(ctx, n, lease, d.next); err != nil {
			return err
		}
	}
	// Emptied first and deleted then: whoever watches sees that nobody lost anything.
	gone, err := l.nodeGone(ctx, n.name, lease, d.next)
	if err != nil {
		return err
	}
	if gone {
		if err := l.remove(ctx, n, lease); err != nil {
			return err
		}
		d.fixed.Deleted++
	}
	d.finish()
	return nil
}

// nodeGone: nobody owns anything here, and the node itself is gone, live.
func (l *Locks) nodeGone(ctx context.Context, name string, lease *coordinationv1.Lease, next table) (bool, error) {
	if lease == nil || len(next.owners) > 0 || l.opts.HasNode == nil || l.opts.HasNode(name) {
		return false, nil
	}
	err := l.persist(ctx, func(ctx context.Context) error {
		_, err := l.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read node %s: %w", name, err)
	}
	return false, nil
}
