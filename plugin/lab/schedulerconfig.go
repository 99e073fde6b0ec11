// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/frond-scheduler/frond/manifests"
)

// shippedConfig is manifests/scheduler/config.yaml, with which the lab's scheduler runs.
func shippedConfig() (map[string]any, error) {
	data, err := fs.ReadFile(manifests.Files, "scheduler/config.yaml")
	if err != nil {
		return nil, fmt.Errorf("read the scheduler's configuration: %w", err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("read the scheduler's configuration: %w", err)
	}
	return config, nil
}

// writeSchedulerConfig fills in where the API server is, which in a real cluster the scheduler learns from its pod, and
// the fabric file when the lab was made from one: order and link speeds stand only there.
func (l Lab) writeSchedulerConfig(fabric string) error {
	config, err := shippedConfig()
	if err != nil {
		return err
	}
	path := l.path("config", "scheduler.kubeconfig")
	if err := unstructured.SetNestedField(config, path, "clientConnection", "kubeconfig"); err != nil {
		return fmt.Errorf("fill in the scheduler's configuration: %w", err)
	}
	if fabric != "" {
		file := l.path("config", "fabric.yaml")
		if err := writeFile(file, []byte(fabric)); err != nil {
			return fmt.Errorf("write the fabric file: %w", err)
		}
		args, err := pluginArgs(config)
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedField(args, file, "topology", "fabricFile"); err != nil {
			return fmt.Errorf("fill in the scheduler's configuration: %w", err)
		}
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("encode the scheduler's configuration: %w", err)
	}
	if err := writeFile(l.path("config", "scheduler.yaml"), data); err != nil {
		return fmt.Errorf("write the scheduler's configuration: %w", err)
	}
	return nil
}

// SchedulerArgs are the args of TopologyGPU that the lab's scheduler runs with, as JSON: whoever draws a map reads the
// fabric as the scheduler does.
func (l Lab) SchedulerArgs() ([]byte, error) {
	data, err := os.ReadFile(l.path("config", "scheduler.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read the scheduler's configuration: %w", err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("read the scheduler's configuration: %w", err)
	}
	args, err := pluginArgs(config)
	if err != nil {
		return nil, err
	}
	return json.Marshal(args)
}

// pluginArgs are the args of TopologyGPU inside a configuration, not a copy.
func pluginArgs(config map[string]any) (map[string]any, error) {
	profiles, _ := config["profiles"].([]any)
	for _, profile := range profiles {
		fields, _ := profile.(map[string]any)
		plugins, _ := fields["pluginConfig"].([]any)
		for _, plugin := range plugins {
			entry, _ := plugin.(map[string]any)
			if args, ok := entry["args"].(map[string]any); ok && entry["name"] == "TopologyGPU" {
				return args, nil
			}
		}
	}
	return nil, errors.New("the scheduler's configuration has no args for TopologyGPU")
}
