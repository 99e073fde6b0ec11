// SPDX-License-Identifier: Apache-2.0

// The scheduler: upstream's kube-scheduler with one more plugin, TopologyGPU. Every upstream flag works as it does there;
// --scheduler-name makes a configuration for those who have none.
package main

import (
	"os"

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
	command := app.NewSchedulerCommand(app.WithPlugin(topologygpu.Name, host.Factory))
	addSchedulerName(command)
	os.Exit(cli.Run(command))
}
