# reboot-operator. Run `make help` for the targets.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

MODULE  := github.com/reboot-operator/reboot-operator
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# Images of the manager and the agent, for docker-build and deploy. Releases are published under
# this name.
IMAGES    := ghcr.io/reboot-operator
IMG       ?= $(IMAGES)/manager:$(VERSION)
AGENT_IMG ?= $(IMAGES)/agent:$(VERSION)
# The manifests that deploy applies (docs/install.md). If empty, deploy chooses those that fit the
# version of the API server, and undeploy removes either.
CONFIG ?=
# Folders of config/components to add, such as "manage-agents kernel".
COMPONENTS ?=
export COMPONENTS
# The folder in which build puts the programs.
BIN ?= bin
# The time for which each fuzz target runs.
FUZZTIME ?= 30s

CONTAINER_TOOL ?= docker
export KUBECTL ?= $(shell command -v kubectl || echo bin/k8s/kubectl)
# The tools are pinned in hack/tools/go.mod, and Go builds them on first use. `go run` reads
# GOFLAGS, and so shares compiled packages with the tests, unlike `go tool`.
TOOL          := go run -modfile=hack/tools/go.mod
CONTROLLER_GEN = $(TOOL) sigs.k8s.io/controller-tools/cmd/controller-gen
GOLANGCI_LINT  = $(TOOL) sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter

