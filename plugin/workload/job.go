// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/frond-scheduler/frond/shim"
)

// jobSpec is the gang that a Job makes: all pods that it still runs at one time.
func jobSpec(job *batchv1.Job) Spec {
	pods := int64(desiredPods(&job.Spec))
	need := pods
	if job.Spec.Completions != nil {
		// Pods that have succeeded do not come back; the last ones must not wait for them.
		need = min(need, int64(*job.Spec.Completions)-int64(job.Status.Succeeded))
	}
	return Spec{UID: job.UID, MinMember: int(max(need, 1)), Problem: sizeProblem(pods, func(n int64) string {
		return fmt.Sprintf("Job %s/%s: a gang has at most %d pods, parallelism asks for %d", job.Namespace, job.Name, shim.MembersMax, n)
	})}
}

func sizeProblem(n int64, sentence func(int64) string) string {
	if n < 1 || n > shim.MembersMax {
		return sentence(n)
	}
	return ""
}

// desiredPods that a Job runs at one time, by its spec.
func desiredPods(spec *batchv1.JobSpec) uint32 {
	pods := int32(1)
	if spec.Parallelism != nil {
		pods = *spec.Parallelism
	}
	if spec.Completions != nil {
		pods = min(pods, *spec.Completions)
	}
	return uint32(max(pods, 0))
}
