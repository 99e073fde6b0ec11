// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// report is one line from the supervisor to the `up` that waits for it.
type report struct {
	Step    string   `json:"step,omitempty"` // what was begun or, with Done, finished
	Done    bool     `json:"done,omitempty"`
	Seconds float64  `json:"seconds,omitempty"`
	Ready   bool     `json:"ready,omitempty"` // the last line of a good start
	Error   string   `json:"error,omitempty"` // the last line of a bad one
	Log     string   `json:"log,omitempty"`   // of the program that failed
	Last    []string `json:"last,omitempty"`  // lines of it when it failed
}

// reporter sends reports. Nobody listening is not an error: whoever waited has gone, and the supervisor knows by other means.
type reporter struct {
	mu sync.Mutex
	to io.Writer
}

func (r *reporter) send(line report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = json.NewEncoder(r.to).Encode(line)
}

// step reports the begin and the end of one piece of the start.
func (r *reporter) step(name string, work func() error) error {
	begin := time.Now()
	r.send(report{Step: name})
	if err := work(); err != nil {
		return err
	}
	r.send(report{Step: name, Done: true, Seconds: time.Since(begin).Seconds()})
	return nil
}

// StartError is a lab that did not come up: what failed, and the last words of the program that did.
type StartError struct {
	Text string
	Log  string
	Last []string
}

func (e *StartError) Error() string { return e.Text }

// Explain prints the last words.
func (e *StartError) Explain(to io.Writer) {
	if e.Log != "" && len(e.Last) == 0 {
		fmt.Fprintf(to, "lab: its log %s is empty\n", Show(e.Log))
	} else if e.Log != "" {
		fmt.Fprintf(to, "lab: last lines of %s:\n", Show(e.Log))
		for _, line := range e.Last {
			fmt.Fprintf(to, "    %s\n", line)
		}
	}
	fmt.Fprintln(to, "lab: nothing is left running")
}

// follow prints reports until the supervisor says ready, fails or goes away. On a terminal the step that
// is under way is shown in place; elsewhere only finished steps are lines.
func follow(from io.Reader, to io.Writer, terminal bool) error {
	lines := bufio.NewScanner(from)
	var open []string // steps under way
	for lines.Scan() {
		var line report
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("read the supervisor's report: %w", err)
		}
		if terminal {
			fmt.Fprint(to, "\r\x1b[K")
		}
		switch {
		case line.Error != "":
			_, _ = io.Copy(io.Discard, from) // it ends once everything that it started has ended
			return &StartError{Text: line.Error, Log: line.Log, Last: line.Last}
		case line.Ready:
			return nil
		case line.Done:
			fmt.Fprintf(to, "  %-26s %5.1f s\n", line.Step, line.Seconds)
			open = slices.DeleteFunc(open, func(step string) bool { return step == line.Step })
		default:
			open = append(open, line.Step)
		}
		if terminal && len(open) > 0 {
			fmt.Fprintf(to, "  %s …", strings.Join(open, ", "))
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the supervisor's report: %w", err)
	}
	return errors.New("the supervisor ended without a word")
}

// tail returns the last lines of a log.
func tail(path string) []string {
	const lines = 15
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	const window = 32 << 10
	if info, err := file.Stat(); err == nil && info.Size() > window {
		if _, err := file.Seek(-window, io.SeekEnd); err != nil {
			return nil
		}
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return nil
	}
	text := strings.TrimRight(string(data), "\n")
	if text == "" {
		return nil
	}
	all := strings.Split(text, "\n")
	return all[max(0, len(all)-lines):]
}
