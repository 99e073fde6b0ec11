// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Ranks gives every pod of a gang its rank, parallel to pods: the completion index when all have a valid one and no two
// the same, else natural order of names, in which pods that are bound keep the rank written on them. The note says why
// an index that was there could not be used.
func Ranks(pods []*v1.Pod) (ranks []uint32, note string) {
	ranks, indexed, note := byIndex(pods)
	if indexed {
		return ranks, ""
	}
	return byName(pods), note
}

func byIndex(pods []*v1.Pod) (ranks []uint32, ok bool, note string) {
	ranks = make([]uint32, len(pods))
	owner := make(map[uint32]string, len(pods))
	missing := ""
	for i, pod := range pods {
		text, found := index(pod)
		if !found {
			missing = pod.Name
			continue
		}
		rank, err := parseRank(text)
		if err != nil {
			return nil, false, fmt.Sprintf("pod %s has %s %q, which is no number; ranks follow names", pod.Name, CompletionIndex, shorten(text))
		}
		if other, taken := owner[rank]; taken {
			return nil, false, fmt.Sprintf("pods %s and %s both have %s %d; ranks follow names", other, pod.Name, CompletionIndex, rank)
		}
		owner[rank], ranks[i] = pod.Name, rank
	}
	if missing != "" {
		if len(owner) > 0 {
			note = fmt.Sprintf("pod %s has no %s, others have; ranks follow names", missing, CompletionIndex)
		}
		return nil, false, note
	}
	return ranks, true, ""
}

func index(pod *v1.Pod) (string, bool) {
	if text, ok := pod.Labels[CompletionIndex]; ok {
		return text, true
	}
	text, ok := pod.Annotations[CompletionIndex]
	return text, ok
}

// parseRank takes decimal numbers as Kubernetes writes them: no sign, no leading zero.
func parseRank(text string) (uint32, error) {
	number, err := strconv.ParseUint(text, 10, 31)
	if err == nil && text != strconv.FormatUint(number, 10) {
		err = strconv.ErrSyntax
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
