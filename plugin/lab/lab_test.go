// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestTheLockHasOneHolder(t *testing.T) {
	l := Lab{Dir: t.TempDir()}
	if running, err := l.running(); err != nil || running {
		t.Fatalf("running() = %v, %v in an empty folder", running, err)
	}
	lock, err := l.tryLock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.tryLock(); !errors.Is(err, errRunning) {
		t.Errorf("a second holder got %v, want %v", err, errRunning)
	}
	if running, err := l.running(); err != nil || !running {
		t.Errorf("running() = %v, %v while the lock is held", running, err)
	}
	lock.Close()
	if running, err := l.running(); err != nil || running {
		t.Errorf("running() = %v, %v after the holder has gone", running, err)
	}
}

func TestWaitLockReturnsWhenTheHolderIsGone(t *testing.T) {
	l := Lab{Dir: t.TempDir()}
	held, err := l.tryLock()
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := l.waitLock(short); !errors.Is(err, errRunning) {
		t.Errorf("waitLock gave %v while the lock was held", err)
	}
	go func() {
		time.Sleep(50 * time.Millisecond)
		held.Close()
	}()
	lock, err := l.waitLock(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
}

func TestAStaleFolderHasNoSupervisor(t *testing.T) {
	l := Lab{Dir: t.TempDir()}
	// A process id left behind, even that of a living process, means nothing without the lock.
	if err := os.WriteFile(l.path("lock"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.holder(context.Background()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("holder() = %v, want %v", err, os.ErrNotExist)
	}
	var out strings.Builder
	if err := l.Down(context.Background(), &out); err != nil {
		t.Errorf("down: %v", err)
	}
	if err := l.Status(context.Background(), &out); !errors.Is(err, ErrNotUp) {
		t.Errorf("status: %v, want %v", err, ErrNotUp)
	}
}

func TestStateIsWrittenWhole(t *testing.T) {
	l := Lab{Dir: t.TempDir()}
	b := &board{lab: l}
	begin := time.Now().Round(0)
	for name, pid := range map[string]int{"a": 1, "b": 2} {
		if err := b.program(name, func(p *ProgramState) { p.PID, p.Since = pid, begin }); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.program("a", func(p *ProgramState) { p.Restarts++ }); err != nil {
		t.Fatal(err)
	}
	state, err := l.readState()
	if err != nil {
		t.Fatal(err)
	}
	if len(state.Programs) != 2 {
		t.Fatalf("%d programs, want 2", len(state.Programs))
	}
	for _, p := range state.Programs {
		if p.Name == "a" && (p.PID != 1 || p.Restarts != 1 || !p.Since.Equal(begin)) {
			t.Errorf("a is %+v", p)
		}
	}
	if left, _ := filepath.Glob(l.path("*.part")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestOnlyEmptyFoldersAndLabsAreClaimed(t *testing.T) {
	for _, test := range []struct {
		name  string
		files []string
		ok    bool
	}{
		{"empty", nil, true},
		{"an earlier lab's", []string{"lock", "state.json", "logs", "kubeconfig"}, true},
		{"a lab that died while writing", []string{"lock", "state.json.part"}, true},
		{"somebody else's", []string{"thesis.tex"}, false},
		{"a lab's with more in it", []string{"lock", "thesis.tex"}, false},
		{"something with logs", []string{"logs"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := Lab{Dir: filepath.Join(t.TempDir(), "deep", "lab")}
			if err := os.MkdirAll(l.Dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, name := range test.files {
				if err := os.WriteFile(l.path(name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.claimDir(); (err == nil) != test.ok {
				t.Errorf("claimDir() = %v", err)
			}
		})
	}
}

func TestWipeKeepsTheLockAndWhatIsNotOurs(t *testing.T) {
	l := Lab{Dir: t.TempDir()}
	for _, name := range []string{"lock", "kubeconfig", "foreign"} {
		if err := os.WriteFile(l.path(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"etcd", "logs"} {
		if err := os.Mkdir(l.path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.wipe(true); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(l.path("*"))
	if err != nil {
		t.Fatal(err)
	}
	if want := l.path("foreign") + " " + l.path("lock") + " " + l.path("logs"); strings.Join(left, " ") != want {
		t.Errorf("left: %v, want %s", left, want)
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	l := Lab{Dir: t.TempDir(), Bin: t.TempDir()}
	for _, name := range []string{"libfrond.so", progAPIServer, progController, progScheduler, progKwok, "kubectl"} {
		if err := os.WriteFile(filepath.Join(l.Bin, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	want := filepath.Join(l.Bin, "etcd") + " is missing: run make build"
	if err := l.checkPrograms(); err == nil || err.Error() != want {
		t.Errorf("checkPrograms() = %v, want %s", err, want)
	}
}

func TestBadRequestsAreTheUsersToMend(t *testing.T) {
	expand := func([]byte, bool) ([]byte, error) { return nil, errors.New("1: gpu: must be 1 to 16, got 99") }
	for name, opts := range map[string]UpOptions{
		"both":           {Fabric: "a", Cluster: "b", Timeout: time.Minute},
		"no time":        {Timeout: 0},
		"no such parent": {Timeout: time.Minute, ParentPID: -1, Cluster: "x"},
		"no such file":   {Timeout: time.Minute, Fabric: "/does/not/exist"},
		"not a cluster":  {Timeout: time.Minute, Cluster: "gpu:99"},
		"nothing at all": {Timeout: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			l := Lab{Dir: filepath.Join(t.TempDir(), "lab"), Bin: fakeBin(t)}
			opts.Expand = expand
			opts.Out = t.Output()
			err := l.Up(opts)
			var bad *InputError
			if !errors.As(err, &bad) {
				t.Errorf("Up() = %v, want an InputError", err)
			}
			if _, err := os.Stat(l.Dir); err == nil {
				t.Error("bad input has left a folder behind")
			}
		})
	}
}

func fakeBin(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range []string{"libfrond.so", progEtcd, progAPIServer, progController, progScheduler, progKwok, "kubectl"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
