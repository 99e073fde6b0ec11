// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"slices"
	"testing"

	"k8s.io/component-base/metrics/testutil"

	"github.com/frond-scheduler/frond/plugin/mirror"
	"github.com/frond-scheduler/frond/plugin/status"
)

type toldTo struct{ names []string }

func (t *toldTo) Report(s status.ReportState) { t.names = append(t.names, s.Name) }

// Only the leader writes, each verdict once; a new leader writes all.
func TestVerdictsOnReportsAreToldOnce(t *testing.T) {
	registerReports()
	leading, out := false, &toldTo{}
	told := &toldReports{out: out, leading: func() bool { return leading }, before: map[string]mirror.Verdict{}}
	good, bad := mirror.Verdict{Node: "a", UID: "1"}, mirror.Verdict{Node: "b", UID: "2", Stale: "old", Held: true}
	for i, step := range []struct {
		leads    bool
		verdicts []mirror.Verdict
		want     []string
	}{
		{false, []mirror.Verdict{good, bad}, nil},
		{true, []mirror.Verdict{good, bad}, []string{"a", "b"}},
		{true, []mirror.Verdict{good, bad}, nil},
		{true, []mirror.Verdict{good, {Node: "b", UID: "2", Stale: "old, got 10:00", Held: true}}, nil}, // the next heartbeat is late as well
		{true, []mirror.Verdict{good, {Node: "b", UID: "2", Stale: "old, got 10:01", Held: true}}, nil},
		{true, []mirror.Verdict{good, {Node: "b", UID: "2", Stale: "ahead, got 11:00", Held: true}}, []string{"b"}},
		{true, []mirror.Verdict{good, {Node: "b", UID: "2"}}, []string{"b"}},
		{true, []mirror.Verdict{good, {Node: "b", UID: "3"}}, []string{"b"}}, // another object
		{false, []mirror.Verdict{good}, nil},
		{true, []mirror.Verdict{good, {Node: "b", UID: "3", Refused: "odd"}}, []string{"a", "b"}},
	} {
		leading, out.names = step.leads, nil
		told.tell(step.verdicts)
		if !slices.Equal(out.names, step.want) {
			t.Errorf("%d: told %v, want %v", i, out.names, step.want)
		}
		if i == 0 {
			stale, err := testutil.GetGaugeMetricValue(staleReports)
			held, heldErr := testutil.GetGaugeMetricValue(heldNodes)
			if err != nil || heldErr != nil || stale != 1 || held != 1 {
				t.Errorf("a standby counts as well: %v stale, %v held, %v %v", stale, held, err, heldErr)
			}
		}
	}
	if refused, err := testutil.GetGaugeMetricValue(refusedReports); err != nil || refused != 1 {
		t.Errorf("%v refused, %v", refused, err)
	}
}
