// SPDX-License-Identifier: Apache-2.0

// The scheduler: upstream's kube-scheduler with one more plugin, TopologyGPU. Every upstream flag works as it does there;
// --scheduler-name makes a configuration for those who have none, and --emulated-version is the API server's own version
// unless given.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"               // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo/fifo" // client metrics, but for the election's, which WatchElection keeps
	_ "k8s.io/component-base/metrics/prometheus/restclient"
	_ "k8s.io/component-base/metrics/prometheus/version" // build information
	_ "k8s.io/component-base/metrics/prometheus/workqueue"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/frond-scheduler/frond/plugin/topologygpu"
)

// recordVariable names the file in which every call to the engine is recorded, for frond-sim replay. Unset: none.
const recordVariable = "FROND_RECORD"

func main() {
	host := &topologygpu.Host{Record: os.Getenv(recordVariable), Leading: topologygpu.WatchElection().Leading}
	emulation := &emulation{within: askWithin, every: askEvery}
	command := app.NewSchedulerCommand(app.WithPlugin(topologygpu.Name, host.Factory), emulation.tell)
	before(command, emulation.choose)
	addSchedulerName(command) // before that, because the configuration says where the API server is
	os.Exit(cli.Run(command))
}

// before puts a step ahead of what the command does first, which is to fix upstream's feature gates by the flags.
func before(command *cobra.Command, step func(*cobra.Command, []string) error) {
	next := command.PersistentPreRunE
	command.PersistentPreRunE = func(c *cobra.Command, args []string) error {
		if err := step(c, args); err != nil {
			return err
		}
		return next(c, args)
	}
}
