// SPDX-License-Identifier: Apache-2.0

// Package status tries the writers of status and the reader of live configuration on a real API server, with nobody
// else writing there: the lab's own scheduler loses its rights to these kinds first.
package status

import (
	"context"
	"log"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/test/harness"
)

var (
	lab    *harness.Lab
	client dynamic.Interface
)

func TestMain(m *testing.M) {
	harness.Main(m, func(started *harness.Lab) {
		lab, client = started, dynamic.NewForConfigOrDie(started.Config)
		if err := silence(context.Background()); err != nil {
			log.Fatalf("take the scheduler's rights away: %v", err)
		}
	})
}

// silence leaves the scheduler without any right to our kinds; the tests write with the admin's.
func silence(ctx context.Context) error {
	role, err := lab.Client.RbacV1().ClusterRoles().Get(ctx, "frond-scheduler", metav1.GetOptions{})
	if err != nil {
		return err
	}
	rules := role.Rules[:0]
	for _, rule := range role.Rules {
		switch rule.APIGroups[0] {
		case apis.GPU.Group, apis.Topology.Group, apis.Scheduling.Group:
		default:
			rules = append(rules, rule)
		}
	}
	role.Rules = rules
	_, err = lab.Client.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{})
	return err
}
