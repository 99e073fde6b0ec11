// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// These tests run the real Up and the real supervisor, with an etcd that never gets anywhere: what is left of a start
// that fails, is interrupted or is killed?

const oneNode = `{"nodes":[{"name":"node-1","gpus":8}]}`

func testUp(l Lab, parent int) error {
	return l.Up(UpOptions{
		Cluster: "one", ParentPID: parent, Timeout: time.Minute, Out: os.Stdout,
		Expand: func([]byte, bool) ([]byte, error) { return []byte(oneNode), nil },
	})
}

// helperUp is `lab up` as a process of its own: DIR BIN PARENT.
func helperUp(args []string) {
	parent, err := strconv.Atoi(args[2])
	if err == nil {
		err = testUp(Lab{Dir: args[0], Bin: args[1]}, parent)
	}
	if errors.Is(err, ErrInterrupted) {
		os.Exit(130)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// labWithEtcd is a lab whose etcd is a script.
func labWithEtcd(t *testing.T, script string) Lab {
	t.Helper()
	l := Lab{Dir: filepath.Join(t.TempDir(), "lab"), Bin: fakeBin(t)}
	if err := os.WriteFile(filepath.Join(l.Bin, progEtcd), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return l
}

// hanging notes its process id and does nothing, for ever.
const hanging = `echo $$ > logs/etcd.pid; exec sleep 1000`

func startHelper(t *testing.T, l Lab, parent int) (cmd *exec.Cmd, etcd int) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "up", l.Dir, l.Bin, strconv.Itoa(parent))
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "etcd has started", func() bool {
		data, err := os.ReadFile(l.path("logs", "etcd.pid"))
		if err == nil {
			etcd, err = strconv.Atoi(strings.TrimSpace(string(data)))
		}
		return err == nil
	})
	return cmd, etcd
}

func nothingLeft(t *testing.T, l Lab, etcd int) {
	t.Helper()
	eventually(t, "the lock is free", func() bool {
		running, err := l.running()
		return err == nil && !running
	})
	if alive(etcd) {
		t.Errorf("etcd (%d) has outlived its supervisor", etcd)
	}
}

func TestAFailedStartSaysWhatFailedAndLeavesNothing(t *testing.T) {
	l := labWithEtcd(t, "echo $$ > logs/etcd.pid; echo no disk; exit 3")
	err := testUp(l, 0)
	var failed *StartError
	if !errors.As(err, &failed) {
		t.Fatalf("Up() = %v", err)
	}
	if want := "etcd did not start: exit status 3"; failed.Text != want {
		t.Errorf("failed with %q, want %q", failed.Text, want)
	}
	if failed.Log != l.LogFile(progEtcd) || len(failed.Last) != 1 || failed.Last[0] != "no disk" {
		t.Errorf("last words in %s: %q", failed.Log, failed.Last)
	}
	if running, err := l.running(); err != nil || running {
		t.Errorf("running() = %v, %v", running, err)
	}
	for _, name := range []string{"pki", "kubeconfig", "state.json"} {
		if _, err := os.Stat(l.path(name)); err == nil {
			t.Errorf("%s was left behind", name)
		}
	}
}

func TestAnInterruptedStartLeavesNothing(t *testing.T) {
	l := labWithEtcd(t, hanging)
	cmd, etcd := startHelper(t, l, 0)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("up ended with %v, want exit status 130", err)
	}
	if running, err := l.running(); err != nil || running {
		t.Errorf("up has returned, but running() = %v, %v", running, err)
	}
	nothingLeft(t, l, etcd)
}

func TestAKilledStartLeavesNothing(t *testing.T) {
	l := labWithEtcd(t, hanging)
	cmd, etcd := startHelper(t, l, 0)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	nothingLeft(t, l, etcd)
}

func TestALabEndsWithTheProcessItBelongsTo(t *testing.T) {
	l := labWithEtcd(t, hanging)
	owner := exec.Command("sleep", "1000")
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	cmd, etcd := startHelper(t, l, owner.Process.Pid)
	if err := owner.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()
	if err := cmd.Wait(); err == nil {
		t.Error("up succeeded without its owner")
	}
	nothingLeft(t, l, etcd)
}

func TestDownStopsAStartUnderWay(t *testing.T) {
	l := labWithEtcd(t, hanging)
	cmd, etcd := startHelper(t, l, 0)
	if err := l.Down(context.Background(), t.Output()); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, l, etcd)
	if err := cmd.Wait(); err == nil {
		t.Error("up succeeded although the lab was taken down")
	}
}

func TestASecondUpWaitsForTheFirstAndStartsItselfWhenThatFails(t *testing.T) {
	l := labWithEtcd(t, hanging)
	first, etcd := startHelper(t, l, 0)
	second := make(chan error, 1)
	go func() { second <- testUp(l, 0) }()
	select {
	case err := <-second:
		t.Fatalf("the second up did not wait: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	eventually(t, "the second has taken over", func() bool {
		data, err := os.ReadFile(l.path("logs", "etcd.pid"))
		return err == nil && len(data) > 0 && strings.TrimSpace(string(data)) != strconv.Itoa(etcd)
	})
	if alive(etcd) {
		t.Error("the first etcd still runs")
	}
	if err := l.Down(context.Background(), t.Output()); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err == nil {
		t.Error("the second up succeeded although its lab was taken down")
	}
}
