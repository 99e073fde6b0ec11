// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// State is what the supervisor tells others through state.json. It is true only while the lock is held.
type State struct {
	Supervisor int            `json:"supervisor"`
	StartedAt  time.Time      `json:"startedAt"`
	Ready      bool           `json:"ready"`
	Cluster    string         `json:"cluster"` // the one-line form, or the path of the fabric file
	Nodes      int            `json:"nodes"`
	Server     string         `json:"server"`
	Programs   []ProgramState `json:"programs"` // in order of start
}

// ProgramState is one program of a running lab.
type ProgramState struct {
	Name     string    `json:"name"`
	PID      int       `json:"pid"` // 0: not running, a restart is due
	Port     int       `json:"port,omitempty"`
	Since    time.Time `json:"since"`
	Restarts int       `json:"restarts"`
	LastExit string    `json:"lastExit,omitempty"`
}

// readState reads state.json.
func (l Lab) readState() (State, error) {
	var state State
	data, err := os.ReadFile(l.path("state.json"))
	if err != nil {
		return state, fmt.Errorf("read the lab's state: %w", err)
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return state, fmt.Errorf("read the lab's state %s: %w", l.path("state.json"), err)
	}
	return state, nil
}

// board keeps the state and writes it out with every change, whole: readers see the old one or the new one.
type board struct {
	lab   Lab
	mu    sync.Mutex
	state State
}

func (b *board) update(change func(*State)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.state)
	data, err := json.MarshalIndent(b.state, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the lab's state: %w", err)
	}
	if err := writeFile(b.lab.path("state.json"), append(data, '\n')); err != nil {
		return fmt.Errorf("write the lab's state: %w", err)
	}
	return nil
}

// program changes one program's entry, which is made when it is new.
func (b *board) program(name string, change func(*ProgramState)) error {
	return b.update(func(state *State) {
		for i := range state.Programs {
			if state.Programs[i].Name == name {
				change(&state.Programs[i])
				return
			}
		}
		entry := ProgramState{Name: name}
		change(&entry)
		state.Programs = append(state.Programs, entry)
	})
}

// writeFile replaces a file in one step; only its owner can read it.
func writeFile(path string, data []byte) error {
	part := path + ".part"
	if err := os.WriteFile(part, data, 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}
