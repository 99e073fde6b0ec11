// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// order is what `up` asks of the supervisor, as JSON on its standard input.
type order struct {
	Dir         string       `json:"dir"`
	Bin         string       `json:"bin"`
	Cluster     string       `json:"cluster"`
	Nodes       []FabricNode `json:"nodes"`
	Fabric      string       `json:"fabric,omitempty"`    // text of the fabric file
	ParentPID   int          `json:"parentPID,omitempty"` // end when this process has
	TimeoutSecs int          `json:"timeoutSeconds"`      // for the start
}

// Descriptors that `up` hands over.
const (
	lockFD   = 3
	reportFD = 4
)

const stopGrace = 5 * time.Second

var (
	errAskedToStop = errors.New("asked to stop")
	errParentGone  = errors.New("the process that this lab belongs to has ended")
	errFolderGone  = errors.New("the lab's folder was removed")
	errTooLate     = errors.New("not ready")
	errStartFailed = errors.New("the start failed")
	errUpGone      = errors.New("lab up ended before the lab was ready")
)

// Supervise is the process behind a lab, started by Up. It returns when the lab is down and nothing of it runs.
func Supervise(stdin io.Reader) error {
	// The lock is the supervisor's alone: a child that held it would keep the lab "running".
	if err := Seal(); err != nil {
		return err
	}
	lock := os.NewFile(lockFD, "lock")
	peer := os.NewFile(reportFD, "up")
	if lock == nil || peer == nil {
		return errors.New("supervise is started by lab up, not by hand")
	}
	defer lock.Close() // last of all; without a reference the collector would close it, and give the lock away
	var asked order
	if err := json.NewDecoder(stdin).Decode(&asked); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	lab := Lab{Dir: asked.Dir, Bin: asked.Bin}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := writeHolder(lock, os.Getpid()); err != nil {
		return err
	}

	// Three things end a lab: a signal, the end of the process it belongs to and the loss of its folder. Each ends this
	// context, with its name as the cause. A start ends, too, when a program does or the `up` that waits for it.
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		<-signals
		end(errAskedToStop)
	}()
	if asked.ParentPID != 0 {
		if err := watchProcess(ctx, asked.ParentPID, func() { end(errParentGone) }); err != nil {
			return err
		}
	}
	go watchFile(ctx, lab.path("lock"), lock, func() { end(errFolderGone) })

	state := &board{lab: lab, state: State{
		Supervisor: os.Getpid(), StartedAt: time.Now(), Cluster: asked.Cluster, Nodes: len(asked.Nodes),
	}}
	starting, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	children := newSupervisor(state, log, stopGrace, failed)
	go func() {
		_, _ = io.Copy(io.Discard, peer) // `up` writes nothing: this returns when it is gone
		children.startFailed(errUpGone)
	}()

	to := &reporter{to: peer}
	agents := 0
	for _, n := range asked.Nodes {
		if n.Agent {
			agents++
		}
	}
	var beats sync.WaitGroup
	free, err := choosePorts(endpointCount + agents)
	if err == nil {
		defer free.close() // not before: other labs must not choose them while a program of ours is being restarted
		at := endpointsFrom(free.numbers)
		bring := &bringUp{lab: lab, at: at, nodes: asked.Nodes, fabric: asked.Fabric, children: children, report: to}
		err = start(starting, bring, time.Duration(asked.TimeoutSecs)*time.Second)
		if err == nil && bring.reports != nil {
			beats.Go(func() { bring.reports.keep(ctx, log) })
		}
	}
	if err == nil {
		err = children.settle()
	}
	if err == nil {
		err = state.update(func(s *State) { s.Ready = true })
	}
	var bad report
	if err != nil {
		log.Error("start failed", "error", err)
		bad = failure(err) // now: its log is about to fill with the noise of going down
	} else {
		log.Info("ready")
		to.send(report{Ready: true})
		peer.Close()
		<-ctx.Done()
		log.Info("going down", "why", context.Cause(ctx))
		if err := state.update(func(s *State) { s.Ready = false }); err != nil {
			log.Error("state not written", "error", err)
		}
	}

	end(errStartFailed) // nothing new when it has ended already
	beats.Wait()
	children.stopAll()
	if errors.Is(context.Cause(ctx), errFolderGone) {
		lab.sweep()
	} else if wipeErr := lab.wipe(true); wipeErr != nil {
		log.Error("clean-up", "error", wipeErr)
	}
	log.Info("down")
	if err != nil {
		to.send(bad)
	}
	return err
}

// start brings the lab up within its time.
func start(ctx context.Context, bring *bringUp, limit time.Duration) error {
	timed, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w after %s", errTooLate, limit))
	defer cancel()
	err := bring.run(timed)
	if err == nil {
		return nil
	}
	// A refused connection is often the first sign of a program that has just died: the better reason comes a moment later.
	_ = pause(timed, 500*time.Millisecond)
	var program *programFailed
	if cause := context.Cause(timed); cause != nil && !errors.Is(err, cause) && !errors.As(err, &program) {
		return fmt.Errorf("%w (%s)", cause, err)
	}
	return err
}

// failure is the report of a start that failed.
func failure(err error) report {
	line := report{Error: err.Error()}
	var program *programFailed
	if errors.As(err, &program) {
		line.Error, line.Log, line.Last = program.Error(), program.log, tail(program.log)
	}
	return line
}

// Seal keeps descriptors that this process inherited, such as make's or a test's pipes, from reaching the programs that
// it starts: a lab outlives its starter and would hold them open.
func Seal() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("list inherited files: %w", err)
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}
