// SPDX-License-Identifier: Apache-2.0

package demand

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/shim"
)

func pod(uid, cpu, memory string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}}}}}}
}

func expect(t *testing.T, d *Demand, want ...shim.Kind) {
	t.Helper()
	if got := d.Kinds(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPodsAreCountedByWhatTheyAskFor(t *testing.T) {
	d := New()
	expect(t, d)
	d.Set(pod("a", "2", "1Gi"), 1)
	d.Set(pod("b", "2", "1Gi"), 1)
	d.Set(pod("c", "2", "1Gi"), 2)
	small, large := shim.Kind{CPUMilli: 2000, MemoryMiB: 1024, GPUs: 1, Pods: 2}, shim.Kind{CPUMilli: 2000, MemoryMiB: 1024, GPUs: 2, Pods: 1}
	expect(t, d, small, large)
	d.Set(pod("a", "2", "1Gi"), 1) // seen again
	expect(t, d, small, large)
	d.Set(pod("a", "2", "1Gi"), 2) // it asks for something else now
	small.Pods, large.Pods = 1, 2
	expect(t, d, large, small)
	d.Drop("a")
	d.Drop("a")
	d.Drop("nobody")
	large.Pods = 1
	expect(t, d, small, large)
	d.Set(pod("b", "2", "1Gi"), 0)              // no GPUs any more
	d.Set(pod("c", "2", "1Gi"), shim.GPUsMax+1) // more than any node has
	expect(t, d)
	d.Set(pod("c", "2", "1Gi"), shim.GPUsMax)
	expect(t, d, shim.Kind{CPUMilli: 2000, MemoryMiB: 1024, GPUs: shim.GPUsMax, Pods: 1})
}

func TestTheMostFrequentAreTold(t *testing.T) {
	d := New()
	for i := range 100 {
		for j := range 1 + i%50 {
			d.Set(pod(fmt.Sprint(i, "-", j), fmt.Sprint(i, "m"), "0"), 1)
		}
	}
	kinds := d.Kinds()
	if len(kinds) != shim.KindsMax {
		t.Fatalf("%d kinds", len(kinds))
	}
	for i, kind := range kinds { // 50 pods of 49m and 99m, 49 of 48m and 98m, …
		if want := (shim.Kind{CPUMilli: uint32(49 - i/2 + i%2*50), GPUs: 1, Pods: uint32(50 - i/2)}); kind != want {
			t.Errorf("%d: got %v, want %v", i, kind, want)
		}
	}
}

func TestTiesGoToWhatAsksForLess(t *testing.T) {
	d := New()
	for i, want := range []struct {
		gpus        uint32
		cpu, memory string
	}{{2, "1", "1Mi"}, {1, "2", "1Mi"}, {1, "1", "2Mi"}, {1, "1", "1Mi"}} {
		d.Set(pod(fmt.Sprint(i), want.cpu, want.memory), want.gpus)
	}
	expect(t, d, shim.Kind{CPUMilli: 1000, MemoryMiB: 1, GPUs: 1, Pods: 1}, shim.Kind{CPUMilli: 1000, MemoryMiB: 2, GPUs: 1, Pods: 1},
		shim.Kind{CPUMilli: 2000, MemoryMiB: 1, GPUs: 1, Pods: 1}, shim.Kind{CPUMilli: 1000, MemoryMiB: 1, GPUs: 2, Pods: 1})
}

func TestAmounts(t *testing.T) {
	for _, test := range []struct {
		cpu, memory string
		want        shim.Left
	}{
		{"0", "0", shim.Left{}},
		{"1500m", "1", shim.Left{CPUMilli: 1500, MemoryMiB: 1}},
		{"1u", "1Mi", shim.Left{CPUMilli: 1, MemoryMiB: 1}},
		{"4294967295m", "4Pi", shim.Left{CPUMilli: math.MaxUint32, MemoryMiB: math.MaxUint32}},
		{"5P", "5E", shim.Left{CPUMilli: math.MaxUint32, MemoryMiB: math.MaxUint32}},
	} {
		if got := Asks(pod("a", test.cpu, test.memory)); got != test.want {
			t.Errorf("%s, %s: got %v, want %v", test.cpu, test.memory, got, test.want)
		}
	}
	for _, test := range []struct {
		cpu, memory int64
		want        shim.Left
	}{
		{0, mebibyte - 1, shim.Left{}},
		{1, mebibyte, shim.Left{CPUMilli: 1, MemoryMiB: 1}},
		{-1, -mebibyte, shim.Left{}},
		{math.MaxInt64, math.MaxInt64, shim.Left{CPUMilli: math.MaxUint32, MemoryMiB: math.MaxUint32}},
	} {
		if got := Left(test.cpu, test.memory); got != test.want {
			t.Errorf("%d, %d: got %v, want %v", test.cpu, test.memory, got, test.want)
		}
	}
}

// Whatever comes and goes, the kinds are those of the pods that are there.
func TestKindsFollowPodsAtRandom(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	d, live := New(), map[string]shim.Kind{}
	for range 5000 {
		uid := fmt.Sprint(random.IntN(50))
		if random.IntN(3) == 0 {
			d.Drop(types.UID(uid))
			delete(live, uid)
		} else {
			kind := shim.Kind{CPUMilli: uint32(random.IntN(3)), GPUs: uint32(1 + random.IntN(3))}
			d.Set(pod(uid, fmt.Sprint(kind.CPUMilli, "m"), "0"), kind.GPUs)
			live[uid] = kind
		}
		if random.IntN(4) > 0 {
			continue
		}
		count := map[shim.Kind]uint32{}
		for _, kind := range live {
			count[kind]++
		}
		kinds := d.Kinds()
		for _, kind := range kinds {
			pods := kind.Pods
			if kind.Pods = 0; count[kind] != pods {
				t.Fatalf("seed %d: %d pods of %v, want %d", seed, pods, kind, count[kind])
			}
		}
		if len(kinds) != len(count) {
			t.Fatalf("seed %d: %d kinds, want %d", seed, len(kinds), len(count))
		}
	}
}

func TestSeveralGoroutines(t *testing.T) {
	d := New()
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 500 {
				p := pod(fmt.Sprint(worker, "-", i%20), fmt.Sprint(i%7), "1Gi")
				d.Set(p, uint32(1+i%3))
				for _, kind := range d.Kinds() {
					if kind.Pods == 0 {
						t.Error("nobody is of that kind")
					}
				}
				d.Drop(p.UID)
			}
		})
	}
	all.Wait()
	expect(t, d)
}
