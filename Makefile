# freshbind: run `make help`.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
BIN := bin

# The race detector needs a C compiler; without one the tests run without it.
RACE := $(if $(shell command -v $(shell $(GO) env CC) 2>/dev/null),-race,)
# A program with the race detector would sleep for a second before it ends, and tests
# end hundreds of them.
export GORACE ?= atexit_sleep_ms=0
# A number of inputs: when a time is up, Go before 1.27 may call that a failure (golang/go#75804).
FUZZTIME ?= 10000x
GOVULNCHECK ?= v1.9.0

# Packages of tests on control planes that run at once: they mostly wait. Three take
# no less time on two CPUs: both are busy then, and who waits asks again meanwhile.
CLUSTER_PARALLEL ?= 2
# A wait for a condition is bounded in tests, and says what it waited for. This bounds a
# package, one of which takes half an hour, on a machine that is busy with something else.
# Go's own ten minutes are not enough there, even for unit tests that take one.
TEST_TIMEOUT := 4h
GO_TEST = $(GO) test -timeout $(TEST_TIMEOUT)
UNIT_TESTS = $(shell $(GO) list ./... | grep -v /test/)
# Nothing in these packages and in their tests starts a goroutine (test/suite checks it):
# the race detector would find nothing, and their tests take several times as long with it.
SEQUENTIAL := docs hack/markdown internal/advice internal/auditpage internal/checker internal/config internal/fields \
	internal/freshness internal/placement internal/revision internal/settings
# What such tests run is built by programs that they start, which go test knows
# nothing of: it may not take their results from its cache. The results are kept for
# make coverage, in a file by the name of the target that people call (RESULT).
RESULTS := .results
CLUSTER_TEST = mkdir -p $(RESULTS) && FRESHBIND_RACE=$(if $(RACE),1) \
	$(GO) tool -modfile=test/gotestsum/go.mod gotestsum --format standard-quiet --jsonfile $(RESULTS)/$(RESULT).json -- \
	-count=1 -timeout $(TEST_TIMEOUT) -p $(CLUSTER_PARALLEL)

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Its flags are those with which demo and tests build it: with others, all that it
# needs would be compiled once more. A release has its own.
.PHONY: build
build: ## Build the freshbind program into bin/, with its names as a plugin of kubectl.
	$(GO) build -o $(BIN)/freshbind ./cmd/freshbind
	@ln -sf freshbind $(BIN)/kubectl-freshbind
	@ln -sf freshbind $(BIN)/kubectl_complete-freshbind

.PHONY: demo
demo: ## The main job, on an embedded real control plane (DEMO_LAG, DEMO_LAG_ON, DEMO_ROUNDS, DEMO_UPSTREAM, DEMO_KEEP, DEMO_PLATFORM; KUBE_CONTEXT, DEMO_IMAGES, DEMO_WEBHOOK_HOST).
	@echo "demo: Go compiles it first, from empty caches for a minute or two, and then tells what else it builds"
	@$(GO) run ./hack/demo

# Tests on control planes mostly wait, and unit tests compute: they run side by side.
.PHONY: test
test: ## What a newcomer runs: unit tests, and the core of every property on real control planes (it says what it leaves out).
	@$(MAKE) --no-print-directory -j 2 unit-test short-test
	@$(GO) run ./test/suite left-out

.PHONY: short-test
short-test: RESULT := test
short-test: ## What make test runs on control planes.
	$(CLUSTER_TEST) $$($(GO) run ./test/suite short)

.PHONY: test-rest
test-rest: ## The tests that `make test` leaves out, as test/suite/tests.txt says.
	@$(MAKE) --no-print-directory -j 2 model-test rest-test

.PHONY: model-test
model-test: ## All states of both models; a result that still holds is not found again.
	@output=$$(FRESHBIND_MODEL=whole $(GO_TEST) -v ./test/model/cmd) || { echo "$$output"; exit 1; }; grep -E "^(All safeguards|ok)" <<<"$$output"

.PHONY: rest-test
rest-test: RESULT := test-rest
rest-test: ## What make test-rest runs on control planes.
	$(CLUSTER_TEST) $$($(GO) run ./test/suite rest)

.PHONY: test-all
test-all: test test-rest ## Everything that proves it: CI runs this.

