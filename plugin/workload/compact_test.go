// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math/rand"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Whatever stands in an object of a third party, reading it gives an answer: a CRD may have any schema.
func TestOddObjectsAreReadAllTheSame(t *testing.T) {
	seed := time.Now().UnixNano()
	random := rand.New(rand.NewSource(seed))
	r := reader(t)
	samples := []*unstructured.Unstructured{
		parse(t, jobSetText("startupPolicy: {startupPolicyOrder: InOrder}", "status: {replicatedJobsStatus: [{name: workers, succeeded: 1}]}")),
		parse(t, lwsText("startupPolicy: LeaderReady")),
		parse(t, trainingText("v2beta1", "MPIJob", replica("Launcher", 1, 0)+", "+replica("Worker", 3, 8), ", runLauncherAsWorker: true, runPolicy: {schedulingPolicy: {minAvailable: 2, scheduleTimeoutSeconds: 9, minResources: {cpu: 1}}}}, status: {replicaStatuses: {Worker: {succeeded: 1}}}")),
		parse(t, groupText("scheduling.x-k8s.io/v1alpha1", "{minMember: 8, scheduleTimeoutSeconds: 9, minResources: {cpu: 1}}")),
		parse(t, groupText("scheduling.k8s.io/v1beta1", "{schedulingPolicy: {gang: {minCount: 4}}}")),
		parse(t, claimText("c", "{devices: {count: 8, exclusivity: Exclusive}, topology: {mode: Required}, selector: {matchLabels: {zone: a}}, gangRef: g}")),
	}
	for range 3000 {
		object := samples[random.Intn(len(samples))].DeepCopy()
		for range 1 + random.Intn(3) {
			for _, part := range []string{"spec", "status"} {
				if value, found := object.Object[part]; found {
					object.Object[part] = mutate(random, value)
				}
			}
		}
		kept, err := r.Compact(object)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		switch kept := kept.(type) {
		case *Owner:
			for _, gang := range kept.Gangs {
				if gang.Spec.Problem == "" && (gang.Spec.MinMember < 1 || int64(gang.Spec.MinMember) > kept.Pods()) {
					t.Fatalf("seed %d: %+v of %v", seed, gang, object)
				}
			}
		case *Group:
			if kept.Spec.Problem == "" && kept.Spec.MinMember < 1 {
				t.Fatalf("seed %d: %+v of %v", seed, kept, object)
			}
		case *Claim:
			if kept.Problem == "" && kept.JSON == "" {
				t.Fatalf("seed %d: %+v of %v", seed, kept, object)
			}
		default:
			t.Fatalf("seed %d: %T", seed, kept)
		}
	}
}

// mutate exchanges one value somewhere below, or leaves it out.
func mutate(random *rand.Rand, value any) any {
	odd := []any{nil, "", "many", int64(-1), int64(0), int64(1) << 40, 1.5, true, []any{}, map[string]any{}, []any{int64(7)}, map[string]any{"x": nil}}
	if random.Intn(4) == 0 {
		return odd[random.Intn(len(odd))]
	}
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value { // any one will do
			if random.Intn(8) == 0 {
				delete(value, key)
			} else {
				value[key] = mutate(random, below)
			}
			break
		}
	case []any:
		if len(value) > 0 {
			i := random.Intn(len(value))
			value[i] = mutate(random, value[i])
		}
	}
	return value
}
