#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the control plane of a released, older Kubernetes from its own module: an API server that really is that old, for
# the proof that the scheduler works with it (docs/versions.md). The controller-manager comes along, because upstream does
# not support one that is newer than its API server.
#   oldkube.sh VERSION FOLDER     e.g. v1.34.4 build/kube/v1.34.4; what is there already is not built again
set -euo pipefail
version=${1:?usage: oldkube.sh VERSION FOLDER}
folder=${2:?usage: oldkube.sh VERSION FOLDER}
[[ $version =~ ^v1\.[0-9]+\.[0-9]+$ ]] || { echo "oldkube: VERSION: must look like v1.34.4, got $version" >&2; exit 2; }
programs='kube-apiserver kube-controller-manager'

missing=0
for program in $programs; do
	[ -x "$folder/$program" ] || missing=1
done
[ $missing = 1 ] || exit 0

mkdir -p "$folder/module"
folder=$(cd "$folder" && pwd)
cd "$folder/module"
export GOFLAGS='-trimpath -mod=mod' GOWORK=off
# Kubernetes requires its staging modules as v0.0.0 and replaces them by folders of its own tree; they are published as v0.MINOR.PATCH.
released=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"GoMod": "\(.*\)",*$/\1/p')
rm -f go.mod go.sum
go mod init oldkube >/dev/null 2>&1
go mod edit -require="k8s.io/kubernetes@$version"
# One that has since been given up may still be named there.
for module in $(sed -n 's/^\t\(k8s\.io\/[a-z-]*\) => .*/\1/p' "$released"); do
	go mod edit -replace="$module=$module@v0${version#v1}"
done
for program in $programs; do
	go build -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" -o "$folder/$program" "k8s.io/kubernetes/cmd/$program"
done
