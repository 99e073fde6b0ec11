// SPDX-License-Identifier: Apache-2.0

// Package e2e tries the whole of Frond on a real control plane: bin/lab with etcd, kube-apiserver,
// kube-controller-manager, KWOK nodes and our scheduler. What happened is read from the API server, never from the
// scheduler's own word.
package e2e

import (
	"testing"

	"github.com/frond-scheduler/frond/test/harness"
)

var lab *harness.Lab

func TestMain(m *testing.M) {
	harness.Main(m, func(started *harness.Lab) { lab = started })
}
