// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// applier puts manifests into the cluster, as `kubectl apply --server-side` does.
type applier struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

func newApplier(config *rest.Config) (*applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(finder)
	if err != nil {
		return nil, fmt.Errorf("ask the API server what it serves: %w", err)
	}
	return &applier{client: client, mapper: restmapper.NewDiscoveryRESTMapper(groups)}, nil
}

// apply creates or updates one object; a namespaced one without a namespace goes to namespace.
func (a *applier) apply(ctx context.Context, object *unstructured.Unstructured, namespace string) error {
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(schema.GroupKind{Group: kind.Group, Kind: kind.Kind}, kind.Version)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", kind.Kind, object.GetName(), err)
	}
	var target dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
		target = a.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	options := metav1.ApplyOptions{FieldManager: "frond-lab", Force: true}
	if _, err := target.Apply(ctx, object.GetName(), object, options); err != nil {
		return fmt.Errorf("apply %s %s: %w", kind.Kind, object.GetName(), err)
	}
	return nil
}

// readObjects reads all documents of one YAML file.
func readObjects(files fs.FS, path string) ([]*unstructured.Unstructured, error) {
	data, err := fs.ReadFile(files, path)
	if err != nil {
		return nil, fmt.Errorf("read a manifest: %w", err)
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read manifest %s: %w", path, err)
		}
		if len(document) == 0 || string(document) == "null" { // comments alone
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(document); err != nil { // keeps whole numbers whole
			return nil, fmt.Errorf("read manifest %s: %w", path, err)
		}
		objects = append(objects, object)
	}
}
