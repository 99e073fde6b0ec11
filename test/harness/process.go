// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// Scheduler is one that a test runs, and may kill or pause.
type Scheduler struct {
	Port    int
	Lease   string // of its leader election; "": none
	command *exec.Cmd
	output  *output
	gone    chan struct{}
}

// Setup says how a scheduler differs from the lab's own, whose configuration and account it has.
type Setup struct {
	Program    string // under bin/; "": scheduler
	Server     string // address of the API server; "": the real one
	Lease      string // of leader election, whose times are short; "": none
	Failpoints string // for bin/scheduler-faults
	Flags      []string
	NoLocks    bool   // device locks are off
	Record     string // file for a recording of all calls to the engine; "": none
}

// Run starts a scheduler and returns when it is healthy or, with failpoints, has died; the test's end ends it.
func (l *Lab) Run(t testing.TB, setup Setup) *Scheduler {
	t.Helper()
	program := setup.Program
	if program == "" {
		program = "scheduler"
	}
	path, err := l.configure(t.TempDir(), setup)
	if err != nil {
		t.Fatal(err)
	}
	var env []string
	if setup.Failpoints != "" {
		env = append(env, "FROND_FAILPOINTS="+setup.Failpoints)
	}
	if setup.Record != "" {
		env = append(env, "FROND_RECORD="+setup.Record)
	}
	scheduler := l.launch(t, program, path, setup.Flags, setup.Failpoints != "", env...)
	scheduler.Lease = setup.Lease
	return scheduler
}

// configure writes the lab's configuration of its scheduler, changed as asked, into dir.
func (l *Lab) configure(dir string, setup Setup) (string, error) {
	data, err := os.ReadFile(filepath.Join(l.Dir, "config", "scheduler.yaml"))
	if err != nil {
		return "", fmt.Errorf("read the lab's configuration: %w", err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(data, &config); err != nil {
		return "", fmt.Errorf("read the lab's configuration: %w", err)
	}
	leader := map[string]any{"leaderElect": false}
	if setup.Lease != "" {
		leader = map[string]any{
			"leaderElect": true, "resourceName": setup.Lease, "resourceNamespace": "frond-system",
			"leaseDuration": "5s", "renewDeadline": "4s", "retryPeriod": "500ms", // a request may take half the deadline
		}
	}
	config["leaderElection"] = leader
	if setup.Server != "" {
		account, err := l.account()
		if err != nil {
			return "", err
		}
		for _, cluster := range account.Clusters {
			cluster.Server, cluster.CertificateAuthorityData = setup.Server, nil
		}
		path := filepath.Join(dir, "kubeconfig")
		if err := clientcmd.WriteToFile(*account, path); err != nil {
			return "", fmt.Errorf("write the scheduler's account: %w", err)
		}
		connection, ok := config["clientConnection"].(map[string]any)
		if !ok {
			return "", errors.New("the lab's configuration has no clientConnection")
		}
		connection["kubeconfig"] = path
	}
	if setup.NoLocks {
		if err := withoutLocks(config); err != nil {
			return "", err
		}
	}
	if data, err = yaml.Marshal(config); err != nil {
		return "", fmt.Errorf("write a configuration: %w", err)
	}
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", fmt.Errorf("write a configuration: %w", err)
	}
	return path, nil
}

// withoutLocks turns device locks off in every profile that has our plugin's args.
func withoutLocks(config map[string]any) error {
	found := false
	profiles, _ := config["profiles"].([]any)
	for _, profile := range profiles {
		plugins, _ := profile.(map[string]any)["pluginConfig"].([]any)
		for _, plugin := range plugins {
			if args, ok := plugin.(map[string]any)["args"].(map[string]any); ok {
				args["deviceLocks"] = map[string]any{"enabled": false}
				found = true
			}
		}
	}
	if !found {
		return errors.New("the lab's configuration has no args of our plugin")
	}
	return nil
}

func (l *Lab) account() (*api.Config, error) {
	account, err := clientcmd.LoadFromFile(filepath.Join(l.Dir, "config", "scheduler.kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("read the scheduler's account: %w", err)
	}
	return account, nil
}

// SchedulerToken is what the lab's scheduler shows the API server.
func (l *Lab) SchedulerToken() (string, error) {
	account, err := l.account()
	if err != nil {
		return "", err
	}
	for _, user := range account.AuthInfos {
		if user.Token != "" {
			return user.Token, nil
		}
	}
	return "", errors.New("the scheduler's account has no token")
}

func (l *Lab) launch(t testing.TB, program, config string, flags []string, mayDie bool, env ...string) *Scheduler {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	s := &Scheduler{Port: port, output: &output{}, gone: make(chan struct{})}
	s.command = exec.Command(l.Program(program), "--config", config, "--bind-address", "127.0.0.1",
		"--secure-port", strconv.Itoa(port), "--authentication-kubeconfig", l.Kubeconfig(), "--authorization-kubeconfig", l.Kubeconfig(),
		"--feature-gates=NominatedNodeNameForExpectation=false") // as manifests/scheduler/deployment.yaml has it
	s.command.Args = append(s.command.Args, flags...)
	s.command.Env = append(os.Environ(), env...)
	s.command.Stdout, s.command.Stderr = s.output, s.output
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := spawn(s.command); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.gone)
		_ = s.command.Wait()
	}()
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("%s on port %d; all that it said is in %s:\n%s", program, port, s.keep(l, t.Name()), Tail(s.output.Bytes()))
		}
	})
	Eventually(t, 30*time.Second, func(ctx context.Context) error {
		if s.Ended() {
			if mayDie {
				return nil
			}
			t.Fatalf("%s ended: %s\n%s", program, s.command.ProcessState, Tail(s.output.Bytes()))
		}
		_, err := l.Scrape(ctx, port, "/healthz")
		return err
	})
	return s
}

