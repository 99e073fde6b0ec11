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
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
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
	return c, c.PersistentPreRunE(c, nil)
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

func TestOneProfileBesideTheClustersOwnScheduler(t *testing.T) {
	c, err := command(t, "--scheduler-name=gpu")
	if err != nil {
		t.Fatal(err)
	}
	loaded := load(t, c)
	if len(loaded.Profiles) != 1 || loaded.Profiles[0].SchedulerName != "gpu" {
		t.Fatalf("got %+v, want one profile: default-scheduler is somebody else's", loaded.Profiles)
	}
	ours := loaded.Profiles[0]
	last := ours.Plugins.MultiPoint.Enabled[len(ours.Plugins.MultiPoint.Enabled)-1]
	if last.Name != topologygpu.Name || last.Weight != 100 || ours.Plugins.Bind.Enabled[0].Name != topologygpu.Name ||
		ours.Plugins.PostFilter.Enabled[0].Name != topologygpu.Name || ours.PercentageOfNodesToScore == nil || *ours.PercentageOfNodesToScore != 100 {
		t.Errorf("got %+v", ours)
	}
	if loaded.ClientConnection.QPS != defaultQPS || loaded.ClientConnection.Burst != defaultBurst {
		t.Errorf("got %+v", loaded.ClientConnection)
	}
}

// The Lease is that of the shipped configurations: whoever moves from one to the other never has two leaders.
func TestTheLeaseIsThatOfTheManifests(t *testing.T) {
	c, err := command(t, "--scheduler-name=gpu")
	if err != nil {
		t.Fatal(err)
	}
	made := load(t, c).LeaderElection
	for _, file := range []string{"config.yaml", "second.yaml"} {
		shipped, err := options.LoadConfigFromFile(klog.Background(), "../../../manifests/scheduler/"+file)
		if err != nil {
			t.Fatal(err)
		}
		if made != shipped.LeaderElection {
			t.Errorf("--scheduler-name elects by %+v, %s by %+v", made, file, shipped.LeaderElection)
		}
	}
	if !made.LeaderElect || made.ResourceNamespace != "frond-system" || made.ResourceName != "frond-scheduler" {
		t.Errorf("got %+v", made)
	}
}

// applied is upstream's view of the flags and the configuration together.
func applied(t *testing.T, args ...string) config.KubeSchedulerConfiguration {
	t.Helper()
	o := options.NewOptions()
	c := &cobra.Command{PersistentPreRunE: func(*cobra.Command, []string) error { return nil }}
	for _, set := range o.Flags.FlagSets {
		c.Flags().AddFlagSet(set)
	}
	addSchedulerName(c)
	if err := c.ParseFlags(append(args, "--kubeconfig="+kubeconfig(t, "http://127.0.0.1:1"), "--secure-port=0")); err != nil {
		t.Fatal(err)
	}
	if err := c.PersistentPreRunE(c, nil); err != nil {
		t.Fatal(err)
	}
	var completed schedulerconfig.Config
	if err := o.ApplyTo(klog.Background(), &completed); err != nil {
		t.Fatal(err)
	}
	return completed.ComponentConfig
}

func TestFlagsOfTheElectionCount(t *testing.T) {
	election := applied(t, "--scheduler-name=gpu", "--leader-elect-resource-name=mine", "--leader-elect-lease-duration=20s").LeaderElection
	if !election.LeaderElect || election.ResourceName != "mine" || election.ResourceNamespace != "frond-system" || election.LeaseDuration.Seconds() != 20 {
		t.Errorf("got %+v", election)
	}
	if election := applied(t, "--scheduler-name=gpu", "--leader-elect=false").LeaderElection; election.LeaderElect {
		t.Errorf("got %+v", election)
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
		{[]string{"--scheduler-name=default-scheduler"}, "only a --config can say to serve it; choose another name"},
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
