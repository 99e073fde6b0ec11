// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// watchProcess calls gone when a process, not necessarily a child, has ended. A pidfd names the process itself, so
// a process id that is used again does no harm. Ends with the context.
func watchProcess(ctx context.Context, pid int, gone func()) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("watch process %d: %w", pid, err)
	}
	go func() {
		defer unix.Close(fd)
		for ctx.Err() == nil {
			ended, err := waitPidfd(fd, time.Second)
			if err != nil || ended {
				gone()
				return
			}
		}
	}()
	return nil
}

// waitPidfd waits until the process has ended, at most for d.
func waitPidfd(fd int, d time.Duration) (ended bool, err error) {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(d.Milliseconds()))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return false, fmt.Errorf("wait for a process: %w", err)
	}
	return n > 0, nil
}

// watchFile calls gone when path no longer names the open file: somebody has removed the lab's folder.
func watchFile(ctx context.Context, path string, file *os.File, gone func()) {
	for pause(ctx, time.Second) == nil {
		held, err := file.Stat()
		if err != nil {
			continue
		}
		named, err := os.Stat(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil || !os.SameFile(held, named) {
			gone()
			return
		}
	}
}
