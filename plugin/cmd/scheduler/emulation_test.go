// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

const asScheduler = "FROND_TEST_AS_SCHEDULER"

// TestMain makes this binary the scheduler itself for tests that need a process: upstream's feature gates are global.
func TestMain(m *testing.M) {
	if os.Getenv(asScheduler) != "" {
		main()
	}
	os.Exit(m.Run())
}

// kubeconfig names a server, with a token that it may ask for.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{"c": {Server: server, InsecureSkipTLSVerify: strings.HasPrefix(server, "https:")}},
		AuthInfos:      map[string]*api.AuthInfo{"u": {Token: "secret"}},
		Contexts:       map[string]*api.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// answering is an API server that knows its version and nothing else.
func answering(t *testing.T, version string) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, version)
	}))
	t.Cleanup(server.Close)
	return server
}

// chosen is what choose does to a command with these flags.
func chosen(t *testing.T, e *emulation, args ...string) (emulated []string, err error) {
	t.Helper()
	c := app.NewSchedulerCommand()
	c.SetContext(t.Context())
	slice := c.Flags().Lookup(flagEmulatedVersion).Value.(pflag.SliceValue)
	defer func() { // upstream keeps both in globals
		_ = slice.Replace(nil)
		c.Flags().Lookup("version").Changed = false
	}()
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	err = e.choose(c, nil)
	return slice.GetSlice(), err
}

func impatient() *emulation {
	return &emulation{within: 200 * time.Millisecond, every: 10 * time.Millisecond}
}

func TestEveryVersionOfAnAPIServer(t *testing.T) {
	for _, test := range []struct{ name, version, emulated, line, err string }{
		{"own", `{"major":"1","minor":"37","gitVersion":"v1.37.1"}`, "", "The API server has this scheduler's version", ""},
		{"one older", `{"major":"1","minor":"36","gitVersion":"v1.36.4"}`, "1.36", "emulating its version", ""},
		{"a vendor's", `{"major":"1","minor":"35+","gitVersion":"v1.35.3-eks-1a2b3c4"}`, "1.35", "emulating its version", ""},
		{"oldest", `{"major":"1","minor":"34","gitVersion":"v1.34.0"}`, "1.34", "emulating its version", ""},
		{"too old", `{"major":"1","minor":"33","gitVersion":"v1.33.9"}`, "", "",
			"the API server v1.33.9 is too old for this scheduler: emulation version 1.33 is not between [1.34, 1.37.0]; --emulated-version given by hand overrides this"},
		{"newer", `{"major":"1","minor":"38","gitVersion":"v1.38.0"}`, "", "The API server is newer than this scheduler", ""},
		{"emulates an older one", `{"major":"1","minor":"37","emulationMajor":"1","emulationMinor":"35","gitVersion":"v1.37.1"}`, "1.35", "emulating its version", ""},
		{"emulates its own", `{"major":"1","minor":"36","emulationMajor":"1","emulationMinor":"36","gitVersion":"v1.36.4"}`, "1.36", "emulating its version", ""},
		{"none", `{"gitVersion":"unknown"}`, "", "The API server told a version that is none", ""},
		{"no object", `soon`, "", "The API server did not tell its version", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := impatient()
			emulated, err := chosen(t, e, "--master="+answering(t, test.version).URL)
			if (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
				t.Errorf("got error %v, want %q", err, test.err)
			}
			if strings.Join(emulated, ",") != test.emulated || !strings.Contains(e.line, test.line) || (e.line == "") != (test.line == "") {
				t.Errorf("emulates %v and says %q %v, want %q and %q", emulated, e.line, e.details, test.emulated, test.line)
			}
		})
	}
}

func TestAUsersOwnVersionStays(t *testing.T) {
	for _, flag := range []string{"--emulated-version=1.36", "--emulated-version=kube=1.36", "--version"} {
		asked := false
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
		defer server.Close()
		e := impatient()
		emulated, err := chosen(t, e, "--master="+server.URL, flag)
		if err != nil || asked || e.line != "" || len(emulated) > 0 && "--emulated-version="+emulated[0] != flag {
			t.Errorf("%s: emulates %v, asked %v, says %q, %v", flag, emulated, asked, e.line, err)
		}
	}
}

