// SPDX-License-Identifier: Apache-2.0

// Package lab runs a whole Kubernetes control plane with simulated GPU nodes on one machine: etcd, kube-apiserver,
// kube-controller-manager, KWOK and our scheduler, each a program of its own, with certificates and rights as a real
// cluster has them. One supervisor process owns all of them and everything in the lab's folder; whoever holds the lock
// in that folder is the running lab, so a stale folder is never mistaken for one.
package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultDir and DefaultCluster are what `lab up` uses when nothing is said.
const (
	DefaultDir     = ".lab"
	DefaultCluster = "spine:4 leaf:8 node:4 gpu:8"
)

// Names of the programs, as found under bin/, in the order in which they start.
const (
	progEtcd       = "etcd"
	progAPIServer  = "kube-apiserver"
	progController = "kube-controller-manager"
	progScheduler  = "scheduler"
	progKwok       = "kwok"
	progAgent      = "frond-agent"
)

// Lab is a place where a lab runs or may run: its folder and the folder of its programs.
type Lab struct {
	Dir string // absolute
	Bin string // absolute
}

// Open names a lab; nothing is touched. An empty bin means the folder of the running program.
func Open(dir, bin string) (Lab, error) {
	if dir == "" {
		return Lab{}, errors.New("--dir: must not be empty")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Lab{}, fmt.Errorf("--dir %s: %w", dir, err)
	}
	if bin == "" {
		self, err := os.Executable()
		if err != nil {
			return Lab{}, fmt.Errorf("find the lab's own programs: %w", err)
		}
		bin = filepath.Dir(self)
	}
	return Lab{Dir: abs, Bin: bin}, nil
}

func (l Lab) path(parts ...string) string { return filepath.Join(append([]string{l.Dir}, parts...)...) }

// Kubeconfig is the cluster admin's.
func (l Lab) Kubeconfig() string { return l.path("kubeconfig") }

// LogFile is where a program's output goes; "lab" is the supervisor's own.
func (l Lab) LogFile(program string) string { return l.path("logs", program+".log") }

// Show shortens a path for messages when it lies under the current folder.
func Show(path string) string {
	cwd, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(cwd, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return path
	}
	return rel
}

// checkPrograms says in one sentence which file is not there yet.
func (l Lab) checkPrograms() error {
	var missing []string
	for _, name := range []string{"libfrond.so", progEtcd, progAPIServer, progController, progScheduler, progKwok, "kubectl"} {
		if info, err := os.Stat(filepath.Join(l.Bin, name)); err != nil || info.IsDir() {
			missing = append(missing, Show(filepath.Join(l.Bin, name)))
		}
	}
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s is missing: run make build", missing[0])
	default:
		return fmt.Errorf("%s are missing: run make build", strings.Join(missing, ", "))
	}
}

// contents are all names a lab ever makes in its folder: what wipe may delete and claim may find.
var contents = []string{"lock", "state.json", "state.json.part", "kubeconfig", "kubeconfig.part", "pki", "etcd", "logs", "config", "machines"}

// claimDir makes the folder, and refuses one that holds anything that is not a lab's.
func (l Lab) claimDir() error {
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return fmt.Errorf("make the lab's folder: %w", err)
	}
	entries, err := os.ReadDir(l.Dir)
	if err != nil {
		return fmt.Errorf("read the lab's folder: %w", err)
	}
	if len(entries) == 0 {
		return nil
	}
	known := false
	for _, entry := range entries {
		known = known || entry.Name() == "lock"
		if !slices.Contains(contents, entry.Name()) {
			return fmt.Errorf("--dir %s: holds %s, which is not a lab's; choose an empty folder", Show(l.Dir), entry.Name())
		}
	}
	if !known {
		return fmt.Errorf("--dir %s: is not empty and not a lab's folder; choose an empty one", Show(l.Dir))
	}
	return nil
}

// wipe removes what an earlier lab left, but for the lock and, when asked, its logs. Only the holder of the lock calls it.
func (l Lab) wipe(keepLogs bool) error {
	for _, name := range contents {
		if name == "lock" || name == "logs" && keepLogs {
			continue
		}
		if err := os.RemoveAll(l.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clear the lab's folder: %w", err)
		}
	}
	return nil
}

// sweep removes what a running lab may have made again after its folder was removed under it: its state and folders that
// are empty. Nothing is touched once there is a lock: by now it may be another lab's.
func (l Lab) sweep() {
	if _, err := os.Stat(l.path("lock")); err == nil {
		return
	}
	for _, name := range []string{"state.json", "config/flexvolume", "config", "logs", "."} {
		_ = os.Remove(l.path(name))
	}
}
