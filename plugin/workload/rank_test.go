// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func indexed(p *v1.Pod, index string) *v1.Pod {
	p.Labels[CompletionIndex] = index
	return p
}

func placed(p *v1.Pod, rank string) *v1.Pod {
	p.Spec.NodeName = "node"
	p.Annotations[Rank] = rank
	return p
}

func TestRanks(t *testing.T) {
	for _, test := range []struct {
		name string
		pods []*v1.Pod
		want []uint32
		note string
	}{
		{"by index", []*v1.Pod{indexed(pod("z"), "0"), indexed(pod("a"), "2"), with(pod("m"), CompletionIndex, "1")}, []uint32{0, 2, 1}, ""},
		{"gaps stay", []*v1.Pod{indexed(pod("a"), "5"), indexed(pod("b"), "3")}, []uint32{5, 3}, ""},
		{"by name", []*v1.Pod{pod("w-10"), pod("w-9"), pod("w-1")}, []uint32{2, 1, 0}, ""},
		{"garbage", []*v1.Pod{indexed(pod("b"), "0"), indexed(pod("a"), "zero")}, []uint32{1, 0}, `pod a has batch.kubernetes.io/job-completion-index "zero"`},
		{"negative", []*v1.Pod{indexed(pod("b"), "-1"), indexed(pod("a"), "0")}, []uint32{1, 0}, `"-1"`},
		{"leading zero", []*v1.Pod{indexed(pod("b"), "01"), indexed(pod("a"), "0")}, []uint32{1, 0}, `"01"`},
		{"too large", []*v1.Pod{indexed(pod("b"), "4294967296"), indexed(pod("a"), "0")}, []uint32{1, 0}, `"4294967296"`},
		{"the largest", []*v1.Pod{indexed(pod("b"), "1000000"), indexed(pod("a"), "0")}, []uint32{1000000, 0}, ""},
		{"one more", []*v1.Pod{indexed(pod("b"), "1000001"), indexed(pod("a"), "0")}, []uint32{1, 0}, `"1000001"`},
		{"a long one is cut", []*v1.Pod{indexed(pod("a"), strings.Repeat("9", 100))}, []uint32{0}, "…"},
		{"the same twice", []*v1.Pod{indexed(pod("b"), "0"), indexed(pod("a"), "0")}, []uint32{1, 0}, "both have"},
		{"some without", []*v1.Pod{indexed(pod("b"), "0"), pod("a")}, []uint32{1, 0}, "pod a has no"},
		{"bound ones keep theirs", []*v1.Pod{pod("a"), placed(pod("b"), "0"), placed(pod("c"), "2"), pod("d")}, []uint32{1, 0, 2, 3}, ""},
		{"bound with garbage", []*v1.Pod{placed(pod("b"), "x"), pod("a")}, []uint32{1, 0}, ""},
		{"bound twice the same", []*v1.Pod{placed(pod("b"), "0"), placed(pod("a"), "0")}, []uint32{1, 0}, ""},
		{"none", nil, []uint32{}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, note := Ranks(test.pods, make([]Index, len(test.pods)))
			if !slices.Equal(got, test.want) || !strings.Contains(note, test.note) || (test.note == "") != (note == "") {
				t.Errorf("got %v %q, want %v %q", got, note, test.want, test.note)
			}
		})
	}
}

func TestNaturalCompare(t *testing.T) {
	ordered := []string{"", "0", "00", "1", "01", "2", "10", "a", "a-1", "a-01", "a-2", "a-10", "a-10-b", "a-99999999999999999999", "a-100000000000000000000", "b", "node-2x", "node-10"}
	slices.SortFunc(ordered, func(a, b string) int { return strings.Compare(a, b) })
	slices.SortStableFunc(ordered, NaturalCompare)
	want := []string{"", "0", "00", "01", "1", "2", "10", "a", "a-01", "a-1", "a-2", "a-10", "a-10-b", "a-99999999999999999999", "a-100000000000000000000", "b", "node-2x", "node-10"}
	if !slices.Equal(ordered, want) {
		t.Errorf("got  %q\nwant %q", ordered, want)
	}
	for _, a := range want {
		for _, b := range want {
			if x, y := NaturalCompare(a, b), NaturalCompare(b, a); x != -y || (x == 0) != (a == b) {
				t.Errorf("%q against %q: %d and %d", a, b, x, y)
			}
		}
	}
}
