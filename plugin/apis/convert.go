// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Decode reads an object, or a part of one, into a type of this package. What the type does not know is left out.
func Decode[T any](content map[string]any) (*T, error) {
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, out); err != nil {
		return nil, fmt.Errorf("decode %T: %w", *out, err)
	}
	return out, nil
}

// Encode is the opposite of Decode.
func Encode(in any) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(in)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", in, err)
	}
	return content, nil
}

// Status is the status of an object; empty when it has none yet. A status that is no object at all was not written
// through our definitions, and is refused.
func Status[T any](object *unstructured.Unstructured) (*T, error) {
	content, _, err := unstructured.NestedMap(object.Object, "status")
	if err != nil {
		return nil, fmt.Errorf("read the status of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return Decode[T](content)
}
