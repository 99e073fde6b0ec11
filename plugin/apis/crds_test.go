// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/frond-scheduler/frond/manifests"
)

// definition is what these tests look at in a CustomResourceDefinition.
type definition struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Group string `json:"group"`
		Names struct {
			Kind   string `json:"kind"`
			Plural string `json:"plural"`
		} `json:"names"`
		Versions []struct {
			Name         string         `json:"name"`
			Subresources map[string]any `json:"subresources"`
			Columns      []any          `json:"additionalPrinterColumns"`
			Schema       struct {
				Root shape `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

type shape struct {
	Type        string           `json:"type"`
	Format      string           `json:"format"`
	Enum        []any            `json:"enum"`
	Minimum     *float64         `json:"minimum"`
	Maximum     *float64         `json:"maximum"`
	MaxLength   *int             `json:"maxLength"`
	MaxItems    *int             `json:"maxItems"`
	MaxProps    *int             `json:"maxProperties"`
	Properties  map[string]shape `json:"properties"`
	Items       *shape           `json:"items"`
	Values      *shape           `json:"additionalProperties"`
	IntOrString bool             `json:"x-kubernetes-int-or-string"`
}

func definitions(t *testing.T) map[string]definition {
	t.Helper()
	paths, err := fs.Glob(manifests.Files, "crds/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %v, %v", paths, err)
	}
	found := map[string]definition{}
	for _, path := range paths {
		data, err := fs.ReadFile(manifests.Files, path)
		if err != nil {
			t.Fatal(err)
		}
		var d definition
		if err := yaml.Unmarshal(data, &d); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		found[d.Spec.Names.Kind] = d
	}
	return found
}

// The names of this package are those of the definitions, and each has what users expect.
func TestNamesAreThoseOfTheDefinitions(t *testing.T) {
	all := definitions(t)
	for kind, resource := range map[string]fmt.Stringer{
		KindGpuClaim: GpuClaims, KindGpuNodeStatus: GpuNodeStatuses, KindSchedulerConfig: SchedulerConfigs,
		KindTopologySchedulerConfig: TopologySchedulerConfigs, "PodGroup": PodGroups,
	} {
		d, ok := all[kind]
		if !ok {
			t.Errorf("%s has no definition", kind)
			continue
		}
		version := d.Spec.Versions[0]
		if got := fmt.Sprintf("%s/%s, Resource=%s", d.Spec.Group, version.Name, d.Spec.Names.Plural); got != resource.String() {
			t.Errorf("%s: the definition says %s, the package %s", kind, got, resource)
		}
		if d.Metadata.Name != d.Spec.Names.Plural+"."+d.Spec.Group {
			t.Errorf("%s: the definition is named %s", kind, d.Metadata.Name)
		}
		if _, ok := version.Subresources["status"]; !ok || len(version.Columns) < 3 {
			t.Errorf("%s: no status subresource or too few columns", kind)
		}
	}
}

// Everything that comes from outside has a bound. The spec of a PodGroup is sig-scheduling's: bad values of it are
// explained by the scheduler.
func TestEveryFieldIsBounded(t *testing.T) {
	all := definitions(t)
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		root := all[kind].Spec.Versions[0].Schema.Root
		for _, part := range []string{"spec", "status"} {
			if kind == "PodGroup" && part == "spec" {
				continue
			}
			if field, ok := root.Properties[part]; ok {
				bounded(t, kind+"."+part, field)
			}
		}
	}
}

func bounded(t *testing.T, path string, s shape) {
	t.Helper()
	bound := true
	switch {
	case s.IntOrString:
		bound = s.Minimum != nil && s.Maximum != nil && s.MaxLength != nil
	case s.Type == "string":
		bound = s.MaxLength != nil || len(s.Enum) > 0 || s.Format == "date-time"
	case s.Type == "integer", s.Type == "number":
		counter := s.Format == "int64" && strings.HasSuffix(path, "Generation") || strings.HasPrefix(path, "PodGroup.status.")
		bound = s.Minimum != nil && (s.Maximum != nil || counter)
	case s.Type == "boolean": // two values
	case s.Type == "array":
		bound = s.MaxItems != nil && s.Items != nil
	case s.Type == "object":
		bound = len(s.Properties) > 0 || s.Values != nil && s.MaxProps != nil
	default:
		bound = false
	}
	if !bound {
		t.Errorf("%s (%s) has no bound", path, s.Type)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		bounded(t, path+"."+name, s.Properties[name])
	}
	for _, inner := range []*shape{s.Items, s.Values} {
		if inner != nil {
			bounded(t, path+"[]", *inner)
		}
	}
}

// The Go types and the definitions name the same fields; what one has and the other has not would be lost on the way.
func TestTypesAreThoseOfTheDefinitions(t *testing.T) {
	all := definitions(t)
	for _, c := range []struct {
		kind, part string
		value      any
	}{
		{KindGpuClaim, "spec", GpuClaimSpec{}},
		{KindGpuClaim, "status", GpuClaimStatus{}},
		{KindGpuNodeStatus, "status", NodeReport{}},
		{"PodGroup", "status", PodGroupStatus{}},
		{KindSchedulerConfig, "status", ConfigStatus{}},
		{KindTopologySchedulerConfig, "status", ConfigStatus{}},
	} {
		same(t, c.kind+"."+c.part, reflect.TypeOf(c.value), all[c.kind].Spec.Versions[0].Schema.Root.Properties[c.part])
	}
}

func same(t *testing.T, path string, typ reflect.Type, s shape) {
	t.Helper()
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case s.Type == "array":
		same(t, path+"[]", typ.Elem(), *s.Items)
	case s.Type == "object" && s.Values == nil:
		fields := map[string]reflect.Type{}
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			fields[name] = typ.Field(i).Type
		}
		got, want := slices.Sorted(maps.Keys(fields)), slices.Sorted(maps.Keys(s.Properties))
		if !slices.Equal(got, want) {
			t.Errorf("%s: the type has %v, the definition %v", path, got, want)
			return
		}
		for _, name := range want {
			same(t, path+"."+name, fields[name], s.Properties[name])
		}
	}
}

// Limits that the engine has too are the engine's.
func TestLimitsAreThoseOfTheEngine(t *testing.T) {
	header, err := os.ReadFile("../../csrc/include/frond.h")
	if err != nil {
		t.Fatal(err)
	}
	limit := func(name string) float64 {
		found := regexp.MustCompile(`#define ` + name + `\s+(\d+)u`).FindSubmatch(header)
		if found == nil {
			t.Fatalf("frond.h has no %s", name)
		}
		var value float64
		fmt.Sscan(string(found[1]), &value)
		return value
	}
	all := definitions(t)
	at := func(kind string, path ...string) shape {
		s := all[kind].Spec.Versions[0].Schema.Root
		for _, name := range path {
			if s.Type == "array" {
				s = *s.Items
			}
			s = s.Properties[name]
		}
		return s
	}
	gpus, nodes, name := limit("FROND_GPUS_MAX"), limit("FROND_NODES_MAX"), limit("FROND_NAME_MAX")
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"count", *at(KindGpuClaim, "spec", "devices", "count").Maximum, gpus},
		{"preferIds", float64(*at(KindGpuClaim, "spec", "devices", "preferIds").MaxItems), gpus},
		{"preferIds[]", *at(KindGpuClaim, "spec", "devices", "preferIds").Items.Maximum, gpus - 1},
		{"gangRef", float64(*at(KindGpuClaim, "spec", "gangRef").MaxLength), name},
		{"gpuIds", float64(*at(KindGpuClaim, "status", "gpuIds").MaxItems), gpus},
		{"gpuIds[]", float64(*at(KindGpuClaim, "status", "gpuIds").Items.MaxLength), name + float64(len("-gpu-15"))},
		{"devices", float64(*at(KindGpuNodeStatus, "status", "devices").MaxItems), gpus},
		{"index", *at(KindGpuNodeStatus, "status", "devices", "index").Maximum, gpus - 1},
		{"links", float64(*at(KindGpuNodeStatus, "status", "devices", "links").MaxItems), gpus - 1},
		{"maxNodesPerLeaf", *at(KindSchedulerConfig, "spec", "topologyConstraints", "maxNodesPerLeaf").Maximum, nodes},
		{"maxGPUsPerLeaf", *at(KindTopologySchedulerConfig, "spec", "topologyConstraints", "maxGPUsPerLeaf").Maximum, nodes * gpus},
		{"message", float64(*at(KindGpuClaim, "status", "conditions", "message").MaxLength), MessageMax},
	} {
		if c.got != c.want {
			t.Errorf("%s: the definition allows %v, the engine %v", c.what, c.got, c.want)
		}
	}
}
