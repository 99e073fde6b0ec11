// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/workload"
)

// RevokedCondition of a pending pod: its reservation was revoked. The write matters, not the content: a Binding that was
// prepared before it carries an older resource version and is refused.
const RevokedCondition = "gpu.scheduling/LocksRevoked"

// standing of an owner towards one GPU.
type standing int

const (
	nameless standing = iota // its namespace and name are not known, so nothing is
	released                 // gone, finished, or bound to something else: for ever
	reserved                 // pending: it may still be bound to this GPU
	bound                    // bound to this node, and to this GPU as far as it says
)

// sighting of a pod, live.
type sighting struct {
	known bool
	gone  bool // for ever: UIDs are not used twice, and finished pods stay finished
	node  string
	gpus  []string // nil: bound without saying which
	limit int      // GPUs that its limits give it
}

// look at a live pod for what it says about the owner with that UID.
func (l *Locks) look(pod *v1.Pod, uid types.UID) sighting {
	s := sighted(pod, uid)
	if l.opts.GPUs != nil {
		s.limit = l.opts.GPUs(pod)
	}
	return s
}

// sighted is look for those who know no limits: then a pod has as many GPUs as it carries.
func sighted(pod *v1.Pod, uid types.UID) sighting {
	s := sighting{known: true, node: pod.Spec.NodeName}
	switch {
	case pod.UID != uid, pod.Status.Phase == v1.PodSucceeded, pod.Status.Phase == v1.PodFailed:
		s.gone = true
	case pod.Spec.NodeName == "" && pod.DeletionTimestamp != nil:
		s.gone = true // the API server binds no pod that is being deleted
	}
	if list := pod.Annotations[workload.Allocated]; list != "" {
		s.gpus = strings.Split(list, ",")
		s.limit = len(s.gpus)
	}
	return s
}

// towards a GPU of a node whose Lease has entered these GPUs for the pod.
func (s sighting) towards(node, gpu string, entered []string) standing {
	switch {
	case !s.known:
		return nameless
	case s.gone:
		return released
	case s.node == "":
		return reserved
	case s.node != node:
		return released
	case s.gpus == nil || slices.Contains(Credible(s.gpus, entered, s.limit), gpu):
		return bound
	default:
		return released
	}
}

// sight reads the pod live. The cache may know a name; it never says that a pod is gone.
func (l *Locks) sight(ctx context.Context, uid types.UID, n note) (sighting, error) {
	name, ok := l.nameOf(uid, n)
	if !ok {
		return sighting{}, nil
	}
	var pod *v1.Pod
	err := l.persist(ctx, func(ctx context.Context) (err error) {
		pod, err = l.client.CoreV1().Pods(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return sighting{known: true, gone: true}, nil
	}
	if err != nil {
		return sighting{}, fmt.Errorf("read pod %s, owner of locked GPUs: %w", name, err)
	}
	return l.look(pod, uid), nil
}

func (l *Locks) nameOf(uid types.UID, n note) (types.NamespacedName, bool) {
	if l.opts.Find != nil {
		if name, ok := l.opts.Find(uid); ok {
			return name, true
		}
	}
	namespace, name, ok := strings.Cut(n.Pod, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}, ok && namespace != "" && name != ""
}

// fence makes every Binding of the pod that was prepared before now fail, and says what the pod is after that.
func (l *Locks) fence(ctx context.Context, node string, uid types.UID, n note) (sighting, error) {
	name, ok := l.nameOf(uid, n)
	if !ok {
		return sighting{}, nil
	}
	pod, err := l.fencePod(ctx, name, uid, fmt.Sprintf("GPUs on node %s were reserved, but not bound in time", node))
	switch {
	case err != nil:
		return sighting{}, err
	case pod == nil:
		return sighting{known: true, gone: true}, nil
	}
	return l.look(pod, uid), nil
}

// fencePod is fence for a pod whose name is known. It returns the pod as it is after that, nil when it is gone.
func (l *Locks) fencePod(ctx context.Context, name types.NamespacedName, uid types.UID, why string) (*v1.Pod, error) {
	now := l.opts.Now()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid},
		"status": map[string]any{"conditions": []v1.PodCondition{{
			Type: RevokedCondition, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(now), Reason: "ReservationNotUsed",
			// With the time to the nanosecond no two are equal: a patch that changes nothing would stop no Binding.
			Message: fmt.Sprintf("%s; revoked at %s by %s", why, now.UTC().Format(time.RFC3339Nano), l.me),
		}}},
	})
	if err != nil {
		return nil, fmt.Errorf("revoke the reservation of pod %s: %w", name, err)
	}
	var pod *v1.Pod
	err = l.persist(ctx, func(ctx context.Context) (err error) {
		pod, err = l.client.CoreV1().Pods(name.Namespace).Patch(ctx, name.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsInvalid(err), apierrors.IsConflict(err):
		// The API server calls another UID an invalid change. If it is the same pod after all, nothing is fenced.
		if s, readErr := l.sight(ctx, uid, note{Pod: name.String()}); readErr == nil && s.gone {
			return nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("revoke the reservation of pod %s: %w", name, err)
	}
	return pod, nil
}

const podPage = 1000

// census is all pods, live: for owners whose name nobody knows. Whoever is not in it was gone when it began.
func (l *Locks) census(ctx context.Context) (map[types.UID]sighting, error) {
	all := map[types.UID]sighting{}
	err := l.eachPod(ctx, metav1.NamespaceAll, func(pod *v1.Pod) { all[pod.UID] = l.look(pod, pod.UID) })
	return all, err
}

// eachPod calls visit for all pods of a namespace, live.
func (l *Locks) eachPod(ctx context.Context, namespace string, visit func(*v1.Pod)) error {
	for next := ""; ; {
		var page *v1.PodList
		err := l.persist(ctx, func(ctx context.Context) (err error) {
			page, err = l.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: podPage, Continue: next})
			return err
		})
		if err != nil {
			return fmt.Errorf("list pods to find the owners of locked GPUs: %w", err)
		}
		for i := range page.Items {
			visit(&page.Items[i])
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
}
