// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Nodes' locks keep two leaders from one GPU, not from one gang: each could bind a part of it to nodes of its own choice. So
// whoever binds a gang holds its Lease. It stays as long as the gang has pods, for its next holder must learn what was bound
// under it, and is changed once a plan: a plan made without the newest holder's knowledge finds another version there.
const (
	GangAnnotation = "gpu.scheduling/gang" // NAMESPACE/NAME of the gang, for people and for the sweep
	gangValue      = "gang"                // of Label
	gangPrefix     = "gang-"
	// gangPatience is how long another holder's Lease must have been as it is before it is taken over: safe at any moment, but
	// two that are alive would take it from each other.
	gangPatience = 3 * time.Second
)

// Gang is what TakeGang asks for.
type Gang struct {
	Lease     string // its name: GangLease
	Namespace string // of the pods
	Name      string
	// Bound are the members that the plan knows to be bound, and was made around.
	Bound map[types.UID]bool
}

// GangLease is the name of the Lease of a gang that is known by these words. No node is named like that.
func GangLease(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return gangPrefix + hex.EncodeToString(sum[:20])
}

// GangHeldError says that another scheduler binds the gang.
type GangHeldError struct{ Gang, Holder string }

func (e *GangHeldError) Error() string {
	return fmt.Sprintf("gang %s is being bound by another scheduler, %s", e.Gang, e.Holder)
}

// GangMovedError says that a member is bound which the plan counts as pending.
type GangMovedError struct{ Gang, Pod, Node string }

func (e *GangMovedError) Error() string {
	return fmt.Sprintf("gang %s was planned without knowing that another scheduler has bound pod %s to node %s", e.Gang, e.Pod, e.Node)
}

// gang is what is known of one gang's Lease; guarded by Locks.mu.
type gang struct {
	lease *coordinationv1.Lease // nil: none known
	since time.Time             // when this version was first seen
	// checked: this process holds it, and nobody before it can bind anything that it does not know of.
	checked bool
	fenced  map[types.UID]bool // pods that were fenced since this process holds it: a takeover of thousands may need several tries
}

// TakeGang makes this process the only one that binds members of the gang: one write. Where another was it before, the
// members are read live: the pending ones are fenced, so that no Binding which was prepared before can succeed, and a bound
// one that the plan does not know refuses the plan. versions are the fenced pods' resource versions since.
//
// The order makes it safe. The Binding of a pod carries a version from before its sender's TakeGang, and one that is sent
// again a version from before its sender's CheckGang. So after a fence only the holder's own can succeed, and what succeeded
// before is seen by it.
func (l *Locks) TakeGang(ctx context.Context, g Gang) (versions map[types.UID]string, err error) {
	fail := func(err error) (map[types.UID]string, error) {
		return nil, fmt.Errorf("lock gang %s/%s: %w", g.Namespace, g.Name, err)
	}
	lease := l.knownGang(g.Lease)
	waited := false
	for attempt, races := 0, 0; ; attempt++ {
		if attempt > 0 {
			if lease, err = l.readGang(ctx, g.Lease); err != nil {
				return fail(err)
			}
		}
		if rest := l.gangRest(lease); rest > 0 {
			if waited {
				return fail(&GangHeldError{g.Namespace + "/" + g.Name, holder(lease)}) // it is alive: the Lease has changed meanwhile
			}
			waited = true
			if stop := l.wait(ctx, rest); stop != nil {
				return fail(stop)
			}
			continue
		}
		if err = l.swapGang(ctx, g, lease); err == nil {
			if versions, err = l.checkMembers(ctx, g); err != nil {
				return fail(err)
			}
			return versions, nil
		}
		if err = l.again(ctx, err, attempt, &races); err != nil {
			return fail(err)
		}
	}
}

// CheckGang asks the API server whether this process still holds the gang. To be called between reading a pod again, because
// its Binding was refused, and sending the Binding with what was read.
func (l *Locks) CheckGang(ctx context.Context, name string) error {
	lease, err := l.readGang(ctx, name)
	if err != nil {
		return err
	}
	if lease == nil {
		return &GangHeldError{name, "nobody"}
	}
	if holder(lease) != l.me {
		return &GangHeldError{lease.Annotations[GangAnnotation], holder(lease)}
	}
	return nil
}

