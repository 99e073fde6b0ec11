// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
)

func set(names ...string) (plugins config.PluginSet) {
	for _, name := range names {
		plugins.Enabled = append(plugins.Enabled, config.Plugin{Name: name})
	}
	return plugins
}

func rightOrder() *config.Plugins {
	here := set("Other", Name)
	return &config.Plugins{
		PreEnqueue: here, PreFilter: here, Filter: here, PreScore: here, Score: here, Reserve: here, Permit: here, PostBind: here,
		Bind: set(Name, "DefaultBinder"), PostFilter: set(Name, "DefaultPreemption"),
	}
}

func TestCheckOrder(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*config.Plugins)
		want   string
	}{
		{"right", func(*config.Plugins) {}, ""},
		{"bind last", func(p *config.Plugins) { p.Bind = set("DefaultBinder", Name) }, "is not first under bind;"},
		{"postFilter last", func(p *config.Plugins) { p.PostFilter = set("DefaultPreemption", Name) }, "is not first under postFilter;"},
		{"both", func(p *config.Plugins) { p.Bind, p.PostFilter = set("DefaultBinder"), set() }, "is not first under bind, is not first under postFilter;"},
		{"no permit", func(p *config.Plugins) { p.Permit = set("Other") }, "is missing under permit;"},
		{"no filter", func(p *config.Plugins) { p.Filter = set() }, "is missing under filter;"},
	} {
		t.Run(test.name, func(t *testing.T) {
			plugins := rightOrder()
			test.change(plugins)
			err := checkOrder("gpu", plugins)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), `profile "gpu": TopologyGPU `+test.want) || !strings.Contains(err.Error(), ProfileLines) {
				t.Errorf("got %v, want %q and the lines to add", err, test.want)
			}
		})
	}
	if checkOrder("gpu", nil) == nil {
		t.Error("no plugins at all")
	}
}
