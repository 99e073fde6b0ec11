// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The scheduler behaves as one of the API server's own version (docs/versions.md). make proof runs this package on released
// API servers that are older, too; which one it is then, their own programs say.
func TestServerVersionIsEmulated(t *testing.T) {
	version := func(program string) string {
		out, err := exec.CommandContext(t.Context(), lab.Program(program), "--version").Output()
		if err != nil {
			t.Fatalf("%s --version: %v", program, err)
		}
		return strings.TrimPrefix(strings.TrimSpace(string(out)), "Kubernetes ")
	}
	wanted, own := version("kube-apiserver"), version("scheduler")
	served, err := lab.Client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if served.GitVersion != wanted {
		t.Fatalf("the lab's API server says it is %s, its program %s", served.GitVersion, wanted)
	}
	log, err := os.ReadFile(filepath.Join(lab.Dir, "logs", "scheduler.log"))
	if err != nil {
		t.Fatal(err)
	}
	line := `"The API server has this scheduler's version" apiServer="` + wanted
	if minor := served.Major + "." + served.Minor; !strings.HasPrefix(own, "v"+minor+".") {
		line = fmt.Sprintf(`"The API server is older than this scheduler, emulating its version" apiServer=%q`, wanted)
		if !strings.Contains(string(log), fmt.Sprintf("emulated=%q", minor)) {
			t.Errorf("the scheduler's log does not say that it emulates %s", minor)
		}
	}
	if !strings.Contains(string(log), line) {
		t.Errorf("the scheduler's log has no line %s", line)
	}
	t.Logf("scheduler %s on API server %s", own, wanted)
}