// SweepGangs deletes the Leases of gangs that are gone, as far as living knows. Where another process holds the Lease, the
// API server is asked for its pods first. Only the leader should.
func (l *Locks) SweepGangs(ctx context.Context, living func() map[string]bool) error {
	known := l.knownGangs()
	if len(known) == 0 {
		return nil
	}
	lives := living()
	known = slices.DeleteFunc(known, func(lease *coordinationv1.Lease) bool { return lives[lease.Name] })
	pods := map[string]func() (map[string]bool, error){} // by namespace: gangs with living pods
	for _, lease := range known {
		namespace, _, _ := strings.Cut(lease.Annotations[GangAnnotation], "/")
		if pods[namespace] == nil {
			pods[namespace] = sync.OnceValues(func() (map[string]bool, error) { return l.gangsIn(ctx, namespace) })
		}
	}
	failures := make([]error, len(known))
	parallel(len(known), func(i int) {
		lease := known[i]
		if holder(lease) != l.me {
			if l.gangRest(lease) > 0 {
				return
			}
			namespace, _, _ := strings.Cut(lease.Annotations[GangAnnotation], "/")
			live, err := pods[namespace]()
			if failures[i] = err; err != nil || live[lease.Name] || live[anyGang] {
				return
			}
		}
		failures[i] = l.removeGang(ctx, lease)
	})
	return errors.Join(failures...)
}

// ---- members, live ------------------------------------------------------------------------------------------------------

// checkMembers looks for what others may have bound, unless it is known that nobody could.
func (l *Locks) checkMembers(ctx context.Context, g Gang) (map[types.UID]string, error) {
	checked, before := l.gangFences(g.Lease)
	if checked {
		return nil, nil
	}
	versions := map[types.UID]string{}
	var pending []*v1.Pod
	var moved *GangMovedError
	err := l.eachPod(ctx, g.Namespace, func(pod *v1.Pod) {
		name, certain := l.gangOf(pod)
		switch {
		case sighted(pod, pod.UID).gone || pod.DeletionTimestamp != nil || certain && name != g.Lease:
		case pod.Spec.NodeName == "" && before[pod.UID]:
			versions[pod.UID] = pod.ResourceVersion
		case pod.Spec.NodeName == "":
			pending = append(pending, pod)
		case name == g.Lease && !g.Bound[pod.UID]:
			moved = &GangMovedError{g.Namespace + "/" + g.Name, pod.Name, pod.Spec.NodeName}
		}
	})
	if err != nil {
		return nil, err
	}
	if moved != nil {
		return nil, moved
	}
	var mu sync.Mutex
	var failures []error
	parallel(len(pending), func(i int) {
		pod := pending[i]
		fenced, err := l.fencePod(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, pod.UID, "another scheduler takes its gang over")
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			failures = append(failures, err)
		case fenced == nil: // it is gone
		case l.elsewhere(fenced, g.Lease): // its gang has become known meanwhile, and is another
		case fenced.Spec.NodeName != "" && !g.Bound[pod.UID]:
			failures = append(failures, &GangMovedError{g.Namespace + "/" + g.Name, pod.Name, fenced.Spec.NodeName})
		default:
			versions[pod.UID] = fenced.ResourceVersion
		}
	})
	l.rememberFences(g.Lease, versions)
	if len(failures) > 0 {
		return nil, slices.MinFunc(failures, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	}
	// These versions are newer than the Lease: a third one may have taken the gang, and fenced its pods, before they were.
	if err := l.CheckGang(ctx, g.Lease); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.gangs[g.Lease]; known != nil && holder(known.lease) == l.me {
		known.checked, known.fenced = true, nil
	}
	l.stats.takeovers.Add(1)
	return versions, nil
}

// gangFences: has a takeover of the gang been finished, and which pods were fenced for it.
func (l *Locks) gangFences(name string) (checked bool, fenced map[types.UID]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.gangs[name]; known != nil {
		return known.checked, maps.Clone(known.fenced)
	}
	return false, nil
}

func (l *Locks) rememberFences(name string, versions map[types.UID]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.gangs[name]
	if known == nil || holder(known.lease) != l.me {
		return
	}
	known.fenced = make(map[types.UID]bool, len(versions))
	for uid := range versions {
		known.fenced[uid] = true
	}
}

// anyGang: there are pods of which nobody knows yet what gang they are in. It may be any.
const anyGang = ""

