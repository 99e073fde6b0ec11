// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"net"
	"testing"
)

func TestPortsAreFreeAndTakenByOneLabOnly(t *testing.T) {
	seen := map[int]bool{}
	for range 100 { // a hundred labs at once
		chosen, err := choosePorts(endpointCount)
		if err != nil {
			t.Fatal(err)
		}
		defer chosen.close()
		for _, number := range chosen.numbers {
			if seen[number] {
				t.Fatalf("port %d was given to two labs", number)
			}
			if !portFree(number) {
				t.Errorf("port %d cannot be listened on", number)
			}
			seen[number] = true
		}
	}
}

func TestAPortInUseIsNotFree(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if number := listener.Addr().(*net.TCPAddr).Port; portFree(number) {
		t.Errorf("port %d is in use but was called free", number)
	}
}

func TestClosedPortsCanBeChosenAgain(t *testing.T) {
	chosen, err := choosePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := chosen.close(); err != nil {
		t.Fatal(err)
	}
	claim, err := net.Listen("unix", fmt.Sprintf("@frond-lab-port-%d", chosen.numbers[0]))
	if err != nil {
		t.Fatalf("the claim on port %d outlived its lab: %v", chosen.numbers[0], err)
	}
	claim.Close()
}

func TestMorePortsThanThereAreIsAnError(t *testing.T) {
	if chosen, err := choosePorts(portCount + 1); err == nil {
		chosen.close()
		t.Error("more ports were chosen than there are")
	}
}
