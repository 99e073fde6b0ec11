// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

type gang struct {
	Gang
	members map[string]*pod // that are not gone, by UID

	reached bool      // minMember were bound; stays so until no pod is left
	whole   bool      // all of it was
	partial time.Time // since when it is half-bound; zero: it is not
	full    time.Time // when its last pod was created; zero: not all are there
	first   uint64    // version of the first binding, 0: none
	began   time.Time // when that was seen
}

func (g *gang) bound() []*pod {
	var bound []*pod
	for _, p := range g.members {
		if p.Node != "" && !p.Failed {
			bound = append(bound, p)
		}
	}
	return bound
}

// since is when time began to run that started at start: later, if the scheduler was away.
func (r *replay) since(start, now time.Time) time.Time {
	for _, resumed := range r.history.Resumed {
		if resumed.After(start) && !resumed.After(now) {
			start = resumed
		}
	}
	return start
}

// released says whether the test has said before now that it takes this gang or pod away.
func (r *replay) released(name string) bool {
	since, said := r.history.Released[name]
	return said && !r.at.Seen.Before(since)
}

func (r *replay) seeMember(p *pod, held bool) {
	g := r.gangs[p.Gang]
	if g == nil {
		space, _, _ := strings.Cut(p.Gang, "/")
		if slices.ContainsFunc(r.history.Gangs, func(other Gang) bool { return strings.HasPrefix(other.ID, space+"/") }) && p.Node == "" && !p.gone {
			r.violate(UnknownPod, "%s says that it is of %s", p.Name, p.Gang)
		}
		return
	}
	if g.Fate == MustNotBind && p.bound == r.at.Version && !p.gone {
		r.violate(Forbidden, "%s of %s is on %s", p.Name, g.ID, p.Node)
	}
	if p.gone {
		if held && g.reached && !r.released(g.ID) && !r.released(p.Name) {
			r.violate(Touched, "%s of %s, which was bound to %s and had its gang, was deleted", p.Name, g.ID, p.Node)
		}
		delete(g.members, p.UID)
	} else {
		g.members[p.UID] = p
	}
	now := r.at.Seen
	if len(g.members) >= g.Size && g.full.IsZero() {
		g.full = now
	}
	bound := g.bound()
	if len(bound) > 0 && g.first == 0 {
		g.first, g.began = r.at.Version, now
	}
	switch {
	case len(bound) >= g.minMember():
		r.checkPartial(g, now)
		g.reached, g.partial = true, time.Time{}
		if len(bound) >= g.Size && !g.whole {
			g.whole = true
			r.checkWhole(g, bound, now)
		}
	case len(bound) == 0:
		r.checkPartial(g, now)
		g.partial, g.first = time.Time{}, 0
		if len(g.members) == 0 {
			g.reached, g.whole, g.full = false, false, time.Time{}
		}
	case !g.reached:
		if g.partial.IsZero() {
			g.partial = now
		}
		r.checkRanks(g, bound, false)
	}
}

// checkPartial judges a half-bound time that ends now.
func (r *replay) checkPartial(g *gang, now time.Time) {
	if g.partial.IsZero() {
		return
	}
	if took := now.Sub(r.since(g.partial, now)); took > r.rules.PartialLimit {
		r.violate(HalfBound, "%s for %s, allowed are %s", g.ID, took.Round(time.Millisecond), r.rules.PartialLimit)
	}
}

// checkWhole judges a gang at the moment at which its last member is bound.
func (r *replay) checkWhole(g *gang, bound []*pod, now time.Time) {
	if g.Within > 0 && !r.at.Initial {
		if took := now.Sub(r.since(g.full, now)); took > g.Within {
			r.violate(NotBound, "%s took %s from its last pod to its last binding, allowed are %s", g.ID, took.Round(time.Millisecond), g.Within)
		}
	}
	ranked := r.checkRanks(g, bound, true)
	// Where a pod was that has ended binds the others to nothing. In a real gang nobody ends before all have begun; a pod of
	// the lab ends after its time.
	if !slices.ContainsFunc(bound, func(p *pod) bool { return p.Over }) {
		if ranked != nil {
			r.checkRing(g, ranked)
		}
		if g.Required {
			r.checkRule(g, bound)
		}
	}
	if r.rules.Locks {
		r.checkLockedFirst(g, bound, now)
	}
}

// checkRanks returns the members with GPUs by rank, or nil when ranks are not as they should be.
func (r *replay) checkRanks(g *gang, bound []*pod, all bool) []*pod {
	byRank := map[int]*pod{}
	good := true
	slices.SortFunc(bound, func(a, b *pod) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range bound {
		if p.GPUs == 0 {
			continue // it has no place in the ring
		}
		rank, err := strconv.Atoi(p.Rank)
		if err != nil || rank < 0 || rank >= g.Size {
			r.violate(WrongRanks, "%s of %s has rank %q, allowed are 0 to %d", p.Name, g.ID, p.Rank, g.Size-1)
			good = false
		} else if other := byRank[rank]; other != nil {
			r.violate(WrongRanks, "%s and %s of %s both have rank %d", other.Name, p.Name, g.ID, rank)
			good = false
		} else {
			byRank[rank] = p
		}
	}
	if !good || !all {
		return nil
	}
	ranked := make([]*pod, 0, len(byRank))
	for rank := range g.Size {
		if p := byRank[rank]; p != nil {
			ranked = append(ranked, p)
		}
	}
	return ranked
}

func (r *replay) endGang(g *gang) {
	bound := g.bound()
	now := r.history.Ended
	released := !r.history.Released[g.ID].IsZero()
	switch {
	case len(bound) > 0 && len(bound) < g.minMember() && !g.reached:
		r.violate(HalfBound, "%s: %d of at least %d bound at the end, for %s", g.ID, len(bound), g.minMember(), now.Sub(r.since(g.partial, now)).Round(time.Millisecond))
	case g.Fate == MustBind && !g.whole && !released:
		r.violate(NotBound, "%s: %d of %d bound at the end, %d pods there", g.ID, len(bound), g.Size, len(g.members))
	}
}
