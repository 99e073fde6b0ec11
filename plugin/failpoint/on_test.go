// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package failpoint

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain plays the scheduler when it is asked to: passes points until the one that ends it.
func TestMain(m *testing.M) {
	if os.Getenv("FROND_FAILPOINT_CHILD") != "" {
		for i := 1; i <= 4; i++ {
			if err := HitNth("bind", i, 4); err != nil {
				os.Stdout.WriteString(err.Error() + "\n")
			}
			os.Stdout.WriteString("passed\n")
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(t *testing.T, points string) (string, *os.ProcessState) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), "FROND_FAILPOINT_CHILD=1", variable+"="+points)
	out, _ := command.CombinedOutput()
	return string(out), command.ProcessState
}

func TestKillEndsTheProcessAtThePoint(t *testing.T) {
	out, state := child(t, "bind-half=kill")
	if status := state.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Errorf("ended with %v, want SIGKILL", state)
	}
	if passed := strings.Count(out, "passed"); passed != 1 {
		t.Errorf("passed %d steps of 4 before the half, want 1; output:\n%s", passed, out)
	}
}

func TestErrorIsReturnedOnce(t *testing.T) {
	out, state := child(t, "bind-last=error")
	if !state.Success() || strings.Count(out, "failpoint bind-last\n") != 1 {
		t.Errorf("%v; output:\n%s", state, out)
	}
}

func TestBadValueEndsTheProcess(t *testing.T) {
	out, state := child(t, "bind-last=explode")
	if state.ExitCode() != 2 || !strings.Contains(out, `"bind-last=explode": must be NAME=kill`) {
		t.Errorf("%v; output:\n%s", state, out)
	}
}

func TestOnlyTheNthPassingCounts(t *testing.T) {
	asked, err := parse("lock-first=error@2,planned=sleep:20ms@1")
	if err != nil {
		t.Fatal(err)
	}
	points = &set{asked: asked, passed: map[string]int{}}
	for i, want := range []bool{false, true, false} {
		if failed := Hit("lock-first") != nil; failed != want {
			t.Errorf("passing %d failed: %t, want %t", i+1, failed, want)
		}
	}
	begin := time.Now()
	if err := Hit("planned"); err != nil || time.Since(begin) < 20*time.Millisecond {
		t.Errorf("sleep returned %v after %s", err, time.Since(begin))
	}
	if err := Hit("reserved"); err != nil {
		t.Errorf("a point that nobody asked for: %v", err)
	}
}

func TestStepsOfARow(t *testing.T) {
	for _, c := range []struct {
		i, n int
		want string
	}{
		{0, 0, ""}, {0, 1, ""}, {1, 1, "first half last-but-one last"}, {1, 2, "first half last-but-one"},
		{2, 2, "first half last-but-one last"}, {1, 3, "first"}, {2, 3, "first half last-but-one"},
		{1, 16, "first"}, {7, 16, "first"}, {8, 16, "first half"}, {14, 16, "first half"}, {15, 16, "first half last-but-one"},
		{16, 16, "first half last-but-one last"}, {31, 64, "first"}, {32, 64, "first half"},
	} {
		if got := strings.Join(nth(c.i, c.n), " "); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.i, c.n, got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"a=kill,b=error@7,c=sleep:1s", ""},
		{"a", "must be"}, {"=kill", "must be"}, {"a=kill,", "must be"}, {"a=stop", "must be"},
		{"a=kill@0", "1 or more"}, {"a=kill@x", "1 or more"}, {"a=sleep:", "no duration"}, {"a=sleep:-1s", "no duration"}, {"a=kill,a=error", "twice"},
	} {
		_, err := parse(c.text)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	names := make([]string, 0, 3)
	asked, _ := parse("a=kill,b=error@7,c=sleep:1s")
	for name := range asked {
		names = append(names, name)
	}
	slices.Sort(names)
	if strings.Join(names, "") != "abc" {
		t.Errorf("points %v", names)
	}
}
