// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/frond-scheduler/frond/plugin/locks"
	"github.com/frond-scheduler/frond/test/harness"
)

// The real API server refuses a Binding from before a revocation, takes one from after it, and lets the account do all
// that locks need.
func TestARevokedReservationCannotBeBound(t *testing.T) {
	namespace := lab.Namespace(t)
	before := pod(t, namespace, "p")
	paused := start(t, 1000, locks.Options{Holder: "paused", Leading: func() bool { return false }})
	if err := paused.Take(t.Context(), "node-9", []locks.Claimant{claim(before, "node-9-gpu-0")}); err != nil {
		t.Fatal(err)
	}
	leader := start(t, 1000, locks.Options{Holder: "leader", Patience: 100 * time.Millisecond})
	harness.Eventually(t, 10*time.Second, func(context.Context) error {
		if got := owners(t, "node-9"); got != "{}" {
			return fmt.Errorf("owners are %s", got)
		}
		return nil
	})
	if err := bind(t.Context(), client(t, 100), before, "node-9", []string{"node-9-gpu-0"}); !apierrors.IsConflict(err) {
		t.Fatalf("a Binding from before: %v", err)
	}
	other := pod(t, namespace, "q")
	if err := leader.Take(t.Context(), "node-9", []locks.Claimant{claim(other, "node-9-gpu-0")}); err != nil {
		t.Fatal(err)
	}
	var held *locks.HeldError
	if err := paused.Take(t.Context(), "node-9", []locks.Claimant{claim(before, "node-9-gpu-0")}); !errors.As(err, &held) || held.Owner != other.UID || !held.Pending {
		t.Fatalf("taken again: %v", err)
	}
	after, err := lab.Client.CoreV1().Pods(namespace).Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := paused.Take(t.Context(), "node-9", []locks.Claimant{claim(after, "node-9-gpu-1")}); err != nil {
		t.Fatal(err)
	}
	if err := bind(t.Context(), client(t, 100), after, "node-9", []string{"node-9-gpu-1"}); err != nil {
		t.Fatal(err)
	}
}

func TestALockGoesWithItsNode(t *testing.T) {
	namespace := lab.Namespace(t)
	p := pod(t, namespace, "p")
	l := start(t, 1000, locks.Options{Holder: "leader", HasNode: func(name string) bool { return !strings.HasPrefix(name, "gone-") }})
	for _, name := range []string{"gone-1", "node-10"} {
		if err := l.Take(t.Context(), name, []locks.Claimant{claim(p, name+"-gpu-0")}); err != nil {
			t.Fatal(err)
		}
	}
	l.Compare(t.Context())
	if got := owners(t, "gone-1"); !strings.Contains(got, string(p.UID)) {
		t.Fatalf("a living pod has lost its lock: %s", got)
	}
	now := int64(0)
	if err := lab.Client.CoreV1().Pods(namespace).Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	if report := l.Compare(t.Context()); report.Deleted != 1 || len(report.Errors) != 0 {
		t.Errorf("%+v", report)
	}
	if got := owners(t, "node-10"); got != "{}" {
		t.Errorf("node-10: %s", got)
	}
}

// The rights over Leases end at the namespace of the locks.
func TestRightsEndAtTheNamespace(t *testing.T) {
	c := client(t, 100)
	for _, namespace := range []string{"default", "kube-node-lease"} {
		if err := c.CoordinationV1().Leases(namespace).Delete(t.Context(), "node-1", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("delete in %s: %v", namespace, err)
		}
		if _, err := c.CoordinationV1().Leases(namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("list in %s: %v", namespace, err)
		}
	}
}
