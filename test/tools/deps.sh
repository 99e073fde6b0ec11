#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the project needs and is missing: Debian packages, the pinned Go modules, the C test library.
# Idempotent and silent when satisfied. Usage: deps.sh UNITY_MODULE UNITY_SUM NVML_MODULE NVML_SUM
set -euo pipefail
cd "$(dirname "$0")/../.."
unity_module=$1 unity_sum=$2 nvml_module=$3 nvml_sum=$4

packages=(gcc make git binutils util-linux libcjson-dev libyaml-dev libhwloc-dev libcurl4-openssl-dev openssl python3 clang-format clang libclang-rt-14-dev llvm valgrind)
missing=()
for package in "${packages[@]}"; do
	dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
	if [ "$(id -u)" = 0 ]; then
		sudo=()
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		sudo=(sudo)
	else
		echo "deps: these Debian packages are missing, and installing them needs root: ${missing[*]}" >&2
		exit 1
	fi
	echo "deps: installing ${missing[*]}"
	"${sudo[@]}" apt-get update -qq
	DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq "${missing[@]}" >/dev/null
fi

if ! command -v go >/dev/null; then
	echo "deps: Go 1.26 or newer is needed and not on PATH" >&2
	exit 1
fi

# Go modules: only when go.sum has changed since the last look, and the module cache is still the one that was filled.
mkdir -p build
stamp=build/deps.stamp
want="$(sha256sum go.mod go.sum | sha256sum | cut -d' ' -f1) $(go env GOMODCACHE) $unity_module $nvml_module"
module_dir() { # where the module cache keeps a module: capitals become !small
	printf '%s/%s' "$(go env GOMODCACHE)" "$(printf '%s' "$1" | sed 's/[A-Z]/!\L&/g')"
}
unity_dir=$(module_dir "$unity_module") nvml_dir=$(module_dir "$nvml_module")
kube_dir=$(go env GOMODCACHE)/k8s.io/kubernetes@$(awk '$1=="k8s.io/kubernetes"{print $2}' go.mod)
if [ ! -d "$unity_dir/tests/unity/src" ] || [ ! -e "$nvml_dir/pkg/nvml/nvml.h" ] || [ ! -d "$kube_dir" ] ||
	[ "$(cat $stamp 2>/dev/null)" != "$want" ]; then
	echo "deps: fetching Go modules"
	go mod download
	# No Go package of ours imports these, so go.sum cannot pin them: the sums are compared here.
	for pinned in "$unity_module $unity_sum" "$nvml_module $nvml_sum"; do
		read -r module sum <<<"$pinned"
		got=$(cd / && GOFLAGS= go mod download -json "$module" | sed -n 's/^\t"Sum": "\(.*\)",$/\1/p')
		if [ "$got" != "$sum" ]; then
			echo "deps: $module has the sum $got, expected $sum" >&2
			exit 1
		fi
	done
	echo "$want" >$stamp
fi