# The loops end with make, also when it is interrupted.
BUSY_LOOPS ?= 4
.PHONY: test-busy
test-busy: ## make test-all beside BUSY_LOOPS loops that keep processors busy: what fails only there is a defect, too.
	@loops=(); trap 'kill "$${loops[@]}"' EXIT; \
	for ((i = 0; i < $(BUSY_LOOPS); i++)); do while :; do :; done & loops+=($$!); done; \
	$(MAKE) --no-print-directory test-all

.PHONY: coverage
coverage: ## Write docs/coverage.md from the last results of make test, make test-rest and make matrix: which test showed which promise, with which versions.
	@$(GO) run ./test/suite page $(RESULTS)/*.json >$(RESULTS)/coverage.md
	@mv $(RESULTS)/coverage.md docs/coverage.md

.PHONY: unit-test
unit-test: ## Tests that need nothing but Go.
	$(GO_TEST) $(RACE) $(filter-out $(SEQUENTIAL:%=github.com/freshbind/freshbind/%),$(UNIT_TESTS))
	$(GO_TEST) $(SEQUENTIAL:%=./%)
ifneq ($(RACE),)
	$(GO_TEST) -run TestMillionSteps ./routes
endif
	cd hack/release && $(GO_TEST) ./...
	cd hack/licenses && $(GO_TEST) ./...
	cd test/cel && $(GO_TEST) ./...
	cd test/poddefaults && $(GO_TEST) ./...
	cd test/alerts && $(GO_TEST) ./...
	cd test/routers && $(GO_TEST) ./...

.PHONY: chart
chart: ## Write the generated parts of the Helm chart: admission configuration, schema and table of values.
	$(GO) run ./hack/generate

.PHONY: chart-test
chart-test: ## The Helm chart with the real Helm, on a control plane beside agent-sandbox and cert-manager.
	FRESHBIND_RACE=$(if $(RACE),1) $(GO_TEST) -count=1 -v ./test/chart/...

.PHONY: scheduler-test
scheduler-test: ## The scheduler extender with the real kube-scheduler, beside agent-sandbox.
	FRESHBIND_RACE=$(if $(RACE),1) $(GO_TEST) -count=1 -v ./test/scheduler/...

.PHONY: image
image: ## The OCI image for amd64 and arm64 with its bill of materials, into dist/, without Docker (VERSION; PUSH, a registry; BASE, an OCI layout; CA_CERTIFICATES).
	cd hack/release && $(GO) run . -what image -version "$(VERSION)" -push "$(PUSH)" -base "$(BASE)" -ca-certificates "$(CA_CERTIFICATES)"

.PHONY: release
release: ## All of a release, into dist/: image, chart, manifests, plugin of kubectl, checksums, and signatures of them (VERSION=v1.2.3; KEY, a file or SCHEME://…).
	cd hack/release && $(GO) run . -what release -version "$(VERSION)" -key "$(if $(findstring ://,$(KEY)),$(KEY),$(abspath $(KEY)))" -base "$(BASE)" -ca-certificates "$(CA_CERTIFICATES)" -helm "$$(cd ../.. && $(GO) run ./hack/tools helm)"

.PHONY: upstream-test
upstream-test: ## Every release of agent-sandbox, with and without late caches: no stale bind, every claim ready, no ghosts (UPSTREAM=v1.0.3).
	FRESHBIND_RACE=$(if $(RACE),1) $(GO_TEST) -count=1 -v -run 'TestClaimsRightAfterUpdates/$(UPSTREAM)' ./test/integration

.PHONY: matrix
matrix: ## The core of the tests on each Kubernetes that is claimed, and the guard with each agent-sandbox; prints a table (MATRIX=v1.30.14,agent-sandbox@v0.5.3; FRESHBIND_UPDATE_DOCS=1 puts it into docs/matrix.md).
	@FRESHBIND_RACE=$(if $(RACE),1) MATRIX_RESULTS=$(RESULTS) $(GO) run ./hack/matrix

.PHONY: storm
storm: ## One storm of claims, template changes, deletes, restarts and a hostile tenant (STORM_SEED, STORM_CLAIMS, STORM_UPSTREAM; in test-rest STORM_TEST_SEEDS, STORM_TEST_CLAIMS).
	@$(GO) run ./test/storm

.PHONY: chaos
chaos: ## What Freshbind stands on is broken, piece by piece; prints a table of faults and invariants for each platform (FRESHBIND_CHAOS=long makes more of each fault).
	FRESHBIND_RACE=$(if $(RACE),1) $(GO_TEST) -count=1 -v -run Chaos ./test/chaos

.PHONY: model
model: ## Every order of writes in a small cluster, with the guard's own rules, and every order of events in a rollout, with the planner itself: what happens without each safeguard, and that nothing does with all.
	@$(GO) run ./test/model/cmd

.PHONY: mutants
mutants: ## Each check broken in turn: a named unit test has to fail (MUTANTS, a regular expression, chooses; MUTANTS_SAMPLE, a commit, takes a part).
	@$(GO) run ./hack/mutants

CONDITION_PACKAGES = ./internal/revision ./internal/freshness ./internal/liveread ./internal/placement ./internal/settings ./internal/platform/... ./webhooks

.PHONY: conditions
conditions: ## Each condition of PACKAGES (of the guard, if not set) forced to true and to false: a unit test has to fail (CONDITIONS, a regular expression, chooses).
	@$(GO) run ./hack/mutants $(or $(PACKAGES),$(CONDITION_PACKAGES))

.PHONY: pure-coverage
pure-coverage: ## How much of each package that decides on values its own tests run; fails below 95 % of the statements.
	@$(GO) run ./hack/purecoverage

.PHONY: fuzz
fuzz: ## Each fuzz target with FUZZTIME inputs, two targets at a time.
	@grep -roE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' --exclude-dir=test --exclude-dir=hack . | sed -E 's|/[^/]*:func | |' | sort | \
	  xargs -P 2 -L 1 bash -c 'echo "fuzz: $$1 in $$0, $(FUZZTIME)"; \
	  $(GO) test -run "^$$" -fuzz "^$$1$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x -parallel 1 $$0'

.PHONY: bench
bench: ## Benchmarks: of the packages, or BENCH=bind|hostile|memory|pools|ready|rollout|scheduler|sustained|all beside their aims, on a real control plane (BENCH_MEMBERS, BENCH_PAIRS, BENCH_POOLS, BENCH_LAG, BENCH_LATE; FRESHBIND_UPDATE_DOCS=1 writes docs/benchmarks.md).
ifeq ($(BENCH),)
	$(GO) test -run '^$$' -bench . -benchmem ./internal/... ./controllers/... ./scheduler
else
	@BENCH=$(BENCH) $(GO) run ./hack/bench
endif

.PHONY: lint
lint: ## Linters (built from Go modules on first use), and modules that are not tidy.
	$(GO) tool -modfile=test/lint/go.mod golangci-lint run ./...
	@for mod in . $$(grep -l 'github.com/freshbind/freshbind => ' hack/*/go.mod test/*/go.mod | xargs -n 1 dirname); do \
	  echo "cd $$mod && $(GO) mod tidy -diff"; (cd $$mod && $(GO) mod tidy -diff) || exit 1; \
	done

.PHONY: prose
prose: ## The linter of prose, with the rules of test/prose (it is built from Go modules, and needs a C compiler).
ifneq ($(RACE),)
	$(GO) tool -modfile=test/prose/go.mod vale --no-global --output=line *.md docs charts/*/README.md
else
	@echo "NOT CHECKED: vale needs a C compiler, and $$($(GO) env CC) is not here"
endif

.PHONY: licenses
licenses: ## The license of every module that is part of what is shipped; fails where one may not be.
	@cd hack/licenses && $(GO) run .

.PHONY: vulncheck
vulncheck: ## Known vulnerabilities that the program can reach (needs the internet; SECURITY.md says when to run it).
	$(GO) run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) ./...

.PHONY: tools
tools: ## Build what tests and demo need, ahead of time.
	$(GO) run ./hack/tools etcd kube-apiserver kwok kube-controller-manager kube-scheduler helm cert-manager agent-sandbox@v1.0.3

.PHONY: clean
clean: ## Remove what was built here (the cache of tools stays).
	rm -rf $(BIN) dist .demo