// spawn starts a program from a thread that lives as long as this process does: the kernel sends a child its parent-death
// signal when the thread that forked it ends.
func spawn(command *exec.Cmd) error {
	done := make(chan error)
	spawner() <- func() { done <- command.Start() }
	return <-done
}

var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for one := range work {
			one()
		}
	}()
	return work
})

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// keep writes its whole output into build/reports.
func (s *Scheduler) keep(l *Lab, test string) string {
	dir := filepath.Join(l.Root, "build", "reports")
	path := filepath.Join(dir, fmt.Sprintf("scheduler-%s-%d.log", strings.ReplaceAll(test, "/", "-"), s.Port))
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(path, s.output.Bytes(), 0o644)); err != nil {
		return err.Error()
	}
	return path
}

// Kill ends it with SIGKILL, if it has not ended yet.
func (s *Scheduler) Kill() {
	_ = s.command.Process.Kill()
	<-s.gone
}

// Pause stops it where it is, until Continue.
func (s *Scheduler) Pause() error { return s.command.Process.Signal(syscall.SIGSTOP) }

// Continue lets a paused one go on.
func (s *Scheduler) Continue() error { return s.command.Process.Signal(syscall.SIGCONT) }

// Gone is closed when it has ended.
func (s *Scheduler) Gone() <-chan struct{} { return s.gone }

// Ended says whether it has.
func (s *Scheduler) Ended() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// Killed says whether a SIGKILL has ended it.
func (s *Scheduler) Killed() bool {
	if !s.Ended() {
		return false
	}
	status, ok := s.command.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Passed says whether it has come by a failpoint that was asked for.
func (s *Scheduler) Passed(point string) bool {
	return strings.Contains(s.Output(), "failpoint "+point+": ")
}

// Output is what it has said so far.
func (s *Scheduler) Output() string { return string(s.output.Bytes()) }

const ticksPerSecond = 100 // of /proc/PID/stat; the same on every Linux that Go runs on

// CPU is the processor time that it has used.
func (s *Scheduler) CPU() (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.command.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read the scheduler's CPU time: %w", err)
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:])) // from the third field on
	var ticks time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the scheduler's CPU time: %w", err)
		}
		ticks += time.Duration(n)
	}
	return ticks * time.Second / ticksPerSecond, nil
}

var sentRequests = regexp.MustCompile(`(?m)^rest_client_requests_total\{.*\} (\S+)$`)

// Requests is how many it has sent to the API server, as it counts them itself.
func (s *Scheduler) Requests(ctx context.Context, l *Lab) (float64, error) {
	text, err := l.Scrape(ctx, s.Port, "/metrics")
	if err != nil {
		return 0, fmt.Errorf("count the scheduler's requests: %w", err)
	}
	sum := 0.0
	for _, line := range sentRequests.FindAllSubmatch(text, -1) {
		count, err := strconv.ParseFloat(string(line[1]), 64)
		if err != nil {
			return 0, fmt.Errorf("count the scheduler's requests: %w", err)
		}
		sum += count
	}
	return sum, nil
}

// output keeps what a program writes while others read it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(data)
}

func (o *output) Bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.text.Bytes())
}
