// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// supervisor owns children: it starts them in order, brings back those that end by themselves, and stops them in reverse
// order. Each child has one goroutine that owns its process.
type supervisor struct {
	board    *board
	log      *slog.Logger
	grace    time.Duration
	spawn    *spawner
	children []*child

	// Until settled, a child that ends is a failed start; afterwards it is started again.
	mu      sync.Mutex
	settled bool
	failure error       // the first one
	failed  func(error) // told of it
}

type child struct {
	program program
	stop    context.CancelFunc
	done    chan struct{}
}

// programFailed is a start that went wrong, and where its last words are.
type programFailed struct {
	name, log, how string
}

func (e *programFailed) Error() string { return fmt.Sprintf("%s did not start: %s", e.name, e.how) }

func newSupervisor(b *board, log *slog.Logger, grace time.Duration, failed func(error)) *supervisor {
	return &supervisor{board: b, log: log, grace: grace, spawn: newSpawner(), failed: failed}
}

// start adds a child and returns at once.
func (s *supervisor) start(p program) {
	ctx, stop := context.WithCancel(context.Background())
	c := &child{program: p, stop: stop, done: make(chan struct{})}
	s.children = append(s.children, c)
	go func() {
		defer close(c.done)
		s.keep(ctx, p)
	}()
}

// keep runs one child until it is told to stop.
func (s *supervisor) keep(ctx context.Context, p program) {
	delay := restartMin
	for restarts := 0; ; restarts++ {
		begin := time.Now()
		how := p.run(ctx, s.spawn, s.grace, func(pid int) {
			s.log.Info("started", "program", p.name, "pid", pid, "restarts", restarts)
			s.note(p.name, func(state *ProgramState) {
				state.PID, state.Port, state.Since, state.Restarts = pid, p.port, begin, restarts
			})
		})
		s.note(p.name, func(state *ProgramState) { state.PID, state.LastExit = 0, how })
		if ctx.Err() != nil {
			s.log.Info("stopped", "program", p.name, "how", how)
			return
		}
		if s.startFailed(&programFailed{name: p.name, log: p.log, how: how}) {
			s.log.Error("ended during start", "program", p.name, "how", how)
			return
		}
		if time.Since(begin) >= restartCalm {
			delay = restartMin
		}
		s.log.Warn("ended by itself; will be started again", "program", p.name, "how", how, "in", delay)
		if pause(ctx, delay) != nil {
			return
		}
		delay = min(2*delay, restartMax)
	}
}

// startFailed notes that the start has failed; false when it had succeeded before.
func (s *supervisor) startFailed(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settled {
		return false
	}
	if s.failure == nil {
		s.failure = err
		s.failed(err)
	}
	return true
}

// settle ends the start: from now on children that end are started again. An error is a start that failed in the last moment.
func (s *supervisor) settle() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = s.failure == nil
	return s.failure
}

func (s *supervisor) note(name string, change func(*ProgramState)) {
	if err := s.board.program(name, change); err != nil {
		s.log.Error("state not written", "error", err)
	}
}

// stopAll stops the children, last started first, each with its grace time, and returns when all are gone.
func (s *supervisor) stopAll() {
	for i := len(s.children) - 1; i >= 0; i-- {
		s.children[i].stop()
		<-s.children[i].done
	}
	s.children = nil
	s.spawn.close()
}
