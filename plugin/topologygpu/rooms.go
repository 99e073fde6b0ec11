// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"cmp"
	"math"
	"slices"

	"github.com/frond-scheduler/frond/shim"
)

// rooms are the exceptions of one plan: nodes that take fewer members of a template than their GPUs allow, ascending by
// slot, then template. Of every other node the engine's own counts are the truth.
type rooms []shim.Room

func compareRooms(a, b shim.Room) int {
	return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Template, b.Template))
}

// lower makes a node take no more members of a template today.
func (r rooms) lower(slot uint32, template, today uint16) rooms {
	at, found := slices.BinarySearchFunc(r, shim.Room{Slot: slot, Template: template}, compareRooms)
	if !found {
		return slices.Insert(r, at, shim.Room{Slot: slot, Template: template, Today: today, Ever: math.MaxUint16})
	}
	r[at].Today = min(r[at].Today, today)
	return r
}

// of is what of it concerns these templates, numbered anew in the same order: the engine knows only those of the request.
// Mostly the request has them all, and nothing has to be copied.
func (r rooms) of(numbers map[uint16]uint16) rooms {
	same := func(room shim.Room) bool {
		number, asked := numbers[room.Template]
		return asked && number == room.Template
	}
	if !slices.ContainsFunc(r, func(room shim.Room) bool { return !same(room) }) {
		return r
	}
	var out rooms
	for _, room := range r {
		if number, asked := numbers[room.Template]; asked {
			room.Template = number
			out = append(out, room)
		}
	}
	return out
}

// closed are nodes that take nobody, whatever the template; ever: what they would take on another day.
func closed(slots []uint32, ever uint16) rooms {
	out := make(rooms, 0, len(slots))
	for _, slot := range slots {
		out = append(out, shim.Room{Slot: slot, Ever: ever})
	}
	slices.SortFunc(out, compareRooms)
	return out
}
