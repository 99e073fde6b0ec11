// SPDX-License-Identifier: Apache-2.0

// Package bench measures on a lab, as ratios of two things in one run: machines are noisy, ratios less so.
package bench

import (
	"slices"
	"testing"

	"github.com/frond-scheduler/frond/test/harness"
)

var lab *harness.Lab

func TestMain(m *testing.M) {
	harness.Main(m, func(started *harness.Lab) { lab = started })
}

const ours = `
- schedulerName: with-plugin
- schedulerName: with-plugin-gpu
  plugins:
    multiPoint: {enabled: [{name: TopologyGPU}]}
    bind: {enabled: [{name: TopologyGPU}, {name: DefaultBinder}], disabled: [{name: DefaultBinder}]}
    postFilter: {enabled: [{name: TopologyGPU}, {name: DefaultPreemption}], disabled: [{name: DefaultPreemption}]}
`

// BenchmarkDefaultProfile: 500 pods of a default profile, in a scheduler that has our plugin loaded for another profile
// and in one that has not, by turns. plugin/plain is the ratio of the median times; 1 is no cost.
func BenchmarkDefaultProfile(b *testing.B) {
	lab.StartScheduler(b, ours)
	lab.StartScheduler(b, "\n- schedulerName: plain\n")
	var with, plain []float64
	for b.Loop() {
		for range 3 {
			plain = append(plain, lab.Deploy(b, lab.Namespace(b), 500, harness.PodSpec("plain", 0)).Seconds())
			with = append(with, lab.Deploy(b, lab.Namespace(b), 500, harness.PodSpec("with-plugin", 0)).Seconds())
		}
	}
	slices.Sort(with)
	slices.Sort(plain)
	b.ReportMetric(with[len(with)/2]/plain[len(plain)/2], "plugin/plain")
	b.ReportMetric(500/plain[len(plain)/2], "plain-pods/s")
}
