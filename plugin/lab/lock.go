// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The lock is an open-file-description lock (fcntl) on a file in the lab's folder. `up` takes it and hands the open file
// to the supervisor, so there is no moment in which a second `up` could get in; the kernel gives it back however the
// supervisor ends. Unlike flock it can be looked at without being taken. The file holds the supervisor's process id,
// valid only as long as the lock is held.

// errRunning says that somebody else holds the lock.
var errRunning = errors.New("a lab is running here")

// tryLock takes the lock or returns errRunning.
func (l Lab) tryLock() (*os.File, error) {
	file, err := os.OpenFile(l.path("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lab's lock: %w", err)
	}
	err = unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		file.Close()
		return nil, errRunning
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("take the lab's lock: %w", err)
	}
	return file, nil
}

// running tells whether a lab holds the lock; it takes and makes nothing.
func (l Lab) running() (bool, error) {
	file, err := os.Open(l.path("lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open the lab's lock: %w", err)
	}
	defer file.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return false, fmt.Errorf("look at the lab's lock: %w", err)
	}
	return lock.Type != unix.F_UNLCK, nil
}

// waitLock takes the lock as soon as its holder is gone.
func (l Lab) waitLock(ctx context.Context) (*os.File, error) {
	for {
		file, err := l.tryLock()
		if err == nil || !errors.Is(err, errRunning) {
			return file, err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, errRunning
		}
	}
}

// writeHolder notes the supervisor's process id in the lock that it holds.
func writeHolder(lock *os.File, pid int) error {
	if err := lock.Truncate(0); err != nil {
		return fmt.Errorf("note the supervisor in the lock: %w", err)
	}
	if _, err := lock.WriteAt([]byte(strconv.Itoa(pid)+"\n"), 0); err != nil {
		return fmt.Errorf("note the supervisor in the lock: %w", err)
	}
	return nil
}

// holder returns a pidfd of the process that holds the lock. The order matters: a process id may be used again, but not
// while the lock is held, so the lock is looked at once more after the process has been opened.
func (l Lab) holder(ctx context.Context) (pidfd int, err error) {
	for {
		pid, readErr := l.readHolder()
		if readErr == nil {
			fd, openErr := unix.PidfdOpen(pid, 0)
			running, err := l.running()
			if err == nil && running && openErr == nil {
				return fd, nil
			}
			if openErr == nil {
				unix.Close(fd)
			}
			if err != nil {
				return -1, err
			}
			if !running {
				return -1, fs.ErrNotExist
			}
		}
		// Between taking the lock and writing the id there is a moment; nobody stays in it.
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return -1, fmt.Errorf("find the supervisor of %s: %w", Show(l.Dir), err)
		}
	}
}

func (l Lab) readHolder() (int, error) {
	file, err := os.Open(l.path("lock"))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 32))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// pause sleeps, or returns early with the reason why the context ended.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