func TestAnAPIServerThatIsAway(t *testing.T) {
	server := answering(t, "")
	server.Close()
	e := impatient()
	emulated, err := chosen(t, e, "--master="+server.URL)
	if err != nil || len(emulated) != 0 || !strings.HasPrefix(e.line, "The API server did not tell its version") || !slices.Contains(e.details, any(server.URL)) {
		t.Errorf("emulates %v, says %q %v, %v", emulated, e.line, e.details, err)
	}
}

func TestAnAPIServerThatHangs(t *testing.T) {
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer server.Close()
	defer close(end)
	e := impatient()
	if _, err := chosen(t, e, "--master="+server.URL); err != nil || !strings.HasPrefix(e.line, "The API server did not tell its version") {
		t.Errorf("says %q %v, %v", e.line, e.details, err)
	}
}

// While the API server comes up it refuses, and a moment later it does not.
func TestAnAPIServerThatComesUp(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{"major":"1","minor":"36"}`)
	}))
	defer server.Close()
	e := &emulation{within: time.Minute, every: time.Millisecond}
	emulated, err := chosen(t, e, "--master="+server.URL)
	if err != nil || !slices.Equal(emulated, []string{"1.36"}) || asked.Load() != 3 {
		t.Errorf("emulates %v after %d questions, %v", emulated, asked.Load(), err)
	}
}

// The API server that is asked is the one that upstream will talk to, with the same account.
func TestTheConfigurationSaysWhereTheAPIServerIs(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" || r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"major":"1","minor":"36"}`)
	}))
	defer server.Close()
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection: {kubeconfig: " + kubeconfig(t, server.URL) + "}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--config=" + config}, {"--config=" + config, "--kubeconfig=/ignored"}, {"--kubeconfig=" + kubeconfig(t, server.URL)}} {
		if emulated, err := chosen(t, impatient(), args...); err != nil || !slices.Equal(emulated, []string{"1.36"}) {
			t.Errorf("%v: emulates %v, %v", args, emulated, err)
		}
	}
}

// What upstream will refuse in a moment is left to it.
func TestFilesThatCannotBeReadAreUpstreamsToReport(t *testing.T) {
	for _, flag := range []string{"--config=/nowhere", "--kubeconfig=/nowhere"} {
		e := impatient()
		if emulated, err := chosen(t, e, flag); err != nil || len(emulated) != 0 || e.line != "" {
			t.Errorf("%s: emulates %v, says %q, %v", flag, emulated, e.line, err)
		}
	}
}

// process is the scheduler itself.
func process(t *testing.T, args ...string) *exec.Cmd {
	command := exec.CommandContext(t.Context(), os.Args[0], args...)
	command.Env = append(os.Environ(), asScheduler+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command
}

func TestAGateThatTheEmulatedVersionDoesNotHaveIsUpstreamsError(t *testing.T) {
	server := answering(t, `{"major":"1","minor":"34","gitVersion":"v1.34.2"}`)
	out, err := process(t, "--kubeconfig="+kubeconfig(t, server.URL), "--feature-gates=OpportunisticBatching=true").CombinedOutput()
	const want = "cannot set feature gate OpportunisticBatching to true, feature is PreAlpha at emulated version 1.34"
	if err == nil || !bytes.Contains(out, []byte(want)) {
		t.Errorf("ended with %v, said:\n%s", err, out)
	}
}

func TestTooOldEndsWithOneSentence(t *testing.T) {
	server := answering(t, `{"major":"1","minor":"33","gitVersion":"v1.33.9"}`)
	out, err := process(t, "--kubeconfig="+kubeconfig(t, server.URL)).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("the API server v1.33.9 is too old for this scheduler")) || bytes.Count(out, []byte("\n")) != 1 {
		t.Errorf("ended with %v, said:\n%s", err, out)
	}
}

// The line is in the log's own format, because the log is set up by then, and the deployment's gate exists at 1.34.
func TestTheLogSaysWhatIsEmulated(t *testing.T) {
	server := answering(t, `{"major":"1","minor":"34","gitVersion":"v1.34.2"}`)
	command := process(t, "--kubeconfig="+kubeconfig(t, server.URL), "--logging-format=json", "--secure-port=0",
		"--feature-gates=NominatedNodeNameForExpectation=false")
	out, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var line struct{ Msg, APIServer, Emulated string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && strings.HasPrefix(line.Msg, "The API server is older") {
			if line.APIServer != "v1.34.2" || line.Emulated != "1.34" {
				t.Errorf("got %s", lines.Text())
			}
			return
		}
		t.Log(lines.Text())
	}
	t.Error("the log does not say it")
}
