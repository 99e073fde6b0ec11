# SPDX-License-Identifier: Apache-2.0
# Frond. `make` alone prints the targets. Objects go to build/, programs to bin/; nothing is built outside this folder.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# One set of flags for every Go build and test: a second set would compile Kubernetes twice (12 minutes).
KUBE_VERSION := v1.37.1
KWOK_VERSION := v0.8.0
export GOFLAGS := -trimpath
export CGO_ENABLED := 1
export GOTOOLCHAIN := local
GO_LDFLAGS := -s -w -X k8s.io/component-base/version.gitVersion=$(KUBE_VERSION)

CC := gcc
UNITY_MODULE := github.com/DaveGamble/cJSON@v1.7.19
UNITY_SUM := h1:LHEfD1qHBtpb3+cEehl3nI05OBdI2y3ZIhp6pShaTUI=
UNITY = $(shell go env GOMODCACHE)/github.com/!dave!gamble/c!j!s!o!n@v1.7.19/tests/unity/src

# NVML's header, and nothing else of it: the driver's library is opened at run time.
NVML_MODULE := github.com/NVIDIA/go-nvml@v0.13.3-0
NVML_SUM := h1:oJZ4+VTtPI/XT7XCfo5NvE9XTNrH8I3/KHy89rHxDxY=
NVML = $(shell go env GOMODCACHE)/github.com/!n!v!i!d!i!a/go-nvml@v0.13.3-0/pkg/nvml

WARN := -Wall -Wextra -Wpedantic -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef \
	-Wcast-align -Wpointer-arith -Wwrite-strings -Wformat=2 -Wconversion -Wno-sign-conversion
CPPFLAGS := -Icsrc/include -Icsrc -D_POSIX_C_SOURCE=200809L
CFLAGS := -std=c11 -g $(WARN) -fPIC -fvisibility=hidden -MMD -MP
REL := -O2
SAN := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
LIBS := -lcjson -lyaml
PROBE_LIBS := $(LIBS) -lhwloc
AGENT_LIBS := $(PROBE_LIBS) -lcurl -pthread

