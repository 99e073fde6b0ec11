// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests start real processes. Some run this test binary again as a supervisor, to be killed.
const helperVariable = "FROND_LAB_TEST_SUPERVISOR"

func TestMain(m *testing.M) {
	switch dir := os.Getenv(helperVariable); {
	case len(os.Args) > 1 && os.Args[1] == "supervise": // what Up starts
		if err := Supervise(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case len(os.Args) > 1 && os.Args[1] == "up":
		helperUp(os.Args[2:])
	case dir != "":
		helperSupervisor(dir)
	default:
		os.Exit(m.Run())
	}
}

// helperSupervisor runs three programs, prints their process ids and waits for its own end.
func helperSupervisor(dir string) {
	b := &board{lab: Lab{Dir: dir}}
	s := newSupervisor(b, slog.New(slog.DiscardHandler), time.Second, func(error) {})
	for i := range 3 {
		s.start(shell(dir, fmt.Sprintf("p%d", i), "trap '' TERM HUP; exec sleep 1000"))
	}
	for _, p := range waitStarted(b, 3) {
		fmt.Println(p.PID)
	}
	select {}
}

func shell(dir, name, script string) program {
	return program{name: name, path: "/bin/sh", args: []string{"-c", script}, dir: dir, log: filepath.Join(dir, name+".log")}
}

func waitStarted(b *board, n int) []ProgramState {
	for {
		b.mu.Lock()
		programs := append([]ProgramState(nil), b.state.Programs...)
		b.mu.Unlock()
		running := 0
		for _, p := range programs {
			if p.PID != 0 {
				running++
			}
		}
		if running == n {
			return programs
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestNothingOutlivesAKilledSupervisor(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVariable+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	lines := bufio.NewScanner(out)
	for len(pids) < 3 && lines.Scan() {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) != 3 {
		t.Fatalf("the supervisor started %d programs, want 3", len(pids))
	}
	for _, pid := range pids {
		if !alive(pid) {
			t.Fatalf("program %d is not running", pid)
		}
	}
	// Long enough for Go to retire idle threads if the forking one were not held.
	time.Sleep(300 * time.Millisecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("program %d is gone", pid), func() bool { return !alive(pid) })
	}
}

func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(data), ") ")
	return !strings.HasPrefix(after, "Z")
}

func TestAProgramThatEndsIsStartedAgain(t *testing.T) {
	s, b := newTestSupervisor(t, func(err error) { t.Errorf("told of a failed start: %v", err) })
	s.start(shell(b.lab.Dir, "p", "exec sleep 1000"))
	before := waitStarted(b, 1)[0]
	if err := s.settle(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the program runs again", func() bool {
		state, err := b.lab.readState()
		return err == nil && state.Programs[0].PID != 0 && state.Programs[0].PID != before.PID &&
			state.Programs[0].Restarts == 1 && state.Programs[0].LastExit == "signal: killed"
	})
	s.stopAll()
}

func TestAProgramThatEndsDuringTheStartFailsIt(t *testing.T) {
	failures := make(chan error, 2)
	s, b := newTestSupervisor(t, func(err error) { failures <- err })
	s.start(shell(b.lab.Dir, "good", "exec sleep 1000"))
	s.start(shell(b.lab.Dir, "bad", "echo last words; exit 7"))
	s.start(program{name: "missing", path: "/does/not/exist", log: filepath.Join(b.lab.Dir, "missing.log")})
	err := <-failures
	var failed *programFailed
	if !errors.As(err, &failed) {
		t.Fatalf("failed with %v", err)
	}
	if got := s.settle(); got == nil {
		t.Error("a start that failed was settled")
	}
	if failed.name == "bad" {
		if failed.how != "exit status 7" {
			t.Errorf("bad ended with %q", failed.how)
		}
		if last := failure(err).Last; len(last) != 1 || last[0] != "last words" {
			t.Errorf("its last words were %q", last)
		}
	}
	s.stopAll()
	if len(failures) > 0 {
		t.Errorf("a second failure was told: %v", <-failures)
	}
}

func TestChildrenAreStoppedInReverseOrderAndKilledAfterTheirGrace(t *testing.T) {
	s, b := newTestSupervisor(t, func(error) {})
	order := filepath.Join(b.lab.Dir, "order")
	for _, name := range []string{"first", "second", "third"} {
		s.start(shell(b.lab.Dir, name, fmt.Sprintf("trap 'echo %s >> %s; exit 0' TERM; touch %s/%s.up; while :; do sleep 0.01; done",
			name, order, b.lab.Dir, name)))
	}
	s.start(shell(b.lab.Dir, "stubborn", fmt.Sprintf("trap '' TERM; touch %s/stubborn.up; while :; do sleep 0.01; done", b.lab.Dir)))
	for _, name := range []string{"first", "second", "third", "stubborn"} {
		eventually(t, name+" listens to signals", func() bool {
			_, err := os.Stat(filepath.Join(b.lab.Dir, name+".up"))
			return err == nil
		})
	}
	programs := waitStarted(b, 4)
	s.stopAll()
	data, err := os.ReadFile(order)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(data)); strings.Join(got, " ") != "third second first" {
		t.Errorf("stopped in the order %v", got)
	}
	for _, p := range programs {
		if alive(p.PID) {
			t.Errorf("%s is still running", p.Name)
		}
	}
	state, err := b.lab.readState()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range state.Programs {
		if p.Name == "stubborn" && p.LastExit != "signal: killed" {
			t.Errorf("stubborn ended with %q", p.LastExit)
		}
	}
}

func TestTheEndOfAnotherProcessIsNoticed(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	if err := watchProcess(t.Context(), cmd.Process.Pid, func() { close(gone) }); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
		t.Fatal("it still runs")
	case <-time.After(100 * time.Millisecond):
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone: // before anybody has waited for it: a zombie counts as gone
	case <-time.After(10 * time.Second):
		t.Fatal("its end was not noticed")
	}
	_ = cmd.Wait()
	if err := watchProcess(t.Context(), cmd.Process.Pid, func() {}); err == nil {
		t.Error("a process that is gone could be watched")
	}
}

func TestTheLossOfTheFolderIsNoticed(t *testing.T) {
	l := Lab{Dir: filepath.Join(t.TempDir(), "lab")}
	if err := l.claimDir(); err != nil {
		t.Fatal(err)
	}
	lock, err := l.tryLock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	gone := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		watchFile(ctx, l.path("lock"), lock, func() { gone = true })
	}()
	if err := os.RemoveAll(l.Dir); err != nil {
		t.Fatal(err)
	}
	<-done
	if !gone {
		t.Error("the loss was not noticed")
	}
}

func newTestSupervisor(t *testing.T, failed func(error)) (*supervisor, *board) {
	t.Helper()
	b := &board{lab: Lab{Dir: t.TempDir()}}
	return newSupervisor(b, slog.New(slog.NewTextHandler(t.Output(), nil)), 200*time.Millisecond, failed), b
}

func eventually(t *testing.T, what string, ask func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ask(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}
