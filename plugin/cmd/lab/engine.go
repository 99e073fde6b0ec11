// SPDX-License-Identifier: Apache-2.0

package main

import (
	v1 "k8s.io/api/core/v1"

	"github.com/frond-scheduler/frond/plugin/mirror"
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
func draw(text []byte, nodes []*v1.Node, pods []*v1.Pod, color bool) (string, error) {
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
	if err := mirror.Fill(engine, args, nodes, pods); err != nil {
		return "", err
	}
	return engine.Map(color)
}
