// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/test/harness"
)

const (
	provisioner      = "frond.test/slow"
	selectedNode     = "volume.kubernetes.io/selected-node"
	volumeMembers    = 4
	slowProvisioning = 6 * time.Second
)

// volumes is a provisioner: it makes a volume for every claim whose pod has been given a node, after the time that plan says for
// the claim; a negative time means that it fails, once, as the external provisioner does: it takes the node back.
type volumes struct {
	mu     sync.Mutex
	plan   map[string]time.Duration
	given  map[string]time.Time // when a claim's volume was made
	failed map[string]bool
}

func (v *volumes) run(t *testing.T, ns, class string) {
	seen := map[types.UID]time.Time{}
	for t.Context().Err() == nil {
		claims, err := lab.Client.CoreV1().PersistentVolumeClaims(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			continue
		}
		for i := range claims.Items {
			claim := &claims.Items[i]
			if claim.Annotations[selectedNode] == "" || claim.Spec.VolumeName != "" {
				delete(seen, claim.UID)
				continue
			}
			if _, known := seen[claim.UID]; !known {
				seen[claim.UID] = time.Now()
			}
			v.mu.Lock()
			wait, failed := v.plan[claim.Name], v.failed[claim.Name]
			v.mu.Unlock()
			switch {
			case wait < 0 && !failed:
				v.refuse(t, claim)
			case time.Since(seen[claim.UID]) >= max(wait, 0):
				v.provide(t, claim, class)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (v *volumes) refuse(t *testing.T, claim *corev1.PersistentVolumeClaim) {
	changed := claim.DeepCopy()
	delete(changed.Annotations, selectedNode)
	if _, err := lab.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(t.Context(), changed, metav1.UpdateOptions{}); err == nil {
		v.mu.Lock()
		v.failed[claim.Name] = true
		v.mu.Unlock()
	}
}

func (v *volumes) provide(t *testing.T, claim *corev1.PersistentVolumeClaim, class string) {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "volume-" + string(claim.UID), Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: class,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/none"}},
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		},
	}
	if _, err := lab.Client.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
		return
	}
	t.Cleanup(func() {
		_ = lab.Client.CoreV1().PersistentVolumes().Delete(context.Background(), volume.Name, metav1.DeleteOptions{})
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	v.given[claim.Name] = time.Now()
}

// Members with volumes of their own, provisioned where they are placed: the first is bound only when the last one's volume is
// there, and while a volume cannot be had nobody is bound.
func TestTheFirstBindingWaitsForTheLastVolume(t *testing.T) {
	for name, last := range map[string]time.Duration{"slow": slowProvisioning, "fails once": -1} {
		t.Run(name, func(t *testing.T) {
			ns := lab.Namespace(t)
			late := storagev1.VolumeBindingWaitForFirstConsumer
			class, err := lab.Client.StorageV1().StorageClasses().Create(t.Context(), &storagev1.StorageClass{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "slow-"}, Provisioner: provisioner, VolumeBindingMode: &late}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = lab.Client.StorageV1().StorageClasses().Delete(context.Background(), class.Name, metav1.DeleteOptions{})
			})
			store := &volumes{plan: map[string]time.Duration{}, given: map[string]time.Time{}, failed: map[string]bool{}}
			store.plan[fmt.Sprintf("data-%d", volumeMembers-1)] = last
			go store.run(t, ns, class.Name)
			lab.Group(t, ns, "train", volumeMembers)
			for i := range volumeMembers {
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("data-%d", i)}, Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class.Name,
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
				if _, err := lab.Client.CoreV1().PersistentVolumeClaims(ns).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				lab.Member(t, ns, fmt.Sprintf("w-%d", i), "train", 8, func(pod *corev1.Pod) {
					pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
						PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}}}
				})
			}
			harness.Eventually(t, 90*time.Second, func(ctx context.Context) error {
				pods, err := lab.Client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
				if err != nil {
					return err
				}
				bound := harness.BoundCount(pods.Items)
				store.mu.Lock()
				given := len(store.given)
				store.mu.Unlock()
				if bound > 0 && given < volumeMembers {
					t.Fatalf("%d pods are bound, and only %d of %d volumes are there", bound, given, volumeMembers)
				}
				if bound < volumeMembers {
					return fmt.Errorf("%d of %d are bound with %d volumes; %s", bound, volumeMembers, given, lab.Reasons(ctx, ns))
				}
				return nil
			})
			if name == "fails once" && !store.failed[fmt.Sprintf("data-%d", volumeMembers-1)] {
				t.Error("the provisioner was never asked for the volume that it refuses")
			}
		})
	}
}
