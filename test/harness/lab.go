// SPDX-License-Identifier: Apache-2.0

// Package harness gives tests and benchmarks a lab of their own, and the few things that they all do with it: submit
// gangs, wait, read what the API server says. The lab ends with the process, however that ends.
package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
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
func Main(m *testing.M, use func(*Lab)) { exit(m, usual, false, use) }

// MainWith is Main with other flags of `lab up`.
func MainWith(m *testing.M, flags []string, use func(*Lab)) {
	exit(m, func() (*Lab, error) { return up(strconv.Itoa(os.Getpid()), flags...) }, false, use)
}

// MainAlone is Main for tests that bring their own schedulers: the lab's own is paused.
func MainAlone(m *testing.M, use func(*Lab)) { exit(m, usual, true, use) }

func usual() (*Lab, error) { return up(strconv.Itoa(os.Getpid()), "--cluster", ClusterLine) }

func exit(m *testing.M, start func() (*Lab, error), alone bool, use func(*Lab)) {
	code, err := run(m, start, alone, use)
	if err != nil {
		fmt.Fprintln(os.Stderr, "harness:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M, start func() (*Lab, error), alone bool, use func(*Lab)) (int, error) {
	lab, err := start()
	if err != nil {
		return 1, err
	}
	defer lab.down()
	if alone {
		resume, err := lab.pauseScheduler()
		if err != nil {
			return 1, err
		}
		defer resume()
	}
	use(lab)
	return m.Run(), nil
}

// Start gives a test a lab of its own with another cluster, until the test ends. Its own scheduler is paused.
func Start(t testing.TB, cluster string) *Lab {
	t.Helper()
	return start(t, "--cluster", cluster)
}

// StartFabric is Start with a cluster that a fabric file describes.
func StartFabric(t testing.TB, file string) *Lab {
	t.Helper()
	return start(t, "--fabric", file)
}

func start(t testing.TB, how, cluster string) *Lab {
	t.Helper()
	lab, err := up(fmt.Sprintf("%d-%s", os.Getpid(), t.Name()), how, cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lab.down)
	resume, err := lab.pauseScheduler()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(resume)
	return lab
}

func up(name string, flags ...string) (*Lab, error) {
	root, err := filepath.Abs("../..") // of test/PACKAGE, where go test runs us
	if err != nil {
		return nil, err
	}
	lab := &Lab{Root: root, Dir: filepath.Join(root, "build", "labs", name)}
	flags = append(flags, "--with-parent", strconv.Itoa(os.Getpid()))
	if out, err := lab.command("up", flags...).CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("lab up: %w\n%s", err, out), os.RemoveAll(lab.Dir))
	}
	if lab.Config, err = clientcmd.BuildConfigFromFlags("", lab.Kubeconfig()); err == nil {
		lab.Config.QPS, lab.Config.Burst = 500, 1000
		lab.Client, err = kubernetes.NewForConfig(lab.Config)
	}
	if err != nil {
		lab.down()
		return nil, err
	}
	return lab, nil
}

func (l *Lab) down() {
	_ = l.command("down").Run()
	_ = os.RemoveAll(l.Dir)
}

// pauseScheduler stops the lab's own scheduler where it is: killed, it would be started again. A paused one needs to be
// woken before it can be told to end.
func (l *Lab) pauseScheduler() (resume func(), err error) {
	scheduler, err := l.Running("scheduler")
	if err != nil {
		return nil, err
	}
	return func() { _ = syscall.Kill(scheduler.PID, syscall.SIGCONT) }, syscall.Kill(scheduler.PID, syscall.SIGSTOP)
}

// Running is a program of the lab.
type Running struct {
	Name string
	PID  int
	Port int
}

// Running finds one by its name in `lab status`.
func (l *Lab) Running(name string) (Running, error) {
	data, err := os.ReadFile(filepath.Join(l.Dir, "state.json"))
	if err != nil {
		return Running{}, fmt.Errorf("read the lab's state: %w", err)
	}
	var state struct{ Programs []Running }
	if err := json.Unmarshal(data, &state); err != nil {
		return Running{}, fmt.Errorf("read the lab's state: %w", err)
	}
	for _, program := range state.Programs {
		if program.Name == name && program.PID > 0 {
			return program, nil
		}
	}
	return Running{}, fmt.Errorf("the lab runs no %s", name)
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

// Program is the path of one of ours. FROND_BIN names another folder than bin/, with programs of its own under the same
// names: the same tests then run on an older control plane (test/tools/oldkube.sh).
func (l *Lab) Program(name string) string {
	if other := os.Getenv("FROND_BIN"); other != "" {
		return filepath.Join(l.Root, other, name)
	}
	return filepath.Join(l.Root, "bin", name)
}
