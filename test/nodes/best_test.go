// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"math/bits"
	"slices"
	"testing"
)

// The best set of GPUs by reference 3.7, policy contiguous, found by looking at every set. Nothing here is shared with the engine.

// value is how a set is judged, most important first; larger is better.
type value [5]int

func better(a, b value) bool { return slices.Compare(a[:], b[:]) > 0 }

// judge computes all sets of a machine once: for each threshold, which sets have a ring whose hops all reach it.
type judge struct {
	m          *machine
	bottleneck []int // by mask
}

func newJudge(m *machine) *judge {
	j := &judge{m: m, bottleneck: make([]int, 1<<m.gpus)}
	var speeds []int
	for _, row := range m.gbps {
		speeds = append(speeds, row...)
	}
	slices.Sort(speeds)
	for _, speed := range slices.Compact(speeds) {
		if speed == 0 {
			continue
		}
		// ends[set]: the GPUs at which a path may end that begins at the set's lowest GPU and visits all of it once.
		ends := make([]uint32, 1<<m.gpus)
		for set := 1; set < 1<<m.gpus; set++ {
			first := bits.TrailingZeros(uint(set))
			if set == 1<<first {
				ends[set] = uint32(set)
				continue
			}
			for last := first + 1; last < m.gpus; last++ {
				if set>>last&1 == 0 {
					continue
				}
				for before := range m.gpus {
					if ends[set&^(1<<last)]>>before&1 != 0 && m.gbps[before][last] >= speed {
						ends[set] |= 1 << last
						break
					}
				}
			}
			for last := range m.gpus {
				if ends[set]>>last&1 != 0 && bits.OnesCount(uint(set)) > 1 && m.gbps[last][first] >= speed {
					j.bottleneck[set] = speed
				}
			}
		}
	}
	return j
}

func (j *judge) sum(set int) (total int) {
	for a := range j.m.gpus {
		for b := range a {
			if set>>a&1 != 0 && set>>b&1 != 0 {
				total += j.m.gbps[a][b]
			}
		}
	}
	return total
}

func (j *judge) numas(set int) int {
	seen := map[int]bool{}
	for i := range j.m.gpus {
		if set>>i&1 != 0 {
			seen[j.m.numa[i]] = true
		}
	}
	return len(seen)
}

func maskOf(list []int) (mask int) {
	for _, i := range list {
		mask |= 1 << i
	}
	return mask
}

func listOf(mask int) (list []int) {
	for i := range 32 {
		if mask>>i&1 != 0 {
			list = append(list, i)
		}
	}
	return list
}

// best is the best set of k of the free GPUs, in ring order.
func (j *judge) best(free []int, k int) []int {
	whole, found := maskOf(free), -1
	var best value
	for set := whole; set > 0; set = (set - 1) & whole {
		if bits.OnesCount(uint(set)) != k {
			continue
		}
		rest := whole &^ set
		v := value{j.bottleneck[set], j.sum(set), -j.numas(set), j.bottleneck[rest], j.sum(rest)}
		if found < 0 || better(v, best) || v == best && slices.Compare(listOf(set), listOf(found)) < 0 {
			found, best = set, v
		}
	}
	return j.ring(listOf(found))
}

// ring tries all orders that begin with the lowest GPU, smallest first: best bottleneck, then largest sum of hops.
func (j *judge) ring(set []int) []int {
	best := slices.Clone(set)
	least, sum := -1, -1
	permute(slices.Clone(set), 1, func(order []int) {
		lowest, total := 1<<30, 0
		for i := range order {
			hop := j.m.gbps[order[i]][order[(i+1)%len(order)]]
			lowest, total = min(lowest, hop), total+hop
		}
		if lowest > least || lowest == least && total > sum || lowest == least && total == sum && slices.Compare(order, best) < 0 {
			least, sum, best = lowest, total, slices.Clone(order)
		}
	})
	return best
}

func permute(order []int, from int, use func([]int)) {
	if from >= len(order) {
		use(order)
		return
	}
	for i := from; i < len(order); i++ {
		order[from], order[i] = order[i], order[from]
		permute(order, from+1, use)
		order[from], order[i] = order[i], order[from]
	}
}

// The quick way to all bottlenecks agrees with trying all orders.
func TestBottlenecksAreRight(t *testing.T) {
	for _, kind := range []string{"dgx-1v", "link-down"} {
		m := readMachine(t, nodeName(slices.Index(kinds, kind)))
		j := newJudge(m)
		for set := 1; set < 1<<m.gpus; set++ {
			if bits.OnesCount(uint(set)) < 2 {
				continue
			}
			want := 0
			permute(listOf(set), 1, func(order []int) {
				lowest := 1 << 30
				for i := range order {
					lowest = min(lowest, m.gbps[order[i]][order[(i+1)%len(order)]])
				}
				want = max(want, lowest)
			})
			if j.bottleneck[set] != want {
				t.Fatalf("%s: set %v: %d, want %d", kind, listOf(set), j.bottleneck[set], want)
			}
		}
	}
	// The matrix of reference 3.7.
	m := readMachine(t, nodeName(slices.Index(kinds, "dgx-1v")))
	if want := []int{0, 25, 25, 50, 50, 0, 0, 0}; !slices.Equal(m.gbps[0], want) {
		t.Errorf("the first row of a DGX-1V is %v, want %v", m.gbps[0], want)
	}
}
