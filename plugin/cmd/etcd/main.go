// SPDX-License-Identifier: Apache-2.0

// Command etcd is etcd itself, every flag intact: the lab's store, built from the version that Kubernetes' module graph pins.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
