// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"fmt"
	"strings"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// ProfileLines are what a profile that uses the plugin must say. One position in the engine's order weighs as much as all
// that a plugin of weight 1 can say, so that soft preferences count without upturning the order.
const ProfileLines = `plugins:
  multiPoint: {enabled: [{name: TopologyGPU, weight: 100}]}
  bind: {enabled: [{name: TopologyGPU}]}
  postFilter: {enabled: [{name: TopologyGPU}]}`

// ProfilePlugins is the same for configurations that are made, not written.
func ProfilePlugins() map[string]any {
	first := map[string]any{"enabled": []any{map[string]any{"name": Name}}}
	return map[string]any{
		"multiPoint": map[string]any{"enabled": []any{map[string]any{"name": Name, "weight": 100}}},
		"bind":       first,
		"postFilter": first,
	}
}

// checkOrder refuses a profile in which the plugin is missing somewhere, or does not come first where it must: enabled
// through multiPoint alone it stands behind DefaultBinder, which would bind without annotations, and behind
// DefaultPreemption, which would evict for one member of a gang.
func checkOrder(profile string, plugins *config.Plugins) error {
	if plugins == nil {
		return fmt.Errorf("profile %q lists no plugins", profile)
	}
	var wrong []string
	for _, point := range []struct {
		name string
		set  config.PluginSet
	}{{"bind", plugins.Bind}, {"postFilter", plugins.PostFilter}} {
		if len(point.set.Enabled) == 0 || point.set.Enabled[0].Name != Name {
			wrong = append(wrong, "is not first under "+point.name)
		}
	}
	for _, point := range []struct {
		name string
		set  config.PluginSet
	}{
		{"preEnqueue", plugins.PreEnqueue}, {"preFilter", plugins.PreFilter}, {"filter", plugins.Filter},
		{"preScore", plugins.PreScore}, {"score", plugins.Score}, {"reserve", plugins.Reserve},
		{"permit", plugins.Permit}, {"postBind", plugins.PostBind},
	} {
		if !enabled(point.set) {
			wrong = append(wrong, "is missing under "+point.name)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("profile %q: %s %s; its plugins must say:\n%s", profile, Name, strings.Join(wrong, ", "), ProfileLines)
}

func enabled(set config.PluginSet) bool {
	for _, plugin := range set.Enabled {
		if plugin.Name == Name {
			return true
		}
	}
	return false
}
