// SPDX-License-Identifier: Apache-2.0

package shim

import "testing"

func TestConfigPutTunesTheNextPlan(t *testing.T) {
	e := engine(t)
	request, members := gang(2, 8)
	for _, step := range []struct {
		spec   string
		leaves uint32
	}{
		{`{"topologyConstraints": {"maxNodesPerLeaf": 1}}`, 2},
		{`{"scoringPreset": "agents"}`, 1}, // names no cap: back to the start, which has none
		{`{"topologyConstraints": {"maxGPUsPerLeaf": 8}, "scoringWeights": {"resourceAvailability": 0.5}}`, 2},
		{`{}`, 1},
		{"", 1},
	} {
		before, err := e.Stats()
		if err != nil {
			t.Fatal(err)
		}
		if err := e.ConfigPut([]byte(step.spec)); err != nil {
			t.Fatalf("%s: %v", step.spec, err)
		}
		plan, _, sentence, err := e.Plan(request, members, nil, nil)
		if err != nil || plan.Outcome != Placed || plan.Leaves != step.leaves || plan.Generation <= before.Generation {
			t.Errorf("%s: %+v %q %v", step.spec, plan, sentence, err)
		}
	}
}

func TestConfigPutRefusesInASentence(t *testing.T) {
	e := engine(t)
	before, err := e.Stats()
	if err != nil {
		t.Fatal(err)
	}
	refused := func(spec, want string) {
		t.Helper()
		if err := e.ConfigPut([]byte(spec)); !IsCode(err, CodeBad) || err.Error() != want {
			t.Errorf("%s: got %v", spec, err)
		}
	}
	refused(`{"scoringWeights": {"topologyAlignment": -3}}`, "spec.scoringWeights.topologyAlignment: must be between 0 and 1, got -3")
	refused(`{"topologyConstraints": {"maxNodesPerLeaf": "4"}}`, `spec.topologyConstraints.maxNodesPerLeaf: must be a whole number between 1 and 131072, got "4"`)
	refused("\xff", "spec: is not UTF-8 at byte 0")
	if err := e.WhatIf(); err != nil {
		t.Fatal(err)
	}
	refused("{}", "the configuration cannot change inside a what-if")
	if err := e.Undo(); err != nil {
		t.Fatal(err)
	}
	if after, err := e.Stats(); err != nil || after != before {
		t.Errorf("%+v became %+v, %v", before, after, err)
	}
	e.Close()
	if err := e.ConfigPut(nil); !IsCode(err, CodeUnknown) {
		t.Errorf("a closed engine answers %v", err)
	}
}
