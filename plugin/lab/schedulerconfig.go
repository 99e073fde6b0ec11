// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

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

// writeSchedulerConfig fills in where the API server is; in a real cluster the scheduler learns that from its pod.
func (l Lab) writeSchedulerConfig() error {
	config, err := shippedConfig()
	if err != nil {
		return err
	}
	path := l.path("config", "scheduler.kubeconfig")
	if err := unstructured.SetNestedField(config, path, "clientConnection", "kubeconfig"); err != nil {
		return fmt.Errorf("fill in the scheduler's configuration: %w", err)
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

// SchedulerArgs are the args of TopologyGPU in the shipped configuration, as JSON: whoever draws a map reads the
// fabric by the same labels as the scheduler.
func SchedulerArgs() ([]byte, error) {
	config, err := shippedConfig()
	if err != nil {
		return nil, err
	}
	profiles, _, _ := unstructured.NestedSlice(config, "profiles")
	for _, profile := range profiles {
		fields, _ := profile.(map[string]any)
		plugins, _, _ := unstructured.NestedSlice(fields, "pluginConfig")
		for _, plugin := range plugins {
			if entry, ok := plugin.(map[string]any); ok && entry["name"] == "TopologyGPU" {
				return json.Marshal(entry["args"])
			}
		}
	}
	return nil, errors.New("the shipped configuration has no args for TopologyGPU")
}
