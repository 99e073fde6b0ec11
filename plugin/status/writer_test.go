// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/frond-scheduler/frond/plugin/apis"
)

func claimState(name string, uid types.UID, phase apis.ClaimPhase) ClaimState {
	return ClaimState{Namespace: "ns", Name: name, UID: uid, Phase: phase, Pod: types.NamespacedName{Namespace: "ns", Name: "pod"}, PodUID: "pod-uid"}
}

// A gang of 512 pods that binds within a second costs a handful of writes, a pause apart, and the last state is there.
func TestManyStatesCostAFewWrites(t *testing.T) {
	bubble(t, []*unstructured.Unstructured{groupObject("g", "u")}, func(r *rig) {
		for n := range int32(513) {
			phase := apis.GroupScheduling
			if n == 512 {
				phase = apis.GroupScheduled
			}
			r.Group(GroupState{Namespace: "ns", Name: "g", UID: "u", Phase: phase, Scheduled: n})
			time.Sleep(time.Second / 512)
		}
		r.rest(time.Second)
		if len(r.patches) > 7 {
			t.Errorf("%d writes", len(r.patches))
		}
		for i := 1; i < len(r.patches); i++ {
			if gap := r.patches[i].Sub(r.patches[i-1]); gap < pause {
				t.Errorf("writes %d and %d are %s apart", i-1, i, gap)
			}
		}
		status, err := apis.Status[apis.PodGroupStatus](r.get(apis.PodGroups, "ns", "g"))
		if err != nil || status.Scheduled != 512 || status.Phase != apis.GroupScheduled {
			t.Errorf("at last it says %+v, %v", status, err)
		}
	})
}

func TestWhatIsThereIsNotWrittenAgain(t *testing.T) {
	bubble(t, []*unstructured.Unstructured{claimObject("c", "u")}, func(r *rig) {
		for range 3 {
			r.Claim(claimState("c", "u", apis.ClaimReserved))
			r.rest(time.Minute)
		}
		if r.written() != 1 {
			t.Errorf("%d writes", r.written())
		}
	})
}

// An object that nothing is said about any more costs no memory.
func TestEntriesGoAway(t *testing.T) {
	bubble(t, []*unstructured.Unstructured{claimObject("c", "u")}, func(r *rig) {
		r.Claim(claimState("c", "u", apis.ClaimBound))
		r.Claim(claimState("nobody", "u", apis.ClaimBound))
		r.Claim(claimState("c", "older", apis.ClaimReleased))
		r.rest(time.Second)
		if len(r.entries) != 0 || r.queue.Len() != 0 {
			t.Errorf("left over: %v", r.entries)
		}
	})
}

func TestARecreatedClaimIsNotHit(t *testing.T) {
	t.Run("before the state is written", func(t *testing.T) {
		bubble(t, []*unstructured.Unstructured{claimObject("c", "new")}, func(r *rig) {
			r.Claim(claimState("c", "new", apis.ClaimPending))
			r.Claim(claimState("c", "old", apis.ClaimReleased)) // late, and about another object
			r.rest(time.Second)
			if got := r.claim("c").Status.Phase; got != apis.ClaimPending {
				t.Errorf("phase %s", got)
			}
		})
	})
	t.Run("between the read and the write", func(t *testing.T) {
		bubble(t, []*unstructured.Unstructured{claimObject("c", "old")}, func(r *rig) {
			r.failWith(func(action clienttesting.Action) error {
				if action.GetVerb() != "patch" {
					return nil
				}
				if err := r.client.Tracker().Update(apis.GpuClaims, claimObject("c", "new"), "ns"); err != nil {
					t.Error(err)
				}
				return apierrors.NewInvalid(apis.GPU.WithKind(apis.KindGpuClaim).GroupKind(), "c", nil)
			})
			r.Claim(claimState("c", "old", apis.ClaimBound))
			r.rest(time.Hour)
			if got := r.claim("c").Status.Phase; got != "" || len(r.entries) != 0 {
				t.Errorf("phase %q, %d entries", got, len(r.entries))
			}
		})
	})
}

// The patch itself refuses another object, whatever was read before.
func TestThePatchTestsTheUID(t *testing.T) {
	bubble(t, []*unstructured.Unstructured{claimObject("c", "u")}, func(r *rig) {
		var patch string
		r.failWith(func(action clienttesting.Action) error {
			if p, ok := action.(clienttesting.PatchAction); ok {
				patch = fmt.Sprintf("%s %s %s", p.GetPatchType(), p.GetSubresource(), p.GetPatch()[:61])
			}
			return nil
		})
		r.Claim(claimState("c", "u", apis.ClaimBound))
		r.rest(time.Second)
		if want := `application/json-patch+json status [{"op":"test","path":"/metadata/uid","value":"u"},{"op":"add"`; patch != want {
			t.Errorf("patch is\n%s, want\n%s", patch, want)
		}
	})
}

