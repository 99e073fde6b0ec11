// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// downPatience covers every program using up its grace time.
const downPatience = 6*stopGrace + 5*time.Second

// Down stops the lab and returns when nothing of it is left. No lab is fine too.
func (l Lab) Down(ctx context.Context, out io.Writer) error {
	if _, err := os.Stat(l.path("lock")); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(out, "lab: nothing to stop in %s\n", Show(l.Dir))
		return nil
	}
	begin := time.Now()
	stopped, err := l.stopHolder(ctx)
	if err != nil {
		return err
	}
	// A supervisor clears up behind itself, one that was killed could not. Not getting the lock means that an `up` was
	// waiting for it: what is there now is the next lab's.
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	lock, err := l.waitLock(short)
	if err == nil {
		defer lock.Close()
		err = l.wipe(true)
	}
	if err != nil && !errors.Is(err, errRunning) {
		return err
	}
	if !stopped {
		fmt.Fprintf(out, "lab: nothing runs in %s\n", Show(l.Dir))
		return nil
	}
	fmt.Fprintf(out, "lab: down after %.1f s; logs stay in %s\n", time.Since(begin).Seconds(), Show(l.path("logs")))
	return nil
}

// stopHolder asks the supervisor to stop. One that does not is killed, and the kernel then kills its children.
func (l Lab) stopHolder(ctx context.Context) (bool, error) {
	running, err := l.running()
	if err != nil || !running {
		return false, err
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	fd, err := l.holder(short)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	for _, try := range []struct {
		signal   unix.Signal
		patience time.Duration
	}{{unix.SIGTERM, downPatience}, {unix.SIGKILL, 5 * time.Second}} {
		if err := unix.PidfdSendSignal(fd, try.signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return false, fmt.Errorf("stop the supervisor: %w", err)
		}
		for deadline := time.Now().Add(try.patience); time.Now().Before(deadline); {
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
			ended, err := waitPidfd(fd, 200*time.Millisecond)
			if err != nil {
				return false, err
			}
			if ended {
				return true, nil
			}
		}
	}
	return false, errors.New("the supervisor did not end, not even when killed")
}