LIB_SRC := $(wildcard csrc/core/*.c csrc/text/*.c csrc/engine/*.c)
# What reads and writes words needs no engine: the agent links this alone.
TEXT_SRC := $(wildcard csrc/text/*.c) csrc/core/out.c
SIM_SRC := $(wildcard csrc/sim/*.c)
# What reads jobs, for the fuzz target of it.
JOBS_SRC := $(addprefix csrc/sim/,jobs.c manifests.c podtemplate.c gangs.c)
SAN_JOBS := $(JOBS_SRC:%.c=build/san/%.o)
PROBE_SRC := $(wildcard csrc/probe/*.c)
AGENT_SRC := $(wildcard csrc/agent/*.c)
UNIT_SRC := $(wildcard test/unit/test_*.c)
REL_LIB := $(LIB_SRC:%.c=build/rel/%.o)
REL_TEXT := $(TEXT_SRC:%.c=build/rel/%.o)
SAN_LIB := $(LIB_SRC:%.c=build/san/%.o)
SAN_TEXT := $(TEXT_SRC:%.c=build/san/%.o)
SAN_PROBE := $(PROBE_SRC:%.c=build/san/%.o)
SAN_AGENT := $(filter-out %/main.o,$(AGENT_SRC:%.c=build/san/%.o))
UNITS := $(UNIT_SRC:%.c=build/san/%)
FUZZ := $(patsubst %.c,build/san/%,$(wildcard test/fuzz/fuzz_*.c))
# What needs the probe and, when it runs, the fake driver and its machines.
PROBE_UNITS := $(filter build/san/test/unit/test_probe%,$(UNITS))
AGENT_UNITS := $(filter build/san/test/unit/test_agent%,$(UNITS))
PROBE_FUZZ := build/san/test/fuzz/fuzz_report build/san/test/fuzz/fuzz_driver
FAKE_SRC := $(wildcard test/nvml/*.c)
FAKE := build/nvml/libnvidia-ml.so.1 build/nvml/old/libnvidia-ml.so.1 \
	$(patsubst test/nvml/machines/%.machine,build/nvml/%.xml,$(wildcard test/nvml/machines/*.machine))
# The same machines beside the programs, for the lab.
MACHINES := bin/machines/libnvidia-ml.so.1 $(patsubst test/nvml/machines/%.machine,bin/machines/%.machine,$(wildcard test/nvml/machines/*.machine)) \
	$(patsubst test/nvml/machines/%.machine,bin/machines/%.xml,$(wildcard test/nvml/machines/*.machine))
KUBE := kube-apiserver kube-controller-manager kubectl
GO_SRC := go.mod go.sum $(shell find plugin shim csrc/include manifests -name '*.go' -o -path 'shim/*.[ch]' -o -name frond.h -o -path 'manifests/*' -type f)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---- what the project needs ---------------------------------------------------------------------------------------

deps: ## installs what is missing: Debian packages, Go modules and tools; silent when satisfied
	@test/tools/deps.sh "$(UNITY_MODULE)" "$(UNITY_SUM)" "$(NVML_MODULE)" "$(NVML_SUM)"

# ---- programs -------------------------------------------------------------------------------------------------------

engine: deps ## builds the C side: bin/libfrond.so, bin/frond-sim
	@$(MAKE) --no-print-directory bin/libfrond.so bin/frond-sim

agent: deps ## builds what runs on GPU nodes: bin/frond-agent
	@$(MAKE) --no-print-directory bin/frond-agent

build: deps ## builds everything under bin/ (cold: about 12 minutes on 2 cores, most of it Kubernetes)
	@$(MAKE) --no-print-directory bin/libfrond.so bin/frond-sim bin/frond-agent $(MACHINES)
	@$(MAKE) --no-print-directory bin/scheduler bin/lab bin/etcd $(KUBE:%=bin/%) bin/kwok

build/rel/%.o: %.c
	@mkdir -p $(@D)
	@$(CC) $(CPPFLAGS) $(CFLAGS) $(REL) -c $< -o $@

build/san/%.o: %.c
	@mkdir -p $(@D)
	@$(CC) $(CPPFLAGS) -I$(UNITY) $(CFLAGS) $(SAN) -c $< -o $@

build/rel/csrc/probe/%.o build/san/csrc/probe/%.o build/rel/test/nvml/%.o: CPPFLAGS += -isystem $(NVML)

build/san/unity.o:
	@mkdir -p $(@D)
	@$(CC) -I$(UNITY) -std=c11 -g $(SAN) -c $(UNITY)/unity.c -o $@

bin/libfrond.so: $(REL_LIB)
	@mkdir -p $(@D)
	@echo "  link $@"
	@$(CC) -shared -Wl,-soname,libfrond.so -Wl,-z,defs -o $@ $^ $(LIBS)

bin/frond-sim: $(SIM_SRC:%.c=build/rel/%.o) $(REL_LIB)
	@mkdir -p $(@D)
	@echo "  link $@"
	@$(CC) -o $@ $^ $(LIBS)

build/san/frond-sim: $(SIM_SRC:%.c=build/san/%.o) $(SAN_LIB)
	@$(CC) $(SAN) -o $@ $^ $(LIBS)

bin/frond-agent: $(AGENT_SRC:%.c=build/rel/%.o) $(PROBE_SRC:%.c=build/rel/%.o) $(REL_TEXT)
	@mkdir -p $(@D)
	@echo "  link $@"
	@$(CC) -o $@ $^ $(AGENT_LIBS)

build/san/frond-agent: $(AGENT_SRC:%.c=build/san/%.o) $(SAN_PROBE) $(SAN_TEXT)
	@$(CC) $(SAN) -o $@ $^ $(AGENT_LIBS)

build/san/libfrond.so: $(SAN_LIB)
	@$(CC) $(SAN) -shared -Wl,-soname,libfrond.so -o $@ $^ $(LIBS)

$(filter-out $(PROBE_UNITS) $(AGENT_UNITS),$(UNITS)): build/san/%: build/san/%.o build/san/unity.o $(SAN_LIB)
	@$(CC) $(SAN) -o $@ $^ $(LIBS)

$(PROBE_UNITS): build/san/%: build/san/%.o build/san/unity.o build/san/test/nvml/machine.o $(SAN_PROBE) $(SAN_TEXT) | $(FAKE)
	@$(CC) $(SAN) -o $@ $^ $(PROBE_LIBS)

$(AGENT_UNITS): build/san/%: build/san/%.o build/san/unity.o build/san/test/nvml/machine.o $(SAN_AGENT) $(SAN_PROBE) $(SAN_TEXT) | $(FAKE)
	@$(CC) $(SAN) -o $@ $^ $(AGENT_LIBS)

$(filter-out $(PROBE_FUZZ),$(FUZZ)): build/san/%: build/san/%.o build/san/test/fuzz/replay.o $(SAN_JOBS) build/san/csrc/sim/replay.o $(SAN_LIB)
	@$(CC) $(SAN) -o $@ $^ $(LIBS)

$(PROBE_FUZZ): build/san/%: build/san/%.o build/san/test/fuzz/replay.o $(SAN_PROBE) $(SAN_TEXT) | $(FAKE)
	@$(CC) $(SAN) -o $@ $^ $(PROBE_LIBS)

# The fake driver, and the same without what an old one does not have. Not sanitized: any program may load them.
build/nvml/libnvidia-ml.so.1: $(FAKE_SRC:%.c=build/rel/%.o)
	@mkdir -p $(@D)
	@$(CC) -shared -Wl,-soname,libnvidia-ml.so.1 -Wl,-z,defs -o $@ $^

build/nvml/old/libnvidia-ml.so.1: $(FAKE_SRC:%.c=build/rel/%.o) test/nvml/old.map
	@mkdir -p $(@D)
	@$(CC) -shared -Wl,-soname,libnvidia-ml.so.1 -Wl,-z,defs -Wl,--version-script=test/nvml/old.map -o $@ $(filter %.o,$^)

build/nvml/%.xml: test/nvml/machines/%.machine test/nvml/hwloc.awk $(wildcard test/nvml/machines/*.machine)
	@mkdir -p $(@D)
	@awk -v folder=test/nvml/machines -f test/nvml/hwloc.awk $< >$@

$(filter-out %.machine,$(MACHINES)): bin/machines/%: build/nvml/%
	@mkdir -p $(@D)
	@cp $< $@

$(filter %.machine,$(MACHINES)): bin/machines/%.machine: test/nvml/machines/%.machine test/nvml/flat.awk $(wildcard test/nvml/machines/*.machine)
	@mkdir -p $(@D)
	@awk -v folder=test/nvml/machines -f test/nvml/flat.awk $< >$@

build/san/test/property/%: build/san/test/property/%.o
	@$(CC) $(SAN) -o $@ $^ $(LIBS)

build/rel/test/property/%: build/rel/test/property/%.o
	@$(CC) -o $@ $^ $(LIBS)

# Opens bin/libfrond.so, or another one, when it runs.
build/rel/test/slowest/slowest: $(patsubst %.c,build/rel/%.o,$(wildcard test/slowest/*.c))
	@$(CC) -o $@ $^

# Go does its own dependency tracking; the stamps only keep make from asking it when no source has changed.
bin/scheduler bin/lab bin/etcd: bin/%: $(GO_SRC)
	@test/tools/step.sh "build $@" go build -ldflags '$(GO_LDFLAGS)' -o $@ ./plugin/cmd/$*

# The scheduler that tests kill at chosen points. Upstream has no file with this tag, so nothing of it is compiled again.
bin/scheduler-faults: $(GO_SRC) | bin/scheduler
	@test/tools/step.sh "build $@" go build -tags failpoints -ldflags '$(GO_LDFLAGS)' -o $@ ./plugin/cmd/scheduler

$(KUBE:%=bin/%): bin/%: go.mod go.sum
	@test/tools/step.sh "build $@ (Kubernetes $(KUBE_VERSION))" \
		go build -ldflags '$(GO_LDFLAGS)' -o $@ k8s.io/kubernetes/cmd/$*

bin/kwok: go.mod
	@test/tools/step.sh "build $@ ($(KWOK_VERSION))" \
		env GOBIN=$(CURDIR)/bin go install -ldflags '-s -w' sigs.k8s.io/kwok/cmd/kwok@$(KWOK_VERSION)
	@touch $@

# One Go build at a time: each already uses every core, and two would compile the same packages twice.
bin/lab: | bin/scheduler
bin/etcd: | bin/lab
bin/kube-apiserver: | bin/etcd
bin/kube-controller-manager: | bin/kube-apiserver
bin/kubectl: | bin/kube-controller-manager
bin/kwok: | bin/kubectl

# ---- what users do --------------------------------------------------------------------------------------------------

demo: build ## from nothing to placed gangs: builds, starts a real control plane, places gangs, draws the map
	@bin/lab demo

down: ## stops what demo started
	@if [ -x bin/lab ]; then bin/lab down; fi

# ---- proof ----------------------------------------------------------------------------------------------------------

check: deps ## seconds, for while you write: format, headers, C unit suites, vet; last line: N passed, N failed
	@setpriv --pdeathsig TERM -- test/tools/test.sh --check

test: deps ## everything that CI runs; last line: N passed, N failed
	@setpriv --pdeathsig TERM -- test/tools/test.sh

fakes: $(FAKE) $(MACHINES) # the machines that nobody here owns: docs/probe.md

units: $(UNITS) $(FUZZ) $(FAKE) build/san/frond-sim build/san/frond-agent bin/frond-agent build/san/libfrond.so build/san/test/property/oracle build/rel/test/slowest/slowest # built by test.sh

proof: build ## the long proofs in full, resumable; writes docs/proof.md; DATA=DIR: real topologies and traces; PARTS='engine host' some
	@$(MAKE) --no-print-directory units build/rel/test/property/oracle build/rel/test/slowest/slowest
	@test/tools/proof.sh $(DATA)

coverage: deps ## line coverage of csrc/core, csrc/text, csrc/engine and csrc/probe; fails under 95 %
	@test/tools/coverage.sh

mutants: deps ## 200 random small mutations of the core, one at a time: how many do the tests notice?
	@test/tools/mutants.sh 200

bench: build fakes ## the engine in time, as a ratio to a memory scan, and in instructions; an idle agent; the plugin against upstream
	@test/tools/bench.sh
	@test/agent/idle.py bin/frond-agent 60
	@test/tools/step.sh "bench of the plugin" go test -count=1 -timeout 30m -run '^$$' -bench . -benchtime 1x ./test/bench

format: ## clang-format and gofmt over our sources
	@clang-format -i $$(git ls-files '*.c' '*.h') && gofmt -w plugin shim test manifests

clean: ## removes build/ and bin/ (a running lab is stopped first)
	@if [ -x bin/lab ]; then bin/lab down || true; fi
	@rm -rf build bin

.PHONY: help deps engine agent build demo down check test fakes units proof coverage mutants bench format clean

-include $(shell find build -name '*.d' 2>/dev/null)
