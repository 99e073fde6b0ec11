// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/frond-scheduler/frond/plugin/topologygpu"
)

// command is ours with upstream's flags, parsed but not run.
func command(t *testing.T, args ...string) (*cobra.Command, error) {
	t.Helper()
	c := app.NewSchedulerCommand()
	addSchedulerName(c)
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return c, c.PreRunE(c, nil)
}

// load reads what --config names as upstream does.
func load(t *testing.T, c *cobra.Command) *config.KubeSchedulerConfiguration {
	t.Helper()
	loaded, err := options.LoadConfigFromFile(klog.Background(), c.Flags().Lookup("config").Value.String())
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestWithoutTheFlagNothingChanges(t *testing.T) {
	c, err := command(t, "--kubeconfig=/k")
	if err != nil || c.Flags().Changed("config") {
		t.Errorf("%v", err)
	}
}

func TestTwoProfiles(t *testing.T) {
	c, err := command(t, "--scheduler-name=gpu")
	if err != nil {
		t.Fatal(err)
	}
	loaded := load(t, c)
	if len(loaded.Profiles) != 2 || loaded.Profiles[0].SchedulerName != "default-scheduler" || loaded.Profiles[1].SchedulerName != "gpu" {
		t.Fatalf("got %+v", loaded.Profiles)
	}
	for _, plugin := range loaded.Profiles[0].Plugins.MultiPoint.Enabled {
		if plugin.Name == topologygpu.Name {
			t.Error("the default profile stays as upstream has it")
		}
	}
	ours := loaded.Profiles[1]
	last := ours.Plugins.MultiPoint.Enabled[len(ours.Plugins.MultiPoint.Enabled)-1]
	if last.Name != topologygpu.Name || last.Weight != 100 || ours.Plugins.Bind.Enabled[0].Name != topologygpu.Name ||
		ours.Plugins.PostFilter.Enabled[0].Name != topologygpu.Name || ours.PercentageOfNodesToScore == nil || *ours.PercentageOfNodesToScore != 100 {
		t.Errorf("got %+v", ours)
	}
	if loaded.ClientConnection.QPS != defaultQPS || loaded.ClientConnection.Burst != defaultBurst || !loaded.LeaderElection.LeaderElect {
		t.Errorf("got %+v %+v", loaded.ClientConnection, loaded.LeaderElection)
	}
}

func TestFlagsThatUpstreamIgnoresBesideAConfigurationAreCarriedOver(t *testing.T) {
	c, err := command(t, "--scheduler-name=gpu", "--kubeconfig=/etc/kube config", "--kube-api-qps=7.5", "--kube-api-burst=9",
		"--kube-api-content-type=application/json", "--profiling=false", "--contention-profiling=false")
	if err != nil {
		t.Fatal(err)
	}
	loaded := load(t, c)
	client := loaded.ClientConnection
	if client.Kubeconfig != "/etc/kube config" || client.QPS != 7.5 || client.Burst != 9 || client.ContentType != "application/json" ||
		loaded.EnableProfiling || loaded.EnableContentionProfiling {
		t.Errorf("got %+v", loaded)
	}
}

func TestNamesThatAreRefused(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--scheduler-name=gpu", "--config=/x"}, "--scheduler-name makes a configuration and --config names one: give one of them"},
		{[]string{"--scheduler-name=default-scheduler"}, "choose another name"},
		{[]string{"--scheduler-name="}, `--scheduler-name ""`},
		{[]string{"--scheduler-name=Bad_Name"}, `--scheduler-name "Bad_Name"`},
	} {
		if _, err := command(t, test.args...); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: got %v, want %q", test.args, err, test.want)
		}
	}
}

func TestHelpListsTheFlag(t *testing.T) {
	c := app.NewSchedulerCommand()
	addSchedulerName(c)
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetArgs([]string{"--help"})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--scheduler-name", "--config", "--kubeconfig", "--leader-elect", "--feature-gates"} {
		if !strings.Contains(out.String(), flag+" ") {
			t.Errorf("%s is not listed", flag)
		}
	}
}

func TestAFileInMemoryLeavesNothingBehind(t *testing.T) {
	path, err := inMemory("test", []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "content" || !strings.HasPrefix(path, "/proc/self/fd/") {
		t.Errorf("%s: %q %v", path, content, err)
	}
}
