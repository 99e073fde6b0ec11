// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/frond-scheduler/frond/shim"
)

// Index is where a pod's rank comes from: a label, or an annotation of that name, and how many pods stand before those
// that it counts. The zero Index is the completion index.
type Index struct {
	Label string
	Base  uint32
	Fixed bool // the rank is the base: there is one such pod, and it has no label
}

func newIndex(label string, base int64) Index {
	return Index{Label: label, Base: uint32(min(base, math.MaxUint32))}
}

// Ranks gives every pod of a gang its rank, parallel to pods: by their indices when all have a valid one and no two the
// same, else natural order of names, in which pods that are bound keep the rank written on them. The note says why
// an index that was there could not be used.
func Ranks(pods []*v1.Pod, indices []Index) (ranks []uint32, note string) {
	ranks, indexed, note := byIndex(pods, indices)
	if indexed {
		return ranks, ""
	}
	return byName(pods), note
}

func byIndex(pods []*v1.Pod, indices []Index) (ranks []uint32, ok bool, note string) {
	ranks = make([]uint32, len(pods))
	owner := make(map[uint32]string, len(pods))
	missing, lacks := "", ""
	for i, pod := range pods {
		label, text, found := indices[i].text(pod)
		if !found {
			missing, lacks = pod.Name, label
			continue
		}
		rank, err := indices[i].rank(text)
		if err != nil {
			return nil, false, fmt.Sprintf("pod %s has %s %q, which is no rank; ranks follow names", pod.Name, label, shorten(text))
		}
		if other, taken := owner[rank]; taken {
			return nil, false, fmt.Sprintf("pods %s and %s both have rank %d by %s; ranks follow names", other, pod.Name, rank, label)
		}
		owner[rank], ranks[i] = pod.Name, rank
	}
	if missing != "" {
		if len(owner) > 0 {
			note = fmt.Sprintf("pod %s has no %s, others have; ranks follow names", missing, lacks)
		}
		return nil, false, note
	}
	return ranks, true, ""
}

func (x Index) text(pod *v1.Pod) (label, text string, found bool) {
	label = x.Label
	if label == "" {
		label = CompletionIndex
	}
	if x.Fixed {
		return label, "", true
	}
	if text, found = pod.Labels[label]; !found {
		text, found = pod.Annotations[label]
	}
	return label, text, found
}

// rank adds the base, within the numbers that a rank may be.
func (x Index) rank(text string) (uint32, error) {
	number := uint32(0)
	if !x.Fixed {
		parsed, err := parseRank(text)
		if err != nil {
			return 0, err
		}
		number = parsed
	}
	if sum := uint64(x.Base) + uint64(number); sum <= shim.RankMax {
		return uint32(sum), nil
	}
	return 0, strconv.ErrRange
}

// parseRank takes decimal numbers as Kubernetes writes them: no sign, no leading zero.
func parseRank(text string) (uint32, error) {
	number, err := strconv.ParseUint(text, 10, 32)
	switch {
	case err != nil:
	case text != strconv.FormatUint(number, 10):
		err = strconv.ErrSyntax
	case number > shim.RankMax:
		err = strconv.ErrRange
	}
	return uint32(number), err
}

func byName(pods []*v1.Pod) []uint32 {
	ranks, taken := make([]uint32, len(pods)), make(map[uint32]bool, len(pods))
	var free []int
	order := make([]int, len(pods))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(NaturalCompare(pods[a].Name, pods[b].Name), cmp.Compare(pods[a].UID, pods[b].UID))
	})
	for _, i := range order {
		rank, err := parseRank(pods[i].Annotations[Rank])
		if pods[i].Spec.NodeName == "" || err != nil || taken[rank] {
			free = append(free, i)
			continue
		}
		ranks[i], taken[rank] = rank, true
	}
	next := uint32(0)
	for _, i := range free {
		for taken[next] {
			next++
		}
		ranks[i] = next
		next++
	}
	return ranks
}

// NaturalCompare orders names with runs of digits as numbers: worker-2 before worker-10. It is total: names that differ
// never compare equal.
func NaturalCompare(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		if isDigit(x[0]) && isDigit(y[0]) {
			m, n := digits(x), digits(y)
			left, right := strings.TrimLeft(x[:m], "0"), strings.TrimLeft(y[:n], "0")
			if order := cmp.Or(cmp.Compare(len(left), len(right)), cmp.Compare(left, right)); order != 0 {
				return order
			}
			x, y = x[m:], y[n:]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

func digits(text string) int {
	n := 0
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// shorten keeps a user's text out of sentences beyond what helps to find it.
func shorten(text string) string {
	const most = 40
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
