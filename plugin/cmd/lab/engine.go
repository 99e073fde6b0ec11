// SPDX-License-Identifier: Apache-2.0

package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/frond-scheduler/frond/plugin/mirror"
	"github.com/frond-scheduler/frond/plugin/nodereport"
	"github.com/frond-scheduler/frond/shim"
)

// expand reads a fabric through the engine.
func expand(text []byte, line bool) ([]byte, error) {
	library, err := shim.Open("")
	if err != nil {
		return nil, err
	}
	return library.FabricExpand(text, line)
}

// draw draws the map through an engine of its own, with the scheduler's args and fed as the scheduler's is.
func draw(text []byte, nodes []*v1.Node, pods []*v1.Pod, objects []*unstructured.Unstructured, color bool) (string, error) {
	library, err := shim.Open("")
	if err != nil {
		return "", err
	}
	args, err := library.Args(text)
	if err != nil {
		return "", err
	}
	limits := shim.Limits{Nodes: uint32(max(1, len(nodes))), Pods: uint32(max(1, len(pods)))}
	fabric, err := args.Fabric()
	if err != nil {
		return "", err
	}
	engine, err := library.New(limits, text, fabric)
	if err != nil {
		return "", err
	}
	defer engine.Close()
	var reports []*nodereport.Report
	for _, object := range objects {
		if report, err := nodereport.Read(object); err == nil { // the scheduler goes without those that it refuses, too
			reports = append(reports, report)
		}
	}
	if err := mirror.Fill(engine, args, nodes, pods, reports...); err != nil {
		return "", err
	}
	return engine.Map(color)
}
