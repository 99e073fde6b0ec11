// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/term"

	"github.com/frond-scheduler/frond/manifests"
	"github.com/frond-scheduler/frond/plugin/topologygpu"
)

const flagSchedulerName = "scheduler-name"

// The client's own limits, unless flags say otherwise: upstream's 50 requests a second would bind a gang of 1,024 in
// 20 seconds.
const (
	defaultQPS   = 1000
	defaultBurst = 2000
)

// addSchedulerName adds --scheduler-name to upstream's command. Upstream decides about --config after it has parsed the
// flags, so that is the moment at which a configuration is made and handed over as if the user had written it. Upstream
// ignores its older flags when there is a --config (--kubeconfig, --kube-api-qps …): their values are carried over.
// Leader election flags, --master and all others count beside a --config anyway.
func addSchedulerName(command *cobra.Command) {
	ours := cliflag.NamedFlagSets{}
	name := ours.FlagSet("frond").String(flagSchedulerName, "",
		"Runs one profile of this name, with the TopologyGPU plugin, beside the cluster's own scheduler: default-scheduler is not served. "+
			"Leads by the Lease "+manifests.Namespace+"/"+manifests.SchedulerLease+" unless --leader-elect flags say otherwise. Not together with --config.")
	command.Flags().AddFlagSet(ours.FlagSet("frond"))

	help, usage := command.HelpFunc(), command.UsageFunc()
	columns, _, _ := term.TerminalSize(command.OutOrStdout())
	command.SetHelpFunc(func(c *cobra.Command, args []string) {
		help(c, args)
		cliflag.PrintSections(c.OutOrStdout(), ours, columns)
	})
	command.SetUsageFunc(func(c *cobra.Command) error {
		err := usage(c)
		cliflag.PrintSections(c.OutOrStderr(), ours, columns)
		return err
	})
	before(command, func(c *cobra.Command, _ []string) error {
		if !c.Flags().Changed(flagSchedulerName) {
			return nil
		}
		config, err := configuration(*name, c.Flags())
		if err != nil {
			return err
		}
		path, err := inMemory("frond-configuration", config)
		if err != nil {
			return fmt.Errorf("--%s: %w", flagSchedulerName, err)
		}
		return c.Flags().Set("config", path)
	})
}

// configuration is a KubeSchedulerConfiguration with one profile, as JSON. It has a Lease of its own: by upstream's,
// kube-system/kube-scheduler, it would wait for the cluster's own scheduler to end.
func configuration(name string, flags *pflag.FlagSet) ([]byte, error) {
	if flags.Changed("config") {
		return nil, fmt.Errorf("--%s makes a configuration and --config names one: give one of them", flagSchedulerName)
	}
	if name == v1.DefaultSchedulerName {
		return nil, fmt.Errorf("--%s %s: that is the cluster's own scheduler, and only a --config can say to serve it; choose another name", flagSchedulerName, name)
	}
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return nil, fmt.Errorf("--%s %q: %s", flagSchedulerName, name, wrong[0])
	}
	client := map[string]any{"qps": defaultQPS, "burst": defaultBurst}
	config := map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "clientConnection": client,
		"leaderElection": map[string]any{"leaderElect": true, "resourceName": manifests.SchedulerLease, "resourceNamespace": manifests.Namespace},
		"profiles": []any{
			map[string]any{"schedulerName": name, "percentageOfNodesToScore": 100, "plugins": topologygpu.ProfilePlugins()},
		},
	}
	var errs []error
	carry := func(flag string, into map[string]any, field string, parse func(string) (any, error)) {
		if flag := flags.Lookup(flag); flag != nil && flag.Changed {
			value, err := parse(flag.Value.String())
			into[field] = value
			errs = append(errs, err)
		}
	}
	text := func(value string) (any, error) { return value, nil }
	truth := func(value string) (any, error) { return strconv.ParseBool(value) }
	number := func(value string) (any, error) { return strconv.ParseFloat(value, 32) }
	carry("kubeconfig", client, "kubeconfig", text)
	carry("kube-api-content-type", client, "contentType", text)
	carry("kube-api-qps", client, "qps", number)
	carry("kube-api-burst", client, "burst", number)
	carry("profiling", config, "enableProfiling", truth)
	carry("contention-profiling", config, "enableContentionProfiling", truth)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return json.MarshalIndent(config, "", "  ")
}

// inMemory gives bytes a path that lives as long as the process and leaves nothing behind. The descriptor is never
// closed, which is why it is no os.File: the collector would close that.
func inMemory(name string, content []byte) (string, error) {
	descriptor, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return "", fmt.Errorf("making a file in memory: %w", err)
	}
	path := fmt.Sprintf("/proc/self/fd/%d", descriptor)
	if err := os.WriteFile(path, content, 0); err != nil {
		return "", fmt.Errorf("writing a file in memory: %w", err)
	}
	return path, nil
}
