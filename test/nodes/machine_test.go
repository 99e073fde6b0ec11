// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// machine is what a description says of GPUs and their links, read here once more: neither the agent nor the fake driver
// has a say in what is expected.
type machine struct {
	gpus int
	numa []int
	gbps [][]int
	out  []bool // nobody may have it: dead, sick, or in MIG mode, cut into slices or not
}

// readMachine reads test/nvml/README.md's format, the lines that matter here.
func readMachine(t *testing.T, node string) *machine {
	t.Helper()
	file, err := os.Open(machineFile(node))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	m := &machine{}
	perLink := 0
	var links [][]int // of each GPU: its peer, or -1 for a switch; -2: down
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		n := func(i int) int {
			number, err := strconv.Atoi(words[i])
			if err != nil {
				t.Fatalf("%s: %q: %v", node, lines.Text(), err)
			}
			return number
		}
		switch words[0] {
		case "gpus":
			m.gpus = n(1)
			m.numa, m.out, links = make([]int, m.gpus), make([]bool, m.gpus), make([][]int, m.gpus)
		case "gpu":
			m.numa[n(1)] = n(4)
		case "nvlink":
			perLink = n(2) / 25000 * 25 // sold as 25 or 50
		case "join":
			for range n(3) {
				links[n(1)], links[n(2)] = append(links[n(1)], n(2)), append(links[n(2)], n(1))
			}
		case "switched":
			for i := range links {
				for range n(1) {
					links[i] = append(links[i], -1)
				}
			}
		case "down":
			peer := links[n(1)][n(2)]
			links[n(1)][n(2)] = -2
			if peer >= 0 {
				links[peer][pairedWith(links, n(1), peer)] = -2
			}
		case "lost", "ecc", "remap-failed", "instance", "mig":
			m.out[n(1)] = true
		case "xid":
			m.out[n(1)] = m.out[n(1)] || n(2) != 31 // a program's fault
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	m.gbps = make([][]int, m.gpus)
	for a := range links {
		m.gbps[a] = make([]int, m.gpus)
		for b := range links {
			if a != b {
				m.gbps[a][b] = perLink * max(count(links[a], b), min(count(links[a], -1), count(links[b], -1)))
			}
		}
	}
	return m
}

// pairedWith is the link of peer that is the other end: one of those that lead back and are up.
func pairedWith(links [][]int, from, peer int) int {
	for i, to := range links[peer] {
		if to == from {
			return i
		}
	}
	panic(fmt.Sprintf("GPU %d has no link back to %d", peer, from))
}

func count(list []int, what int) int {
	found := 0
	for _, entry := range list {
		if entry == what {
			found++
		}
	}
	return found
}

// free are the GPUs that a pod may have when these are held.
func (m *machine) free(held map[int]bool) []int {
	var list []int
	for i := range m.gpus {
		if !m.out[i] && !held[i] {
			list = append(list, i)
		}
	}
	return list
}
