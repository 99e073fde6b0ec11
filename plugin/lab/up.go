// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Expand turns a fabric, as a file's text or as one line, into the engine's JSON: reading fabrics is the engine's business.
type Expand func(text []byte, line bool) ([]byte, error)

// UpOptions is what `lab up` was asked for.
type UpOptions struct {
	Cluster   string // one line
	Fabric    string // path of a fabric file, instead of Cluster
	Machines  string // what the nodes of Cluster stand for, "dgx-h100=16,dgx-a100=8"; "": nothing, and nobody reports
	Agents    int    // how many of them have a real agent; the lab speaks for the others
	ParentPID int    // the lab ends when this process does; 0: it stays
	Timeout   time.Duration
	Expand    Expand
	Out       io.Writer
	Terminal  bool // Out is one
}

// InputError is the user's to mend: exit 2.
type InputError struct{ err error }

func (e *InputError) Error() string { return e.err.Error() }
func (e *InputError) Unwrap() error { return e.err }

func inputErrorf(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }

// ErrInterrupted is a start that the user stopped.
var ErrInterrupted = errors.New("interrupted; nothing is left running")

// Up starts a lab and returns when all of it is Ready, or when nothing of it is left. A lab that runs already is left as it is.
func (l Lab) Up(opts UpOptions) error {
	if opts.Cluster != "" && opts.Fabric != "" {
		return inputErrorf("--fabric and --cluster exclude each other: give one")
	}
	if opts.Timeout < time.Second {
		return inputErrorf("--timeout: must be at least 1s, got %s", opts.Timeout)
	}
	if opts.ParentPID != 0 {
		if err := unix.Kill(opts.ParentPID, 0); opts.ParentPID < 0 || err != nil && !errors.Is(err, unix.EPERM) {
			return inputErrorf("--with-parent: must be a running process, got %d", opts.ParentPID)
		}
	}
	if up, err := l.joinRunning(opts); up || err != nil {
		return err
	}
	if err := l.checkPrograms(); err != nil {
		return err
	}
	asked, err := l.order(opts)
	if err != nil {
		return err
	}
	if err := l.claimDir(); err != nil {
		return &InputError{err}
	}
	lock, err := l.tryLock()
	for errors.Is(err, errRunning) { // another up was faster
		if up, err := l.joinRunning(opts); up || err != nil {
			return err
		}
		lock, err = l.tryLock()
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := l.wipe(false); err != nil {
		return err
	}
	fmt.Fprintf(opts.Out, "lab: starting %s (%d nodes) in %s\n", asked.Cluster, len(asked.Nodes), Show(l.Dir))
	begin := time.Now()
	if err := l.launch(asked, lock, opts); err != nil {
		return err
	}
	fmt.Fprintf(opts.Out, "lab: up after %.1f s; KUBECONFIG=%s\n", time.Since(begin).Seconds(), Show(l.Kubeconfig()))
	return nil
}

// order expands the fabric before anything is touched, so that bad input costs nothing.
func (l Lab) order(opts UpOptions) (order, error) {
	asked := order{Dir: l.Dir, Bin: l.Bin, Cluster: opts.Cluster, ParentPID: opts.ParentPID, TimeoutSecs: int(opts.Timeout.Seconds())}
	var expanded []byte
	if opts.Fabric != "" {
		text, err := os.ReadFile(opts.Fabric)
		if err != nil {
			return asked, inputErrorf("--fabric: %w", err)
		}
		asked.Cluster, asked.Fabric = opts.Fabric, string(text)
		if expanded, err = opts.Expand(text, false); err != nil {
			return asked, inputErrorf("%s: %w", opts.Fabric, err)
		}
	} else {
		var err error
		if expanded, err = opts.Expand([]byte(asked.Cluster), true); err != nil {
			return asked, inputErrorf("--cluster: %w", err)
		}
	}
	nodes, err := parseFabric(expanded)
	if err != nil {
		return asked, &InputError{err}
	}
	asked.Nodes = nodes
	if opts.Machines == "" {
		return asked, nil
	}
	if opts.Fabric != "" {
		return asked, inputErrorf("--machines and --fabric exclude each other: a fabric file says itself what its nodes are")
	}
	return asked, l.deal(asked.Nodes, opts.Machines, opts.Agents)
}

// joinRunning waits for a lab that is being started or stopped by others. up: it is up, and that was said; otherwise nothing runs.
func (l Lab) joinRunning(opts UpOptions) (up bool, err error) {
	told := false
	for deadline := time.Now().Add(opts.Timeout); time.Now().Before(deadline); time.Sleep(pollEvery) {
		if running, err := l.running(); err != nil || !running {
			return false, err
		}
		if state, err := l.readState(); err == nil && state.Ready {
			fmt.Fprintf(opts.Out, "lab: already up in %s with %s (%d nodes); lab down ends it\n", Show(l.Dir), state.Cluster, state.Nodes)
			return true, nil
		}
		if !told {
			fmt.Fprintf(opts.Out, "lab: %s is being started or stopped; waiting for that\n", Show(l.Dir))
			told = true
		}
	}
	return false, fmt.Errorf("the lab in %s is running but not ready after %s; see %s", Show(l.Dir), opts.Timeout, Show(l.LogFile("lab")))
}

// launch starts the supervisor as a session of its own and follows it until the lab is ready or gone.
func (l Lab) launch(asked order, lock *os.File, opts UpOptions) error {
	if err := os.MkdirAll(l.path("logs"), 0o700); err != nil {
		return fmt.Errorf("make the folder for logs: %w", err)
	}
	log, err := os.OpenFile(l.LogFile("lab"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the supervisor's log: %w", err)
	}
	defer log.Close()
	mine, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer mine.Close()
	defer theirs.Close()
	input, err := json.Marshal(asked)
	if err != nil {
		return fmt.Errorf("encode the order: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the lab's own program: %w", err)
	}

	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(interrupts)

	cmd := exec.Command(self, "supervise")
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock, theirs} // lockFD, reportFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the supervisor: %w", err)
	}
	theirs.Close()

	ctx, stopped := context.WithCancelCause(context.Background())
	defer stopped(nil)
	go func() {
		select {
		case <-interrupts:
			stopped(ErrInterrupted)
			_ = cmd.Process.Signal(syscall.SIGTERM) // it reports failure when everything has ended
		case <-ctx.Done():
		}
	}()
	err = follow(mine, opts.Out, opts.Terminal)
	if err == nil {
		if ctx.Err() != nil { // the interrupt came in the last moment: the lab goes down all the same
			_ = cmd.Wait()
			return ErrInterrupted
		}
		return cmd.Process.Release()
	}
	_ = cmd.Wait() // its failure has been reported, with more to it than an exit code
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var failed *StartError
	if !errors.As(err, &failed) {
		return &StartError{Text: err.Error(), Log: l.LogFile("lab"), Last: tail(l.LogFile("lab"))}
	}
	return err
}

func socketPair() (mine, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a channel to the supervisor: %w", err)
	}
	return os.NewFile(uintptr(pair[0]), "supervisor"), os.NewFile(uintptr(pair[1]), "up"), nil
}
