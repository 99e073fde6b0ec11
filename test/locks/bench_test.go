// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"fmt"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/frond-scheduler/frond/plugin/locks"
)

// plain is the time for as many new Leases without anything in them, written by as many goroutines: what the API server
// itself needs on this machine.
func plain(b *testing.B, count int, qps float32) time.Duration {
	leases := client(b, qps).CoordinationV1().Leases(locks.DefaultNamespace)
	prefix := "plain-" + string(uuid.NewUUID())[:8]
	names := make(chan string, count)
	for i := range count {
		names <- fmt.Sprintf("%s-%d", prefix, i)
	}
	close(names)
	begin := time.Now()
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			for name := range names {
				if _, err := leases.Create(b.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
	return time.Since(begin)
}

// BenchmarkTakeAll locks whole gangs of one pod a node with 8 GPUs: on nodes that have no Lease yet, and again on the same
// nodes for the next gang, as it is from then on.
func BenchmarkTakeAll(b *testing.B) {
	for _, nodes := range []int{1, 64, 512} {
		for _, qps := range []float32{1000, 5000} {
			b.Run(fmt.Sprintf("nodes=%d/qps=%.0f", nodes, qps), func(b *testing.B) { takeAll(b, nodes, qps) })
		}
	}
}

func takeAll(b *testing.B, nodes int, qps float32) {
	l := start(b, qps, locks.Options{Holder: "bench", Leading: func() bool { return false }})
	gang := func(prefix string, first int) map[string][]locks.Claimant {
		want := map[string][]locks.Claimant{}
		for i := range nodes {
			name := fmt.Sprintf("%s-%d", prefix, i)
			claim := locks.Claimant{Pod: types.UID(uuid.NewUUID()), Namespace: "none", Name: fmt.Sprintf("p%d-%d", first, i)}
			for g := range 8 {
				claim.GPUs = append(claim.GPUs, fmt.Sprintf("%s-gpu-%d", name, first+g))
			}
			want[name] = []locks.Claimant{claim}
		}
		return want
	}
	base := plain(b, nodes, qps)
	for b.Loop() {
		prefix := "bench-" + string(uuid.NewUUID())[:8]
		for round, what := range []string{"new", "again"} {
			want := gang(prefix, 8*round)
			time.Sleep(2200 * time.Millisecond) // the burst of the client is there again
			begin := time.Now()
			if err := l.TakeAll(b.Context(), want); err != nil {
				b.Fatal(err)
			}
			took := time.Since(begin)
			b.ReportMetric(float64(took.Milliseconds()), "ms-"+what)
			b.ReportMetric(float64(nodes)/took.Seconds(), "writes/s-"+what)
		}
	}
	b.ReportMetric(float64(base.Milliseconds()), "ms-plain")
	b.ReportMetric(0, "ns/op")
}
