// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/test/harness"
	"github.com/frond-scheduler/frond/test/judge"
)

// A Lease that somebody has edited by hand: what runs goes on, nobody gets its GPUs, others are placed meanwhile, and the
// Lease says again who owns what after the comparison that runs once a minute.
func TestLeaseEditedByHand(t *testing.T) {
	for _, c := range []struct{ name, owners string }{
		{"no JSON", "not JSON"},
		{"another kind of JSON", `["node-1-gpu-0"]`},
		{"owners that are nobody", `{"node-1-gpu-0":"nobody","elsewhere":"7"}`},
		{"empty", ""},
	} {
		if !full() && c.name != "no JSON" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			ns := lab.Namespace(t)
			j, err := judge.Watch(t.Context(), lab.Client, judge.Rules{Profiles: []string{harness.Profile}}) // locks are what is broken here
			if err != nil {
				t.Fatal(err)
			}
			lab.Run(t, harness.Setup{})
			submit(t, j, ns, harness.Gang{Name: "first", Pods: 2, GPUs: 8}, healing)
			node := lab.Bound(t, ns, harness.Gang{Name: "first", Pods: 2})[0].Spec.NodeName
			leases := lab.Client.CoordinationV1().Leases("frond-system")
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"gpu.scheduling/owners":%q}}}`, c.owners)
			if _, err := leases.Patch(t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			submit(t, j, ns, harness.Gang{Name: "second", Pods: 16, GPUs: 8}, healing)
			bystander(t, j, ns)
			verdict(t, j, settling)
			harness.Eventually(t, 90*time.Second, func(ctx context.Context) error {
				lease, err := leases.Get(ctx, node, metav1.GetOptions{})
				if err != nil {
					return err
				}
				text := lease.Annotations["gpu.scheduling/owners"]
				owners := map[string]string{}
				if err := json.Unmarshal([]byte(text), &owners); err != nil {
					return fmt.Errorf("%s still says %q: %w", node, text, err)
				}
				if len(owners) != 8 || owners[node+"-gpu-0"] == "nobody" {
					return fmt.Errorf("%s says %s, and all of its eight GPUs have one owner", node, text)
				}
				return nil
			})
		})
	}
}
