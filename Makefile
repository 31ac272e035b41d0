# make demo    shows brlb balancing real traffic, in a network of its own
# make test    runs every test; installs what the machine lacks
# make help    lists all targets

BRLB := bin/brlb

# What needs network namespaces runs as root.
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
AS_ROOT := $(if $(SUDO),-exec 'sudo --preserve-env',)

UNIT = $(shell go list ./... | grep -v '/integration')

# Programs that .ci/install fetches are in bin.
export PATH := $(CURDIR)/bin:$(PATH):/usr/sbin:/sbin

.PHONY: help
help: ## lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## builds bin/brlb
	CGO_ENABLED=0 go build -trimpath -o $(BRLB) ./cmd/brlb

.PHONY: demo
demo: build ## shows brlb at work in a private network, under a minute
	.ci/install demo
	$(SUDO) $(BRLB) demo

.PHONY: install
install:
	.ci/install test

.PHONY: test
test: install test-unit test-fuzz test-integration ## runs every test

.PHONY: test-unit
test-unit: ## runs unit tests and fuzz seeds, with the race detector
	BRLB_LAB_REQUIRED=1 go test -race -shuffle=on $(AS_ROOT) $(UNIT)

# What fuzzing finds is kept under testdata/fuzz of the package, as a seed.
.PHONY: test-fuzz
test-fuzz: ## runs every fuzz target on 5,000 inputs
	@for file in $$(grep -rl --include='*_test.go' '^func Fuzz' . | sort); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$file); do \
			echo "fuzzing $$file $$target"; \
			go test -run='^$$' -fuzz="^$$target\$$" -fuzztime=5000x -fuzzminimizetime=10x $$(dirname $$file) || exit 1; \
		done; \
	done

# One package after the other: each has an Open vSwitch of its own, and their
# loads would disturb each other.
.PHONY: test-integration
test-integration: ## runs the tests on Open vSwitch: private, in a container, in a guest
	BRLB_LAB_REQUIRED=1 go test -count=1 -p=1 -timeout=30m $(AS_ROOT) ./integration/...

.PHONY: test-kernel
test-kernel: install ## runs scenarios on the kernel's datapath, in an emulated guest
	BRLB_LAB_REQUIRED=1 go test -count=1 -v -timeout=30m $(AS_ROOT) ./integration/kernel

# The layout; what 10,000 probes a second cost; and then in turn brlb, raw octets and
# ovs-ofctl on a private switch.
.PHONY: bench
bench: ## measures layout, probes, table and change of one member, beside ovs-ofctl
	.ci/install demo
	go test -run='^$$' -bench='V1/M=1024/N=4/' -benchmem ./maglev
	go test -run='^$$' -bench=BenchmarkProber -benchtime=1x $(AS_ROOT) ./health
	go test -run='^$$' -bench=. -skip=Scale -benchtime=200x -timeout=30m $(AS_ROOT) ./integration
	go test -run='^$$' -bench=Scale -benchtime=3x -timeout=10m $(AS_ROOT) ./integration

.PHONY: bench-datapath
bench-datapath: install ## measures brlb beside HAProxy and nftables on the kernel's datapath, in a guest
	BRLB_LAB_REQUIRED=1 go test -run='^$$' -bench=Datapath -benchtime=1x -timeout=30m $(AS_ROOT) ./integration/kernel

.PHONY: lint
lint: ## checks format and code
	@test -z "$$(gofmt -l .)" || { echo "not formatted: $$(gofmt -l . | tr '\n' ' ')"; exit 1; }
	go vet ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

.PHONY: clean
clean: ## removes what was built
	rm -rf bin

# Short forms for a running brlb.

.PHONY: health slots reapply verify
health: build ## shows services, members and their health
	$(BRLB) status
slots: build ## shows the slot tables
	$(BRLB) slots
reapply: build ## makes the switch hold what it should
	$(BRLB) reapply
verify: build ## checks the switch against every promise
	$(BRLB) verify

.PHONY: drain enable
drain: build ## takes a member out gently: make drain M=be1
	$(BRLB) drain $(or $(M),$(error which member? for example: make drain M=be1))
enable: build ## takes a member back in: make enable M=be1
	$(BRLB) enable $(or $(M),$(error which member? for example: make enable M=be1))

.PHONY: trace
trace: build ## shows where a connection goes: make trace SRC=10.20.0.10 SPORT=40000 SEG=p2
	$(BRLB) trace $(if $(SRC),--src $(SRC)) $(if $(SPORT),--sport $(SPORT)) $(if $(SEG),--seg $(SEG))
