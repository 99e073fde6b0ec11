// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/frond-scheduler/frond/shim"
)

func TestJobSpec(t *testing.T) {
	ended := job(4, 10, GPUCount, "32")
	ended.Status.Succeeded = 8
	over := job(4, 4, GPUCount, "32")
	over.Status.Succeeded = 4
	for _, test := range []struct {
		name string
		job  *batchv1.Job
		want int
		bad  bool
	}{
		{"all at once", job(4, 4), 4, false}, {"fewer completions", job(4, 2), 2, false}, {"more completions", job(4, 10), 4, false},
		{"the last ones do not wait for those that succeeded", ended, 2, false}, {"over", over, 1, false},
		{"work queue", job(3, -1), 3, false}, {"defaults", job(-1, -1), 1, false},
		{"at the limit", job(shim.MembersMax, -1), shim.MembersMax, false}, {"over the limit", job(shim.MembersMax+1, -1), shim.MembersMax + 1, true},
		{"largest", job(1<<31-1, -1), 1<<31 - 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := jobSpec(test.job); got.MinMember != test.want || (got.Problem != "") != test.bad {
				t.Errorf("got %+v, want %d", got, test.want)
			}
		})
	}
}
