// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/frond-scheduler/frond/manifests"
)

func TestEveryManifestCanBeRead(t *testing.T) {
	err := fs.WalkDir(manifests.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		objects, err := readObjects(manifests.Files, path)
		if err != nil {
			t.Error(err)
		}
		for _, object := range objects {
			if object.GetKind() == "" || object.GetAPIVersion() == "" {
				t.Errorf("%s: an object without kind or apiVersion", path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBothSchedulerConfigurationsHaveTheSameProfile(t *testing.T) {
	first, second := schedulerConfig(t, "scheduler/config.yaml"), schedulerConfig(t, "scheduler/second.yaml")
	profiles := first["profiles"].([]any)
	if len(profiles) != 2 || profiles[0].(map[string]any)["schedulerName"] != "default-scheduler" || len(profiles[0].(map[string]any)) != 1 {
		t.Errorf("config.yaml does not begin with an untouched default profile: %v", profiles)
	}
	first["profiles"] = profiles[1:]
	if !reflect.DeepEqual(first, second) {
		t.Errorf("config.yaml and second.yaml differ in more than the default profile:\n%v\n%v", first, second)
	}
}

// Election and device locks are Leases of one namespace, in which the scheduler's account may do what it needs.
func TestTheSchedulerMayHoldItsLease(t *testing.T) {
	election := schedulerConfig(t, "scheduler/second.yaml")["leaderElection"].(map[string]any)
	if election["resourceNamespace"] != manifests.Namespace || election["resourceName"] != manifests.SchedulerLease {
		t.Errorf("elects by %v, want the Lease %s/%s", election, manifests.Namespace, manifests.SchedulerLease)
	}
	objects, err := readObjects(manifests.Files, "rbac/scheduler.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var verbs []string
	for _, object := range objects {
		if object.GetKind() != "Role" || object.GetNamespace() != manifests.Namespace || object.GetName() != manifests.SchedulerAccount {
			continue
		}
		rules, _, _ := unstructured.NestedSlice(object.Object, "rules")
		for _, rule := range rules {
			fields := rule.(map[string]any)
			groups, _, _ := unstructured.NestedStringSlice(fields, "apiGroups")
			resources, _, _ := unstructured.NestedStringSlice(fields, "resources")
			named, _, _ := unstructured.NestedStringSlice(fields, "resourceNames")
			if slices.Contains(groups, "coordination.k8s.io") && slices.Contains(resources, "leases") && len(named) == 0 {
				verbs, _, _ = unstructured.NestedStringSlice(fields, "verbs")
			}
		}
	}
	for _, verb := range []string{"get", "create", "update"} {
		if !slices.Contains(verbs, verb) {
			t.Errorf("%s may %v Leases in %s, not %s", manifests.SchedulerAccount, verbs, manifests.Namespace, verb)
		}
	}
}

func TestTheMapReadsTheFabricAsTheSchedulerDoes(t *testing.T) {
	for _, c := range []struct{ name, fabric, want string }{
		{"labels", "", `{"topology":{"preset":"topograph"}}`},
		{"file", "spines: []\n", `{"topology":{"fabricFile":"DIR/config/fabric.yaml","preset":"topograph"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			lab := Lab{Dir: t.TempDir()}
			if err := os.Mkdir(lab.path("config"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := lab.writeSchedulerConfig(c.fabric); err != nil {
				t.Fatal(err)
			}
			args, err := lab.SchedulerArgs()
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.ReplaceAll(c.want, "DIR", lab.Dir); string(args) != want {
				t.Errorf("args are %s, want %s", args, want)
			}
		})
	}
}

func schedulerConfig(t *testing.T, path string) map[string]any {
	t.Helper()
	objects, err := readObjects(manifests.Files, path)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 1 {
		t.Fatalf("%s holds %d objects", path, len(objects))
	}
	return objects[0].Object
}

// An example whose numbers contradict each other would be refused by the scheduler.
func TestExampleJobsAreConsistent(t *testing.T) {
	paths, err := fs.Glob(manifests.Files, "examples/train-*.yaml")
	if err != nil || len(paths) != 4 {
		t.Fatalf("found %v, %v", paths, err)
	}
	for _, path := range paths {
		objects, err := readObjects(manifests.Files, path)
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range objects {
			parallelism, _, _ := unstructured.NestedInt64(job.Object, "spec", "parallelism")
			completions, _, _ := unstructured.NestedInt64(job.Object, "spec", "completions")
			containers, _, _ := unstructured.NestedSlice(job.Object, "spec", "template", "spec", "containers")
			gpus, _, _ := unstructured.NestedInt64(containers[0].(map[string]any), "resources", "limits", "nvidia.com/gpu")
			want := strconv.FormatInt(parallelism*gpus, 10)
			if got := job.GetAnnotations()["topology.scheduler/gpu-count"]; got != want || parallelism != completions {
				t.Errorf("%s: gpu-count %s, want %s; %d of %d at once", path, got, want, parallelism, completions)
			}
		}
	}
}
