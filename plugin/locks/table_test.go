// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func leaseWith(annotations map[string]string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "frond-system", Name: "n1", Annotations: annotations, Labels: map[string]string{Label: labelValue}}}
}

func TestParse(t *testing.T) {
	var many strings.Builder
	for i := range maxEntries + 1 {
		fmt.Fprintf(&many, `,"g%d":"u"`, i)
	}
	for _, c := range []struct {
		name, owners, pods string
		want               map[string]types.UID
		bad                int
		whole              bool
		text               string // of the error; "": none
	}{
		{"good", `{"g0":"u1","g1":"u2"}`, `{"u1":{"pod":"a/b"},"u2":{"pod":"a/c"}}`, map[string]types.UID{"g0": "u1", "g1": "u2"}, 0, false, ""},
		{"empty", `{}`, `{}`, nil, 0, false, ""},
		{"spaces", " { \"g0\" : \"u1\" } \n", `{}`, map[string]types.UID{"g0": "u1"}, 0, false, ""},
		{"nothing", ``, `{}`, nil, 0, true, "not a JSON object"},
		{"list", `["g0"]`, `{}`, nil, 0, true, "not a JSON object"},
		{"null", `null`, `{}`, nil, 0, true, "not a JSON object"},
		{"cut", `{"g0":"u1"`, `{}`, nil, 0, true, "EOF"},
		{"more after it", `{} {}`, `{}`, nil, 0, true, "something follows"},
		{"owner is a number", `{"g0":7,"g1":"u1"}`, `{}`, map[string]types.UID{"g1": "u1"}, 1, false, `"g0": "7"`},
		{"owner is an object", `{"g0":{"a":["b"]}}`, `{}`, nil, 1, false, `"g0"`},
		{"owner is no UID", `{"g0":"Robert'); DROP","g1":"u1"}`, `{}`, map[string]types.UID{"g1": "u1"}, 1, false, "DROP"},
		{"owner is empty", `{"g0":""}`, `{}`, nil, 1, false, `"g0"`},
		{"id is empty", `{"":"u1"}`, `{}`, nil, 1, false, `""`},
		{"id is long", `{"` + strings.Repeat("x", maxID+1) + `":"u1"}`, `{}`, nil, 1, false, "254"},
		{"id of a slice", `{"MIG-GPU-0/1:2":"u1"}`, `{}`, map[string]types.UID{"MIG-GPU-0/1:2": "u1"}, 0, false, ""},
		{"twice, alike", `{"g0":"u1","g0":"u1"}`, `{}`, map[string]types.UID{"g0": "u1"}, 0, false, ""},
		{"twice, different", `{"g0":"u1","g0":"u2"}`, `{}`, nil, 1, false, "occurs once"},
		{"too many", "{" + many.String()[1:] + "}", `{}`, nil, 0, true, "more than 4096"},
		{"pods cannot be read", `{"g0":"u1"}`, `what?`, map[string]types.UID{"g0": "u1"}, 0, false, PodsAnnotation},
		{"a pod without a namespace", `{"g0":"u1"}`, `{"u1":{"pod":"b"}}`, map[string]types.UID{"g0": "u1"}, 0, false, PodsAnnotation},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := parse(leaseWith(map[string]string{OwnersAnnotation: c.owners, PodsAnnotation: c.pods}))
			if !maps.Equal(got.owners, c.want) || len(got.bad) != c.bad || got.whole != c.whole || (got.err == nil) != (c.text == "") {
				t.Fatalf("got %+v", got)
			}
			if c.text != "" {
				for _, part := range []string{c.text, "Lease frond-system/n1", "annotation gpu.scheduling/", "found ", "allowed is "} {
					if !strings.Contains(got.err.Error(), part) {
						t.Errorf("%q lacks %q", got.err.Error(), part)
					}
				}
				if len(got.err.Error()) > 600 {
					t.Errorf("an error of %d bytes", len(got.err.Error()))
				}
			}
			if got.whole {
				return
			}
			again := leaseWith(nil)
			if err := got.write(again); err != nil {
				t.Fatal(err)
			}
			if back := parse(again); !maps.Equal(back.owners, got.owners) || !maps.Equal(back.pods, got.pods) || len(back.bad) != c.bad {
				t.Errorf("written and read again: %+v", back)
			}
		})
	}
}

func TestLeasesOfOthers(t *testing.T) {
	seconds := int32(15)
	election := leaseWith(nil)
	election.Labels = nil
	election.Spec.LeaseDurationSeconds = &seconds
	if got := parse(election); !got.alien {
		t.Errorf("leader election is taken for a lock: %+v", got)
	}
	stripped := leaseWith(nil)
	stripped.Labels = nil
	if got := parse(stripped); got.alien || !got.whole {
		t.Errorf("a lock whose annotations were removed: %+v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"g0":"u1"}`, `{"u1":{"pod":"a/b","by":"x","revoked":true}}`)
	f.Add(`{"g0":"u1","g0":2}`, `[]`)
	f.Fuzz(func(t *testing.T, owners, pods string) {
		got := parse(leaseWith(map[string]string{OwnersAnnotation: owners, PodsAnnotation: pods}))
		if got.whole {
			return
		}
		lease := leaseWith(nil)
		if err := got.write(lease); err != nil {
			t.Fatal(err)
		}
		if back := parse(lease); !maps.Equal(back.owners, got.owners) || !maps.Equal(back.pods, got.pods) {
			t.Errorf("%+v became %+v", got, back)
		}
	})
}
