// SPDX-License-Identifier: Apache-2.0

// Package harness gives tests and benchmarks a lab of their own, and the few things that they all do with it: submit
// gangs, wait, read what the API server says. The lab ends with the process, however that ends.
package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The cluster of every lab here: 48 nodes, 2 spines of 6 leaves of 4 nodes of 8 GPUs.
const (
	ClusterLine    = "spine:2 leaf:6 node:4 gpu:8"
	Nodes          = 48
	NodesPerLeaf   = 4
	LeavesPerSpine = 6
)

// Profile is the schedulerName of our profile in manifests/.
const Profile = "topology-aware-scheduler"

// Lab is a running one.
type Lab struct {
	Root   string // of the project
	Dir    string
	Config *rest.Config
	Client *kubernetes.Clientset
}

// Main is TestMain: starts a lab, hands it to use, runs the tests, stops it.
func Main(m *testing.M, use func(*Lab)) {
	code, err := run(m, use)
	if err != nil {
		fmt.Fprintln(os.Stderr, "harness:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M, use func(*Lab)) (int, error) {
	root, err := filepath.Abs("../..") // of test/PACKAGE, where go test runs us
	if err != nil {
		return 1, err
	}
	lab := &Lab{Root: root, Dir: filepath.Join(root, "build", "labs", strconv.Itoa(os.Getpid()))}
	defer os.RemoveAll(lab.Dir)
	if out, err := lab.command("up", "--cluster", ClusterLine, "--with-parent", strconv.Itoa(os.Getpid())).CombinedOutput(); err != nil {
		return 1, fmt.Errorf("lab up: %w\n%s", err, out)
	}
	defer lab.command("down").Run()
	if lab.Config, err = clientcmd.BuildConfigFromFlags("", lab.Kubeconfig()); err != nil {
		return 1, err
	}
	lab.Config.QPS, lab.Config.Burst = 500, 1000
	if lab.Client, err = kubernetes.NewForConfig(lab.Config); err != nil {
		return 1, err
	}
	use(lab)
	return m.Run(), nil
}

func (l *Lab) command(verb string, args ...string) *exec.Cmd {
	command := exec.Command(l.Program("lab"), append([]string{verb, "--dir", l.Dir}, args...)...)
	command.Dir = l.Root
	return command
}

// Kubeconfig is the admin's.
func (l *Lab) Kubeconfig() string {
	return filepath.Join(l.Dir, "kubeconfig")
}

// Program is the path of one of ours.
func (l *Lab) Program(name string) string {
	return filepath.Join(l.Root, "bin", name)
}
