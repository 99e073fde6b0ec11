// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/frond-scheduler/frond/test/harness"
	"github.com/frond-scheduler/frond/test/judge"
)

// Gangs that each need 60 % of the cluster arrive interleaved, pod by pod, in random order: they run one after the other,
// and none waits on another's half.
func TestGangsOfSixtyPercent(t *testing.T) {
	random := seeded(t)
	ns := lab.Namespace(t)
	j := watch(t)
	lab.Run(t, harness.Setup{})
	gangs := either(6, 50)
	const size = (harness.Nodes*60 + 99) / 100
	type member struct{ gang, rank int }
	var members []member
	for gang := range gangs {
		name := fmt.Sprintf("gang-%d", gang)
		j.Expect(judge.Gang{ID: ns + "/" + name, Size: size, Required: true})
		lab.Group(t, ns, name, size)
		for rank := range size {
			members = append(members, member{gang, rank})
		}
	}
	random.Shuffle(len(members), func(a, b int) { members[a], members[b] = members[b], members[a] })
	for _, m := range members {
		group := fmt.Sprintf("gang-%d", m.gang)
		lab.Member(t, ns, fmt.Sprintf("%s-%d", group, m.rank), group, 8, harness.RunFor("1"))
	}
	begin := time.Now()
	verdict(t, j, time.Duration(30+10*gangs)*time.Second)
	t.Logf("%d gangs of %d of %d nodes have run %.1f s after the last pod was created", gangs, size, harness.Nodes, time.Since(begin).Seconds())
}
