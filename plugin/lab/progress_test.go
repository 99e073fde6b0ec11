// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFollowPrintsFinishedSteps(t *testing.T) {
	var lines strings.Builder
	to := &reporter{to: &lines}
	if err := to.step("etcd", func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	to.send(report{Ready: true})
	var out strings.Builder
	if err := follow(strings.NewReader(lines.String()), &out, false); err != nil {
		t.Fatal(err)
	}
	if want := "  etcd                         0.0 s\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestFollowTellsAFailureFromASilentEnd(t *testing.T) {
	var lines strings.Builder
	to := &reporter{to: &lines}
	to.send(report{Error: "etcd did not start: exit status 1", Log: "/x/etcd.log", Last: []string{"no disk"}})
	err := follow(strings.NewReader(lines.String()), &strings.Builder{}, false)
	var failed *StartError
	if !errors.As(err, &failed) {
		t.Fatalf("follow() = %v", err)
	}
	var out strings.Builder
	failed.Explain(&out)
	if !strings.Contains(out.String(), "last lines of /x/etcd.log:\n    no disk\n") {
		t.Errorf("explained as %q", out.String())
	}
	if err := follow(strings.NewReader(""), &out, false); err == nil {
		t.Error("a supervisor that says nothing counts as success")
	}
}

func TestBriefKeepsWhatIsWrong(t *testing.T) {
	err := errors.New(`an error on the server ("[+]ping ok\n[-]etcd failed: reason withheld\n[+]log ok\nreadyz check failed")`)
	if got := brief(err); got != "etcd failed: reason withheld" {
		t.Errorf("brief() = %q", got)
	}
	if got := brief(errors.New("connection refused")); got != "connection refused" {
		t.Errorf("brief() = %q", got)
	}
	if got := brief(errors.New(strings.Repeat("x", 10000))); len(got) > 400 {
		t.Errorf("brief() has %d bytes", len(got))
	}
}

func TestTailReadsTheEndOfLongLogs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if got := tail(path); got != nil {
		t.Errorf("a missing log gave %q", got)
	}
	var text strings.Builder
	for i := range 100000 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got := tail(path)
	if len(got) != 15 || got[0] != "line 99985" || got[14] != "line 99999" {
		t.Errorf("tail() = %q", got)
	}
}
