// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/plugin/failpoint"
)

// What a write can come to, besides success and errors that pass.
var (
	errGone    = errors.New("the object is gone")
	errClosed  = errors.New("the kind cannot be written")
	errRefused = errors.New("the API server refuses the status")
)

// fieldManager is the name under which we write.
const fieldManager = "frond-scheduler"

// parted is a state that is one field of a status whose others are not ours.
type parted interface{ part() string }

// write makes the object say s. The patch replaces the whole status of exactly that object, or our part of it: it tests
// the uid, because the API server ignores a uid in any other kind of patch to a status, and it needs no resourceVersion,
// because nobody else writes these.
func (w *Writer) write(ctx context.Context, k key, s state) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var target dynamic.ResourceInterface = w.client.Resource(k.resource)
	if k.namespace != "" {
		target = w.client.Resource(k.resource).Namespace(k.namespace)
	}
	object, err := target.Get(ctx, k.name, metav1.GetOptions{})
	if err != nil {
		return readError(err)
	}
	if object.GetUID() != k.uid {
		return errGone
	}
	rendered, err := s.render(object, w.now())
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	want, err := apis.Encode(rendered)
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	path, there, wanted := "/status", object.Object["status"], any(want)
	if p, ok := s.(parted); ok {
		whole, _ := there.(map[string]any)
		if whole == nil {
			return nil // nothing is said yet that we could have thoughts about
		}
		path, there, wanted = path+"/"+p.part(), whole[p.part()], want[p.part()]
	}
	if equality.Semantic.DeepEqual(there, wanted) {
		return nil
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": k.uid},
		{"op": "add", "path": path, "value": wanted},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	if err := failpoint.Hit("status-write"); err != nil {
		return err
	}
	_, err = target.Patch(ctx, k.name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	if err == nil {
		return nil
	}
	if !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch: %w", err)
	}
	// The object is gone, its uid is another one by now, or the status breaks the definition.
	object, again := target.Get(ctx, k.name, metav1.GetOptions{})
	switch {
	case again != nil:
		return readError(again)
	case object.GetUID() != k.uid:
		return errGone
	default:
		return fmt.Errorf("%w: %w", errRefused, err)
	}
}

// readError sorts the errors of a read. A kind that is not served is a 404 too, but one that no handler of the API
// server has written. A read is forbidden for the whole kind, while a write may be for one object, by admission.
func readError(err error) error {
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return fmt.Errorf("read: %w: %w", errClosed, err)
	case apierrors.IsNotFound(err):
		return errGone
	default:
		return fmt.Errorf("read: %w", err)
	}
}