// gangsIn are the Leases of gangs that have living pods in a namespace.
func (l *Locks) gangsIn(ctx context.Context, namespace string) (map[string]bool, error) {
	live := map[string]bool{}
	err := l.eachPod(ctx, namespace, func(pod *v1.Pod) {
		switch name, certain := l.gangOf(pod); {
		case sighted(pod, pod.UID).gone:
		case !certain:
			live[anyGang] = true
		case name != "":
			live[name] = true
		}
	})
	return live, err
}

// elsewhere: the pod is in no gang, or in another one, for certain.
func (l *Locks) elsewhere(pod *v1.Pod, lease string) bool {
	name, certain := l.gangOf(pod)
	return certain && name != lease
}

// gangOf is the Lease of a pod's gang; certain is false when nobody knows yet what gang it is in.
func (l *Locks) gangOf(pod *v1.Pod) (name string, certain bool) {
	if l.opts.GangOf == nil {
		return "", false
	}
	return l.opts.GangOf(pod)
}

// ---- Leases -------------------------------------------------------------------------------------------------------------

func isGang(lease *coordinationv1.Lease) bool { return lease.Labels[Label] == gangValue }

// holder of a Lease, "" when it says none.
func holder(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func (l *Locks) knownGang(name string) *coordinationv1.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.gangs[name]; known != nil {
		return known.lease
	}
	return nil
}

func (l *Locks) knownGangs() (leases []*coordinationv1.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.gangs)) {
		leases = append(leases, l.gangs[name].lease)
	}
	return leases
}

// gangRest is how long the Lease must still be as it is before it may be taken; 0: now.
func (l *Locks) gangRest(lease *coordinationv1.Lease) time.Duration {
	if lease == nil || holder(lease) == l.me {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.gangs[lease.Name]
	if known == nil || known.lease.ResourceVersion != lease.ResourceVersion {
		return l.opts.GangPatience
	}
	return max(0, l.opts.GangPatience-l.opts.Now().Sub(known.since))
}

func (l *Locks) observeGang(lease *coordinationv1.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.gangs[lease.Name]
	if known != nil && !newer(lease.ResourceVersion, known.lease.ResourceVersion) {
		return
	}
	next := &gang{lease: lease, since: l.opts.Now()}
	if known != nil && holder(known.lease) == l.me && holder(lease) == l.me {
		next.checked, next.fenced = known.checked, known.fenced
	}
	l.gangs[lease.Name] = next
}

func (l *Locks) observeGangGone(name, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.gangs[name]; known != nil && !newer(known.lease.ResourceVersion, version) {
		delete(l.gangs, name)
	}
}

// readGang asks the API server itself; nil: there is none.
func (l *Locks) readGang(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	before := l.knownGang(name)
	var lease *coordinationv1.Lease
	err := l.persist(ctx, func(ctx context.Context) (err error) {
		lease, err = l.client.CoordinationV1().Leases(l.opts.Namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		if before != nil {
			l.observeGangGone(name, before.ResourceVersion)
		}
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Lease %s/%s: %w", l.opts.Namespace, name, err)
	}
	l.observeGang(lease)
	return lease, nil
}

// swapGang writes this process as the holder over the Lease that was read (nil: none), if that is still the current one.
func (l *Locks) swapGang(ctx context.Context, g Gang, base *coordinationv1.Lease) error {
	next := l.over(base, g.Lease)
	next.Labels = map[string]string{Label: gangValue}
	next.Annotations = map[string]string{GangAnnotation: g.Namespace + "/" + g.Name}
	written, err := l.write(ctx, next)
	if err != nil {
		return err
	}
	l.observeGang(written)
	if base == nil {
		// There was none, so nothing was ever bound under it.
		l.mu.Lock()
		if known := l.gangs[g.Lease]; known != nil && known.lease.ResourceVersion == written.ResourceVersion {
			known.checked = true
		}
		l.mu.Unlock()
	}
	return nil
}

func (l *Locks) removeGang(ctx context.Context, lease *coordinationv1.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	l.stats.writes.Add(1)
	err := l.client.CoordinationV1().Leases(l.opts.Namespace).Delete(ctx, lease.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
	})
	switch {
	case err == nil, apierrors.IsNotFound(err):
		l.observeGangGone(lease.Name, lease.ResourceVersion)
		return nil
	case apierrors.IsConflict(err):
		return nil // it is in use again
	}
	return fmt.Errorf("delete Lease %s/%s: %w", l.opts.Namespace, lease.Name, err)
}
