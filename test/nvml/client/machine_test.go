// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// machine is a description file, read here a second time and independently of the fake driver's own reader.
type machine struct {
	driver, model, uuid string
	memoryMiB           uint64
	linkVersion         uint32
	hasMIG              bool
	cluster             string
	clique              uint32
	gpus                []gpu
}

type gpu struct {
	bus       string // as NVML writes it
	numa      int
	root, plx string
	lost, mig bool
	links     []link
	slices    []string // profiles
	pids      []uint32
}

// link leads to a GPU, or to a switch when peer is -1.
type link struct {
	peer, back int
	up         bool
}

func readMachine(t *testing.T, path string) machine {
	t.Helper()
	var m machine
	if err := m.read(path); err != nil {
		t.Fatalf("reading a machine: %v", err)
	}
	return m
}

func (m *machine) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for number, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 0 {
			if err := m.take(filepath.Dir(path), words); err != nil {
				return fmt.Errorf("%s:%d: %w", path, number+1, err)
			}
		}
	}
	return nil
}

func (m *machine) take(folder string, words []string) error {
	n := numbers(words)
	switch words[0] {
	case "include":
		return m.read(filepath.Join(folder, words[1]))
	case "driver":
		m.driver = words[1]
	case "model":
		m.model = strings.Join(words[1:], " ")
	case "uuid":
		m.uuid = words[1]
	case "memory":
		m.memoryMiB = uint64(n[1])
	case "nvlink":
		m.linkVersion = uint32(n[1])
	case "has-mig":
		m.hasMIG = true
	case "fabric":
		m.cluster, m.clique = words[1], uint32(n[2])
	case "gpus":
		m.gpus = make([]gpu, n[1])
	case "gpu":
		g := &m.gpus[n[1]]
		g.bus = strings.ToUpper("0000" + words[2])
		g.numa, g.root, g.plx = n[4], words[6], words[8]
	case "join":
		for range n[3] {
			a, b := &m.gpus[n[1]], &m.gpus[n[2]]
			a.links = append(a.links, link{peer: n[2], back: len(b.links), up: true})
			b.links = append(b.links, link{peer: n[1], back: len(a.links) - 1, up: true})
		}
	case "switched":
		for i := range m.gpus {
			for range n[1] {
				m.gpus[i].links = append(m.gpus[i].links, link{peer: -1, up: true})
			}
		}
	case "down":
		l := &m.gpus[n[1]].links[n[2]]
		l.up = false
		if l.peer >= 0 {
			m.gpus[l.peer].links[l.back].up = false
		}
	case "lost":
		m.gpus[n[1]].lost = true
	case "mig":
		m.gpus[n[1]].mig = true
	case "instance":
		g := &m.gpus[n[1]]
		g.mig, g.slices = true, append(g.slices, words[2])
	case "process":
		m.gpus[n[1]].pids = append(m.gpus[n[1]].pids, uint32(n[2]))
	case "cuda", "capability", "has-remap", "nic", "utilization", "used", "ecc", "remap-failed", "remap-pending", "xid", "hang":
	default:
		return fmt.Errorf("%q is not known", words[0])
	}
	return nil
}

// numbers gives the words that are numbers at their places; the others are 0.
func numbers(words []string) []int {
	n := make([]int, len(words))
	for i, word := range words {
		n[i], _ = strconv.Atoi(word)
	}
	return n
}

// joined tells whether NVLink leads from one GPU to the other.
func (m *machine) joined(a, b int) bool {
	return m.leads(a, b) || (m.leads(a, -1) && m.leads(b, -1))
}

func (m *machine) leads(from, to int) bool {
	for _, l := range m.gpus[from].links {
		if l.up && l.peer == to {
			return true
		}
	}
	return false
}

// level is NVML's distance between two GPUs.
func (m *machine) level(a, b int) int {
	x, y := m.gpus[a], m.gpus[b]
	switch {
	case x.plx == y.plx && x.plx != "-":
		return 10
	case x.root == y.root:
		return 30
	case x.numa == y.numa:
		return 40
	}
	return 50
}
