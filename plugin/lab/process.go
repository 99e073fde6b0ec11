// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// program is one command line of the supervisor's.
type program struct {
	name string
	path string
	args []string
	env  []string
	dir  string
	log  string // output is appended here
	port int    // for status; 0: listens nowhere
}

// Restarts back off from restartMin to restartMax and start over once a program has held for restartCalm.
const (
	restartMin  = 250 * time.Millisecond
	restartMax  = 10 * time.Second
	restartCalm = 30 * time.Second
)

// spawner forks every child from one OS thread. The kernel sends a child its parent-death signal when the thread that
// forked it ends, not the process: so that thread must live as long as the supervisor does. Closing a spawner ends the
// thread, and with it whatever still runs.
type spawner struct {
	requests chan spawnRequest
}

type spawnRequest struct {
	cmd  *exec.Cmd
	done chan<- error
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan spawnRequest)}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for request := range s.requests {
			request.done <- request.cmd.Start()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	s.requests <- spawnRequest{cmd, done}
	return <-done
}

func (s *spawner) close() { close(s.requests) }

// run starts the program once and waits for its end. When the context ends it is asked to stop, and killed after grace.
// started is told the process id; the answer is how it ended, for logs and status.
func (p program) run(ctx context.Context, spawn *spawner, grace time.Duration, started func(pid int)) (how string) {
	log, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Sprintf("its log: %v", err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	cmd.Env = p.env
	cmd.Dir = p.dir
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	if err := spawn.start(cmd); err != nil {
		return err.Error()
	}
	started(cmd.Process.Pid)
	err = cmd.Wait()
	if cmd.ProcessState != nil { // says more than Wait's error, which for one that we stopped is the context's
		return cmd.ProcessState.String()
	}
	return fmt.Sprint(err)
}
