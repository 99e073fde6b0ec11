// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// reader knows the objects, as informers would have brought them.
func reader(t *testing.T, objects ...any) *Reader {
	t.Helper()
	r := NewReader([]string{"nvidia.com/gpu", "amd.com/gpu"}, NewOwners(), NewClaims())
	for _, object := range objects {
		enter(t, r, object)
	}
	return r
}

func enter(t *testing.T, r *Reader, object any) {
	t.Helper()
	if p, ok := object.(*v1.Pod); ok {
		if link := LinkOwner(p); link != nil {
			r.owners.Set(link)
		}
		r.claims.Use(p)
		return
	}
	compact, err := r.Compact(object)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.Compact(compact); err != nil || again != compact {
		t.Fatalf("an informer may ask twice: %v %v", again, err)
	}
	switch kept := compact.(type) {
	case *Owner:
		r.owners.Set(kept)
	case *Claim:
		r.claims.Set(kept)
	default:
		t.Fatalf("%T became %T", object, compact)
	}
}

// parse makes an object of a third party from text.
func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(text))
	object := &unstructured.Unstructured{}
	if err == nil {
		err = object.UnmarshalJSON(json)
	}
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return object
}

func pod(name string, gpus ...int64) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{}, Labels: map[string]string{}}}
	for _, n := range gpus {
		p.Spec.Containers = append(p.Spec.Containers, container("nvidia.com/gpu", n))
	}
	return p
}

func container(name v1.ResourceName, count int64) v1.Container {
	list := v1.ResourceList{name: *resource.NewQuantity(count, resource.DecimalSI)}
	return v1.Container{Resources: v1.ResourceRequirements{Limits: list, Requests: list}}
}

// owned by an object of that kind; "apiVersion Kind name uid".
func owned(p *v1.Pod, owner string) *v1.Pod {
	p.OwnerReferences = []metav1.OwnerReference{controller(owner)}
	return p
}

func controller(owner string) metav1.OwnerReference {
	yes, ref, uid := true, metav1.OwnerReference{}, ""
	if _, err := fmt.Sscan(owner, &ref.APIVersion, &ref.Kind, &ref.Name, &uid); err != nil {
		panic(owner)
	}
	ref.UID, ref.Controller = types.UID(uid), &yes
	return ref
}

func of(p *v1.Pod, job *batchv1.Job) *v1.Pod {
	return owned(p, "batch/v1 Job "+job.Name+" "+string(job.UID))
}

func job(parallelism, completions int32, annotations ...string) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train", UID: "job-1", Annotations: map[string]string{}}}
	if parallelism >= 0 {
		j.Spec.Parallelism = &parallelism
	}
	if completions >= 0 {
		j.Spec.Completions = &completions
	}
	for i := 0; i < len(annotations); i += 2 {
		j.Annotations[annotations[i]] = annotations[i+1]
	}
	return j
}

func with(p *v1.Pod, pairs ...string) *v1.Pod {
	for i := 0; i < len(pairs); i += 2 {
		p.Annotations[pairs[i]] = pairs[i+1]
	}
	return p
}

func labelled(p *v1.Pod, pairs ...string) *v1.Pod {
	for i := 0; i < len(pairs); i += 2 {
		p.Labels[pairs[i]] = pairs[i+1]
	}
	return p
}

func grouped(p *v1.Pod, group string) *v1.Pod { return labelled(p, PodGroupLabel, group) }
