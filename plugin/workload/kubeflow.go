// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// trainingJob is what we read of a training job of Kubeflow, or an MPIJob of either operator, besides its replicas, which
// every kind keeps under a name of its own.
type trainingJob struct {
	Spec struct {
		RunPolicy struct {
			SchedulingPolicy *schedulingPolicy `json:"schedulingPolicy"`
		} `json:"runPolicy"`
		RunLauncherAsWorker    bool   `json:"runLauncherAsWorker"`
		LauncherCreationPolicy string `json:"launcherCreationPolicy"`
	} `json:"spec"`
	Status struct {
		Replicas map[string]struct {
			Succeeded int32 `json:"succeeded"`
		} `json:"replicaStatuses"`
	} `json:"status"`
}

type schedulingPolicy struct {
	MinAvailable *int32 `json:"minAvailable"`
}

type replicaSpec struct {
	Replicas *int32             `json:"replicas"`
	Template v1.PodTemplateSpec `json:"template"`
}

const (
	roleLauncher = "launcher"
	roleWorker   = "worker"
)

// compactKubeflow: the gang is all replicas, or minAvailable of them. A launcher that is created only once the workers run
// is not waited for; it joins them.
func (r *Reader) compactKubeflow(object *unstructured.Unstructured, resource *Resource) *Owner {
	owner := &Owner{ObjectMeta: compactMeta(object), Resource: resource}
	fail := func(err error) *Owner {
		owner.Gangs = []Gang{{ID: owner.id(), Spec: unreadable(owner, err)}}
		return owner
	}
	var job trainingJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job); err != nil {
		return fail(err)
	}
	specs, err := replicaSpecs(object, kubeflowSpecs[resource.Kind])
	if err != nil {
		return fail(err)
	}
	ended := map[string]int64{}
	for name, status := range job.Status.Replicas {
		ended[strings.ToLower(name)] = int64(status.Succeeded)
	}
	owner.Padded = job.Spec.RunLauncherAsWorker
	late := job.Spec.LauncherCreationPolicy == "WaitForWorkersReady"
	need := int64(0)
	for _, name := range replicaTypes(specs) {
		part := Part{Name: strings.ToLower(name), Count: replicas(specs[name].Replicas), Pods: 1}
		owner.Parts = append(owner.Parts, part)
		owner.Templates = append(owner.Templates, Template{Pods: part.Count, GPUs: r.template(&specs[name].Template)})
		if !late || part.Name != roleLauncher {
			need = plus(need, partNeed(part, ended))
		}
	}
	spec := owner.spec(owner.Pods(), need)
	policy, _, err := unstructured.NestedMap(object.Object, "spec", "runPolicy", "schedulingPolicy")
	if err != nil {
		return fail(err)
	}
	if spec.Problem == "" && policy != nil {
		path := fmt.Sprintf("%s %s/%s: spec.runPolicy.schedulingPolicy", resource.Kind, owner.Namespace, owner.Name)
		spec.MinResources, spec.ScheduleTimeout, spec.Problem = groupWishes(path, policy)
		if job.Spec.RunPolicy.SchedulingPolicy.MinAvailable != nil {
			least, all := int64(*job.Spec.RunPolicy.SchedulingPolicy.MinAvailable), owner.Pods()
			if least < 1 || least > all {
				spec.Problem = fmt.Sprintf("%s.minAvailable must be between 1 and %d, the number of its pods, got %d", path, all, least)
			}
			spec.MinMember = min(spec.MinMember, int(max(least, 1)))
		}
	}
	spec.More = int64(spec.MinMember) < need
	owner.Gangs = []Gang{{ID: owner.id(), Spec: spec}}
	return owner
}

func replicaSpecs(object *unstructured.Unstructured, field string) (map[string]*replicaSpec, error) {
	raw, _, err := unstructured.NestedMap(object.Object, "spec", field)
	if err != nil {
		return nil, err
	}
	specs := make(map[string]*replicaSpec, len(raw))
	for name, value := range raw {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("spec.%s.%.40s is no object", field, name)
		}
		spec := &replicaSpec{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, spec); err != nil {
			return nil, fmt.Errorf("spec.%s.%.40s: %w", field, name, err)
		}
		specs[name] = spec
	}
	return specs, nil
}

// replicaTypes in order of rank: those that lead, the workers, all others; by name where that is equal.
func replicaTypes(specs map[string]*replicaSpec) []string {
	order := func(name string) int {
		switch strings.ToLower(name) {
		case "master", "chief", roleLauncher:
			return 0
		case roleWorker:
			return 1
		}
		return 2
	}
	names := make([]string, 0, len(specs))
	for name := range specs {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a, b)) })
	return names
}

// PartOf names the part of its owner that a pod belongs to, where an owner makes pods from several templates; "": it has one.
// The MPI operator of v2beta1 says the replica type as a role.
func PartOf(pod *v1.Pod) string {
	if kind := pod.Labels[kubeflowReplicaType]; kind != "" {
		return strings.ToLower(kind)
	}
	return strings.ToLower(pod.Labels[kubeflowJobRole])
}

// kubeflowIndex: ranks count through the replica types, the pods of each by replica index. The MPI operator of v2beta1 gives
// the launcher no index: there is one launcher.
func kubeflowIndex(owner *Owner, pod *v1.Pod) (index Index, ok bool) {
	kind := PartOf(pod)
	if owner.Padded {
		return newIndex(kubeflowReplicaIndex, 0), true
	}
	base := int64(0)
	for _, part := range owner.Parts {
		if part.Name == kind {
			index = newIndex(kubeflowReplicaIndex, base)
			index.Fixed = kind == roleLauncher && !has(pod.Labels, kubeflowReplicaIndex)
			return index, true
		}
		base = plus(base, part.Count)
	}
	return index, false
}
