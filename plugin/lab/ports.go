// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
)

// Ports are taken below the range that the kernel gives to outgoing connections (32768 and up), so that no client's
// socket can slip in between our choice and the program's bind.
const (
	portFirst = 20000
	portCount = 12000
)

// ports is a choice of free ports on 127.0.0.1, held against other labs until closed.
type ports struct {
	numbers []int
	claims  []io.Closer
}

// choosePorts finds n free ports. A program binds its port seconds after the choice: until then, and for the life of
// the lab, an abstract Unix socket named after the port tells other labs of this machine to look elsewhere. Such a name
// belongs to the network namespace, just like the port, and is gone with the process.
func choosePorts(n int) (*ports, error) {
	chosen := &ports{}
	offset := rand.IntN(portCount)
	for i := 0; i < portCount && len(chosen.numbers) < n; i++ {
		number := portFirst + (offset+i)%portCount
		claim, err := net.Listen("unix", fmt.Sprintf("@frond-lab-port-%d", number))
		if err != nil {
			continue
		}
		if !portFree(number) {
			claim.Close()
			continue
		}
		chosen.numbers = append(chosen.numbers, number)
		chosen.claims = append(chosen.claims, claim)
	}
	if len(chosen.numbers) < n {
		chosen.close()
		return nil, fmt.Errorf("choose ports: fewer than %d of the ports %d to %d on 127.0.0.1 can be used",
			n, portFirst, portFirst+portCount-1)
	}
	return chosen, nil
}

func portFree(number int) bool {
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", number))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func (p *ports) close() error {
	var errs []error
	for _, claim := range p.claims {
		errs = append(errs, claim.Close())
	}
	return errors.Join(errs...)
}
