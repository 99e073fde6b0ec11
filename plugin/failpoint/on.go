// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const variable = "FROND_FAILPOINTS"

const allowed = "NAME=kill, NAME=sleep:DURATION or NAME=error, each with @N for the N-th time, separated by commas"

type action struct {
	kind  string // kill, sleep or error
	sleep time.Duration
	at    int // counted from 1
}

// set holds what was asked for and how often each point was passed.
type set struct {
	mu     sync.Mutex
	asked  map[string]action
	passed map[string]int
}

var points = fromEnvironment()

func fromEnvironment() *set {
	asked, err := parse(os.Getenv(variable))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return &set{asked: asked, passed: map[string]int{}}
}

// Hit passes the point of that name.
func Hit(name string) error {
	found, due := points.pass(name)
	if !due {
		return nil
	}
	fmt.Fprintf(os.Stderr, "failpoint %s: %s\n", name, found.kind)
	switch found.kind {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way: nothing more may happen here
	case "sleep":
		time.Sleep(found.sleep)
		return nil
	default:
		return fmt.Errorf("failpoint %s", name)
	}
}

// HitNth passes the points of a row of n equal steps of which i are done: NAME-first, NAME-half, NAME-last-but-one and
// NAME-last, all that i has reached: steps that run in parallel may be counted two at a time.
func HitNth(name string, i, n int) error {
	var first error
	for _, point := range nth(i, n) {
		if err := Hit(name + "-" + point); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func nth(i, n int) []string {
	var at []string
	for _, point := range []struct {
		name string
		step int
	}{{"first", 1}, {"half", (n + 1) / 2}, {"last-but-one", n - 1}, {"last", n}} {
		if i >= point.step && i > 0 {
			at = append(at, point.name)
		}
	}
	return at
}

// pass counts, and says whether the point's action is due now.
func (s *set) pass(name string) (action, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, asked := s.asked[name]
	if !asked {
		return action{}, false
	}
	s.passed[name]++
	return found, s.passed[name] == found.at
}

func parse(text string) (map[string]action, error) {
	asked := map[string]action{}
	if text == "" {
		return asked, nil
	}
	for entry := range strings.SplitSeq(text, ",") {
		name, rest, _ := strings.Cut(entry, "=")
		what, number, counted := strings.Cut(rest, "@")
		found := action{kind: what, at: 1}
		var err error
		if counted {
			if found.at, err = strconv.Atoi(number); err != nil || found.at < 1 {
				return nil, fmt.Errorf("%s: %q: the number after @ must be 1 or more", variable, entry)
			}
		}
		if duration, sleeps := strings.CutPrefix(what, "sleep:"); sleeps {
			found.kind = "sleep"
			if found.sleep, err = time.ParseDuration(duration); err != nil || found.sleep < 0 {
				return nil, fmt.Errorf("%s: %q: %q is no duration such as 200ms", variable, entry, duration)
			}
		} else if what != "kill" && what != "error" || name == "" {
			return nil, fmt.Errorf("%s: %q: must be %s", variable, entry, allowed)
		}
		if _, twice := asked[name]; twice {
			return nil, fmt.Errorf("%s: %q: %s is there twice", variable, entry, name)
		}
		asked[name] = found
	}
	return asked, nil
}