# Everything, including tests, is built with the flags of the shipped programs, so that no package
# is compiled twice. -X sets the version from git. The checkout may belong to another user.
export CGO_ENABLED := 0
export GOFLAGS += -trimpath -buildvcs=false

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"} \
		/^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*##/ {printf "  \033[36m%-16s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# make is replaced by the demo itself, so that a signal to make ends the demo in order.
.PHONY: demo
demo: ## Reboot a simulated cluster, in which only the machines are not real. ENGINE=rpm-ostree NODES=5 MAX_UNAVAILABLE=1 KEEP=1
	@echo "Building the demo. On a new machine this takes a few minutes."
	@go build -o bin/demo ./hack/demo
	@exec bin/demo $(if $(ENGINE),--engine=$(ENGINE)) $(if $(NODES),--nodes=$(NODES)) $(if $(MAX_UNAVAILABLE),--max-unavailable=$(MAX_UNAVAILABLE)) $(if $(KEEP),--keep) $(ARGS)

##@ Development

.PHONY: generate
generate: ## Generate the DeepCopy methods.
	@$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/...

.PHONY: manifests
manifests: ## Generate the CustomResourceDefinition, docs/api.md and the chart's manifests.
	@$(CONTROLLER_GEN) crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	@go run ./hack/chart
	@go test -count=1 -run '^TestAPI$$' ./docs -update

.PHONY: picture
picture: ## Write docs/demo.svg, an animated picture of make demo.
	@$(MAKE) --no-print-directory demo ARGS=--picture=docs/demo.svg

.PHONY: fmt
fmt: ## Format the Go code.
	@$(GOLANGCI_LINT) fmt

.PHONY: vet
vet: ## Run go vet.
	@go vet ./...

.PHONY: lint
lint: ## Run the linters of .golangci.yml and of the workflows.
	@$(GOLANGCI_LINT) run
	@$(TOOL) github.com/rhysd/actionlint/cmd/actionlint .github/workflows/*.yaml

.PHONY: lint-fix
lint-fix: ## Run the linters and apply their fixes.
	@$(GOLANGCI_LINT) run --fix

.PHONY: verify
verify: ## Fail if generated code, manifests or go.mod are out of date.
	@hack/verify.sh

.PHONY: controlplane
controlplane: ## Download or build etcd, kube-apiserver, the controllers, kubectl and kwok into bin/k8s, once. KUBE_MIRROR=https://…
	@hack/controlplane/build.sh

.PHONY: prometheus
prometheus: ## Build prometheus and promtool into bin/prometheus, once. Some tests are skipped without them.
	@hack/prometheus/build.sh

.PHONY: helm
helm: ## Build helm into bin/helm, once. The tests of the chart are skipped without it.
	@hack/helm/build.sh

.PHONY: test
test: ## Run lint, verify and the tests of all packages, with shortened searches. Do this before you push.
	@hack/test.sh

.PHONY: ci
ci: ## Run what CI runs: test, full searches, the race detector, simulation, the demo, chaos, and real nodes if they can run here.
	@hack/ci.sh

.PHONY: e2e
e2e: ## Reboot machines with real systemd and kubelets, as containers. Skipped without root and Debian's packages. ARGS=-ginkgo.focus=inhibitor
	@exec hack/e2e/run.sh $(ARGS)

.PHONY: bench
bench: controlplane ## Measure the operator, and write docs/benchmarks.md. ARGS=--only=reboots ARGS=--strict
	@go build -o bin/bench ./hack/bench
	@exec bin/bench --docs=docs/benchmarks.md $(ARGS)

.PHONY: limits
limits: controlplane ## Run a thousand reboots of one node, floods of ten thousand, and SIGTERM in every phase, and write docs/limits.md. REBOOTS=1000 FLOOD=10000
	@REBOOTS=$(or $(REBOOTS),1000) FLOOD=$(or $(FLOOD),10000) hack/limits/limits.sh

.PHONY: chaos
chaos: controlplane ## Run seeded schedules of faults on real API servers, and judge each run. SEED=42 WORKERS=2 ARGS=--schedules=66
	@go build -o bin/chaos ./hack/chaos
	@exec bin/chaos $(if $(SEED),--first=$(SEED) --schedules=1) $(if $(WORKERS),--workers=$(WORKERS)) $(ARGS)

.PHONY: versions
versions: ## Test permissions, CEL rules and a reboot on each supported minor version of Kubernetes. VERSIONS="1.31 1.34"
	@VERSIONS="$(VERSIONS)" hack/versions/run.sh

.PHONY: soak
soak: ## Run simulation and chaos from a new first seed, fuzz targets, limits and benchmarks. SEEDS=2000 SECONDS_AT_MOST=3600 FUZZTIME=10m; SEED=42 replays one seed
	@FUZZTIME=$(FUZZTIME) exec hack/soak.sh

.PHONY: simulation
simulation: ## Run the operator in simulated clusters with faults, each for weeks of virtual time. SEEDS=2000 SECONDS_AT_MOST=3600 NODES=5000; SEED=42 prints the story of one
	@NODES=$(NODES) SEED=$(SEED) exec hack/simulation/run.sh

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME. FUZZTIME=30s ONLY=agent/host
	@FUZZTIME=$(FUZZTIME) exec hack/fuzz.sh '$(ONLY)'

##@ Build

.PHONY: build
build: build-plugin ## Build static bin/manager, bin/agent and bin/kubectl-reboot. GOOS and GOARCH select the platform.
	@go build -ldflags '-s -w -X $(MODULE)/controllers.Version=$(VERSION)' -o $(BIN)/manager .
	@go build -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN)/agent ./agent

.PHONY: build-plugin
build-plugin: ## Build only bin/kubectl-reboot, which also runs on macOS and Windows.
	@go build -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN)/kubectl-reboot$$(go env GOEXE) ./kubectl-reboot

.PHONY: docs
docs: ## Build the documentation site in dist/site. Needs npm. SITE_BASE=/reboot-operator/ is its path on the server
	@hack/site/build.sh

.PHONY: links
links: ## Check the documentation's links to other sites. Needs internet access.
	@EXTERNAL_LINKS=1 go test -count=1 -run '^TestExternalLinks$$' ./docs

.PHONY: release
release: ## Build images, manifests, chart and plugin of a release in dist/VERSION, from the tag that is checked out.
	@hack/release.sh $(VERSION) dist/$(VERSION)

.PHONY: publishers
publishers: ## Build cosign and helm into bin/publishers, for the release workflow.
	@hack/helm/build.sh "$(CURDIR)/bin/publishers"
	@go -C hack/cosign build -ldflags '-s -w' -o "$(CURDIR)/bin/publishers/" github.com/sigstore/cosign/v3/cmd/cosign

.PHONY: clean
clean: ## Remove build results, except what takes long to build: control planes, Prometheus, helm, Karpenter, machines, axe-core.
	@rm -rf dist
	@find bin -mindepth 1 -maxdepth 1 ! -name k8s ! -name versions ! -name prometheus ! -name helm ! -name neighbours ! -name e2e ! -name browser -exec rm -rf {} + 2>/dev/null || true

.PHONY: clean-all
clean-all: ## Remove all build results.
	@rm -rf bin dist

.PHONY: run
run: install ## Run the manager here, against the cluster of KUBECONFIG.
	@go run . --namespace=reboot-operator-system --metrics-bind-address=:8080 --metrics-secure=false --leader-elect=false $(ARGS)

.PHONY: docker-build
docker-build: ## Build the images IMG and AGENT_IMG.
	@$(CONTAINER_TOOL) build --build-arg VERSION=$(VERSION) --target manager -t $(IMG) .
	@$(CONTAINER_TOOL) build --build-arg VERSION=$(VERSION) --target agent -t $(AGENT_IMG) .

.PHONY: build-installer
build-installer: ## Write dist/install.yaml with everything that deploy applies, with IMG and AGENT_IMG. CONFIG=config/default
	@mkdir -p dist
	@hack/manifest.sh $(or $(CONFIG),config/default) $(IMG) $(AGENT_IMG) >dist/install.yaml

##@ Security

.PHONY: security
security: ## Run all targets below, and list the results (docs/security.md).
	@hack/security.sh

.PHONY: security-attempts
security-attempts: controlplane ## Test what stolen tokens allow, and write docs/security-attempts.md and config/attempts.md.
	@go test -count=1 ./config -update

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in reachable code. VULNDB=file:///… is a copy of the database.
	@VULNDB=$(VULNDB) hack/vulncheck.sh

.PHONY: sbom
sbom: build ## Write bills of materials of all programs to dist/*.cdx.json (CycloneDX).
	@VERSION=$(VERSION) hack/sbom.sh

.PHONY: reproducible
reproducible: ## Build everything twice, with the Makefile and the Dockerfile, and compare the results.
	@hack/reproducible.sh

.PHONY: scan
scan: ## Fail if image archives contain anything but one program, such as setuid files, shells or package managers. IMAGES=dist/manager.tar
	@hack/scan.sh $(IMAGES)

##@ Deployment

.PHONY: install
install: ## Install the CustomResourceDefinition into the cluster of KUBECONFIG.
	@$(KUBECTL) apply --server-side -k config/crd

.PHONY: uninstall
uninstall: ## Remove the CustomResourceDefinition and all policies.
	@$(KUBECTL) delete --ignore-not-found -k config/crd

.PHONY: deploy
deploy: ## Deploy the operator with IMG and AGENT_IMG to the cluster of KUBECONFIG, with the manifests that fit its version.
	@hack/deploy.sh $(IMG) $(AGENT_IMG) $(CONFIG)

.PHONY: undeploy
undeploy: ## Remove all policies, and then the operator.
	@hack/undeploy.sh $(CONFIG)