func TestErrorsThatPassAreRetried(t *testing.T) {
	for _, c := range []struct {
		name, verb string
		err        error
	}{
		{"server error", "get", apierrors.NewInternalError(errors.New("etcd is away"))},
		{"too many requests", "get", apierrors.NewTooManyRequests("later", 1)},
		{"conflict", "patch", apierrors.NewConflict(apis.GpuClaims.GroupResource(), "c", errors.New("changed"))},
		{"no connection", "get", errors.New("connection refused")},
		{"forbidden by admission", "patch", apierrors.NewForbidden(apis.GpuClaims.GroupResource(), "c", errors.New("a policy"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, []*unstructured.Unstructured{claimObject("c", "u")}, func(r *rig) {
				tries := 0
				r.failWith(func(action clienttesting.Action) error {
					if action.GetVerb() != c.verb {
						return nil
					}
					if tries++; tries <= 5 {
						return c.err
					}
					return nil
				})
				r.Claim(claimState("c", "u", apis.ClaimReserved))
				r.rest(time.Second)
				r.Claim(claimState("c", "u", apis.ClaimBound)) // the newest wins while the API server is away
				r.rest(time.Minute)
				if got := r.claim("c").Status.Phase; got != apis.ClaimBound || r.written() != 1 {
					t.Errorf("phase %s after %d writes", got, r.written())
				}
				if tries != 6 {
					t.Errorf("tried %d times", tries)
				}
			})
		})
	}
}

// Where the definitions are not installed the API server is asked once in a while, for all objects together; what was
// to be written is written once they are.
func TestAKindThatIsNotServedIsWaitedFor(t *testing.T) {
	const count = 200
	objects := make([]*unstructured.Unstructured, count)
	for i := range objects {
		objects[i] = claimObject(fmt.Sprint("c", i), "u")
	}
	for name, closed := range map[string]error{
		"not served": notServed(),
		"forbidden":  apierrors.NewForbidden(apis.GpuClaims.GroupResource(), "c", errors.New("no right")),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, objects, func(r *rig) {
				asked := 0
				r.failWith(func(clienttesting.Action) error { asked++; return closed })
				for i := range count {
					r.Claim(claimState(fmt.Sprint("c", i), "u", apis.ClaimBound))
				}
				r.rest(10 * time.Minute)
				if asked > 21*4 { // once a round by each worker, at most
					t.Errorf("asked %d times in ten minutes", asked)
				}
				r.failWith(nil)
				r.rest(time.Minute)
				if r.written() != count || len(r.entries) != 0 {
					t.Errorf("%d written, %d left", r.written(), len(r.entries))
				}
			})
		})
	}
}

// A status that breaks the definition is not tried for ever, and does not stand in the way of the next one.
func TestARefusedStatusIsGivenUp(t *testing.T) {
	bubble(t, []*unstructured.Unstructured{claimObject("c", "u")}, func(r *rig) {
		patches := 0
		r.failWith(func(action clienttesting.Action) error {
			if action.GetVerb() != "patch" {
				return nil
			}
			if patches++; patches == 1 {
				return apierrors.NewInvalid(apis.GPU.WithKind(apis.KindGpuClaim).GroupKind(), "c", nil)
			}
			return nil
		})
		r.Claim(claimState("c", "u", apis.ClaimReserved))
		r.rest(time.Hour)
		if patches != 1 {
			t.Errorf("tried %d times", patches)
		}
		r.Claim(claimState("c", "u", apis.ClaimBound))
		r.Claim(claimState("c", "u", "Odd")) // no phase: never sent
		r.rest(time.Second)
		r.Claim(claimState("c", "u", apis.ClaimBound))
		r.rest(time.Second)
		if got := r.claim("c").Status.Phase; got != apis.ClaimBound {
			t.Errorf("phase %s", got)
		}
	})
}

func TestAStateWithoutAnObjectIsRefused(t *testing.T) {
	bubble(t, []*unstructured.Unstructured{claimObject("c", "u")}, func(r *rig) {
		r.Claim(claimState("c", "", apis.ClaimBound))
		r.Claim(claimState("", "u", apis.ClaimBound))
		r.rest(time.Second)
		if len(r.client.Actions()) != 0 {
			t.Errorf("asked: %v", r.client.Actions())
		}
	})
}
