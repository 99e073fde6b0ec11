// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"strings"
)

// checkRing counts how often the ring of ranks goes from leaf to leaf: for members of equal size over k > 1 leaves,
// exactly k times (reference 3.4).
func (r *replay) checkRing(g *gang, ranked []*pod) {
	var leaves []string
	crossed := 0
	for i, p := range ranked {
		if p.GPUs != ranked[0].GPUs {
			return
		}
		here, next := r.leaf(p), r.leaf(ranked[(i+1)%len(ranked)])
		if here == "" {
			return // a node that stands in no fabric
		}
		if !slices.Contains(leaves, here) {
			leaves = append(leaves, here)
		}
		if here != next {
			crossed++
		}
	}
	if len(leaves) > 1 && crossed != len(leaves) {
		r.violate(WrongRing, "%s is on %d leaves and its ring crosses %d times", g.ID, len(leaves), crossed)
	}
}

func (r *replay) leaf(p *pod) string {
	if n := r.nodes[p.Node]; n != nil && n.Leaf != "" {
		return n.Spine + "/" + n.Leaf
	}
	return ""
}

// spine is a part of the fabric as capacity sees it: members that each leaf, in fabric order, could hold.
type spine struct {
	name   string
	leaves []string
	room   []int
}

// checkRule re-checks the rule of reference 3.3 in the most simple way, for members of equal size: what the nodes could hold at
// best, ignoring use and cordons, says what is demanded; where the members are says whether it is met.
func (r *replay) checkRule(g *gang, bound []*pod) {
	gpus := 0
	on := map[string]bool{} // nodes
	used := map[string][]string{}
	for _, p := range bound {
		if p.GPUs == 0 {
			continue
		}
		if gpus != 0 && p.GPUs != gpus {
			return
		}
		gpus = p.GPUs
		on[p.Node] = true
		n := r.nodes[p.Node]
		if n == nil || n.Leaf == "" {
			r.violate(RuleBroken, "%s: %s is on %s, which has no leaf", g.ID, p.Name, p.Node)
			return
		}
		if !slices.Contains(used[n.Spine], n.Leaf) {
			used[n.Spine] = append(used[n.Spine], n.Leaf)
		}
	}
	if gpus == 0 {
		return
	}
	members := 0
	for _, p := range bound {
		if p.GPUs > 0 {
			members++
		}
	}
	spines, largest := r.capacity(gpus, g.Spread)
	switch {
	case largest >= members && !g.Spread:
		if len(on) > 1 {
			r.violate(RuleBroken, "%s: fits one node and is on %d", g.ID, len(on))
		}
	case fewestLeaves(spines, members) > 0:
		allowed := fewestLeaves(spines, members)
		if len(used) != 1 {
			r.violate(RuleBroken, "%s: fits %d leaves under one spine and is under %d spines", g.ID, allowed, len(used))
			return
		}
		for name, leaves := range used {
			if len(leaves) > allowed {
				r.violate(RuleBroken, "%s: fits %d adjacent leaves and is on %d: %s", g.ID, allowed, len(leaves), strings.Join(leaves, ", "))
			}
			r.checkRun(g, spines, name, leaves)
		}
	default:
		r.checkSpines(g, spines, used, members)
	}
}

// checkSpines: no spine can hold it: as few adjacent spines as could, one run of adjacent leaves in each.
func (r *replay) checkSpines(g *gang, spines []spine, used map[string][]string, members int) {
	allowed := 0
	for width := 1; width <= len(spines) && allowed == 0; width++ {
		for first := 0; first+width <= len(spines); first++ {
			room := 0
			for _, s := range spines[first : first+width] {
				room += sum(s.room)
			}
			if room >= members {
				allowed = width
			}
		}
	}
	var at []int
	for i, s := range spines {
		if leaves := used[s.name]; leaves != nil {
			at = append(at, i)
			r.checkRun(g, spines, s.name, leaves)
		}
	}
	if len(at) > allowed || at[len(at)-1]-at[0] != len(at)-1 {
		r.violate(RuleBroken, "%s: is under spines %v, allowed are %d adjacent ones", g.ID, at, allowed)
	}
}

// checkRun: the leaves in use are consecutive in fabric order.
func (r *replay) checkRun(g *gang, spines []spine, name string, leaves []string) {
	for _, s := range spines {
		if s.name != name {
			continue
		}
		var at []int
		for i, leaf := range s.leaves {
			if slices.Contains(leaves, leaf) {
				at = append(at, i)
			}
		}
		if len(at) > 0 && at[len(at)-1]-at[0] != len(at)-1 {
			r.violate(RuleBroken, "%s: leaves %s of %s are not adjacent", g.ID, strings.Join(leaves, ", "), name)
		}
	}
}

// capacity is what each leaf could hold, in fabric order, and what the largest node could.
func (r *replay) capacity(gpus int, spread bool) (spines []spine, largest int) {
	room := map[string]map[string]int{}
	for _, n := range r.nodes {
		if n.gone || n.Leaf == "" {
			continue
		}
		fits := n.GPUs / gpus
		largest = max(largest, fits)
		if spread {
			fits = min(fits, 1)
		}
		if room[n.Spine] == nil {
			room[n.Spine] = map[string]int{}
		}
		room[n.Spine][n.Leaf] += fits
	}
	for name, leaves := range room {
		s := spine{name: name, leaves: sortedKeys(leaves)}
		slices.SortFunc(s.leaves, natural)
		for _, leaf := range s.leaves {
			s.room = append(s.room, leaves[leaf])
		}
		spines = append(spines, s)
	}
	slices.SortFunc(spines, func(a, b spine) int { return natural(a.name, b.name) })
	return spines, largest
}

// fewestLeaves is the smallest number of adjacent leaves under one spine with room for all; 0: no spine has it.
func fewestLeaves(spines []spine, members int) int {
	best := 0
	for _, s := range spines {
		for first := range s.room {
			for last := first; last < len(s.room); last++ {
				if sum(s.room[first:last+1]) >= members && (best == 0 || last-first+1 < best) {
					best = last - first + 1
				}
			}
		}
	}
	return best
}

func sum(numbers []int) int {
	total := 0
	for _, n := range numbers {
		total += n
	}
	return total
}

// natural orders names with numbers in them: leaf-2 before leaf-10.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, restA := part(a)
		y, restB := part(b)
		if x != y {
			if digit(x[0]) && digit(y[0]) {
				x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
				if len(x) != len(y) {
					return len(x) - len(y)
				}
			}
			if c := strings.Compare(x, y); c != 0 {
				return c
			}
		}
		a, b = restA, restB
	}
	return len(a) - len(b)
}

// part is the longest beginning that is all digits or has none.
func part(s string) (string, string) {
	end := 1
	for end < len(s) && digit(s[end]) == digit(s[0]) {
		end++
	}
	return s[:end], s[end:]
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
