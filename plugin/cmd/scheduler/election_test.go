// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"

	"github.com/frond-scheduler/frond/plugin/topologygpu"
)

// What upstream's election tells of itself comes to us, in this program with all that it links: a package that brings
// upstream's own provider would make every standby think that it is alone.
func TestTheElectionTellsWhoLeads(t *testing.T) {
	leader := topologygpu.WatchElection()
	wants := func(when string, leading, elected bool) {
		t.Helper()
		if gotLeading, gotElected := leader.Leading(); gotLeading != leading || gotElected != elected {
			t.Errorf("%s: got leading %v, elected %v", when, gotLeading, gotElected)
		}
	}
	wants("before there is an election", false, false)

	client := fake.NewClientset()
	began, ended := make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: "frond-scheduler",
		Lock: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: "frond-system", Name: "frond-scheduler"},
			Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: "us"}},
		LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(began) }, OnStoppedLeading: func() { close(ended) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	wants("as a standby", false, true)
	shows(t, 0)
	go elector.Run(t.Context())
	<-began
	wants("as the leader", true, true)
	shows(t, 1)
	client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("nobody is there")
	})
	<-ended
	wants("when the Lease cannot be renewed", false, true)
	shows(t, 0)
}

// shows says whether upstream's metric is there as it always was.
func shows(t *testing.T, want float64) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "leader_election_master_status" {
			metric := family.GetMetric()[0]
			if got := metric.GetGauge().GetValue(); got != want || !testutil.LabelsMatch(metric, map[string]string{"name": "frond-scheduler"}) {
				t.Errorf("got %v, want %v", metric, want)
			}
			if !strings.HasPrefix(family.GetHelp(), "[ALPHA] ") {
				t.Errorf("help %q", family.GetHelp())
			}
			return
		}
	}
	t.Error("no such metric")
}
