# Everything a person or CI does here. `make help` lists it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# PYTHON=path chooses the interpreter; otherwise the first of these that is Python 3.11.
IS_311 := import sys; sys.exit(sys.version_info[:2] != (3, 11))
PYTHON ?= $(shell for name in python3.11 python3; do \
	"$$name" -c '$(IS_311)' 2>/dev/null && { echo "$$name"; break; }; done)
# TORCH_INDEX=url: a package index that has torch's CPU wheels.
TORCH_INDEX ?=
# Tests start processes and threads of their own: more workers than cores only add noise.
JOBS ?= 2
# VARIANT=cuda, TAG=name:tag, BASE=image, PUSH=registry/name: of the image.
VARIANT ?=
TAG ?=
BASE ?=
PUSH ?=
# ARGS="-k words": more arguments for pytest, a benchmark or a proof.
ARGS ?=
# N=count: how often a proof or a benchmark repeats.
N ?=

BIN := .venv/bin
TORCH := $(shell sed -nE 's/.*"torch==([0-9.]+)".*/\1/p' pyproject.toml)
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder
# Its theme announces on every build that it will be superseded; the lock holds the one we use.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs
DEMO := $(CURDIR)/build/demo
BENCHMARKS := loop distributed feed checkpoint resume snapshot validate drift evaluate pipeline trigger warm-start advice tune
PROOFS := kills nodes steps checkpoints bad-data clean-flights bugs decisions promotions optimism lease-fights triggers

##@ Use

.PHONY: demo
demo: venv ## Run examples/flights twice: three months (cold start), then a fourth (challenger)
	@rm -rf "$(DEMO)"
	@echo "--- January to March 2013 arrive"
	@$(BIN)/python examples/flights/prepare.py --data "$(DEMO)/data" --months 1-3
	@EVERTRAIN_HOME="$(DEMO)/home" $(BIN)/evertrain run examples/flights --data "$(DEMO)/data"
	@echo "--- April 2013 arrives"
	@$(BIN)/python examples/flights/prepare.py --data "$(DEMO)/data" --months 4
	@EVERTRAIN_HOME="$(DEMO)/home" $(BIN)/evertrain run examples/flights --data "$(DEMO)/data"

.PHONY: image
image: ## Build the container image (VARIANT=cuda, TAG=name:tag, BASE=image, PUSH=registry/name)
	@$(firstword $(wildcard $(BIN)/python) $(PYTHON)) -m infra.image.build \
		$(if $(VARIANT),--torch $(VARIANT)) $(if $(TAG),--tag $(TAG)) \
		$(if $(BASE),--base $(BASE)) $(if $(PUSH),--push $(PUSH))

##@ Develop

.PHONY: venv
venv: .venv/.installed ## Make .venv with the locked dependencies (the other targets do it themselves)

.PHONY: test
test: venv ## Run the tests (ARGS="-k words" to choose, JOBS=4 for more workers)
	@$(PYTEST) -m "not smoke" $(ARGS)

.PHONY: smoke
smoke: venv ## Run every proof and benchmark in its short form, pages in a browser, real servers
	@$(PYTEST) -m "smoke and not containers" $(ARGS)

.PHONY: containers
containers: venv ## Build the image and run its tests: every step in a container (needs make engine)
	@$(BIN)/python -m pytest -m containers tests/containers $(ARGS)

.PHONY: lint
lint: venv ## Check style, formatting, types and the import contract
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: format
format: venv ## Mend style and formatting in place
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: docs
docs: venv ## Write what is generated (READMEs, schemas, reference), and build the site into build/site
	@$(BIN)/python -m pipelines.describe
	@$(MKDOCS) build --strict # not --quiet: warnings that are not shown are not counted either
	@echo "build/site: $$(find build/site -name '*.html' | wc -l) pages; make docs-serve shows them"

.PHONY: docs-serve
docs-serve: venv ## Show the site at http://127.0.0.1:8000, and anew when a page changes
	@$(MKDOCS) serve --strict

.PHONY: lock
lock: ## Renew constraints.txt: the newest versions that pyproject.toml allows
	@rm -rf build/lock && mkdir -p build
	@$(call make_venv,build/lock)
	@$(call install,build/lock,)
	@{ sed -n '/^#/p' constraints.txt; \
		build/lock/bin/python -m pip freeze --all --exclude-editable --exclude pip \
		| grep -vE '^(nvidia-|cuda-|triton==)' \
		| sed -E 's/^(torch==[0-9.]+)\+.*/\1/'; } > build/constraints.txt
	@! grep -n ' @ ' build/constraints.txt \
		|| $(call fail,a package above was not installed from an index,see which package names a path or an address)
	@diff constraints.txt build/constraints.txt || true
	@mv build/constraints.txt constraints.txt
	@rm -rf build/lock

.PHONY: clean
clean: ## Remove what was built, .venv included; data and runs of the examples stay
	@rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

##@ Machine

.PHONY: browser
browser: ## Install Chromium and its driver where they are missing (Debian, Ubuntu); tests of the report open it
	@if $(call any_of,chromedriver) && $(call any_of,chromium); then exit 0; fi; \
	$(call apt_install,chromium chromium-driver fonts-liberation,Chromium)

.PHONY: servers
servers: ## Install PostgreSQL and promtool where they are missing (Debian, Ubuntu); tests start servers of their own
	@if $(call any_of,initdb) || compgen -G '/usr/lib/postgresql/*/bin/initdb' > /dev/null; then exit 0; fi; \
	$(call apt_install,postgresql,PostgreSQL)
	@if $(call any_of,promtool); then exit 0; fi; \
	$(call apt_take,prometheus,usr/bin/promtool,promtool)

.PHONY: engine
engine: ## Install a Docker engine and debootstrap where they are missing (Debian, Ubuntu)
	@missing=(); \
	$(call any_of,dockerd) || missing+=(docker.io); \
	$(call any_of,debootstrap) || missing+=(debootstrap); \
	$(call any_of,docker-registry registry) || missing+=(docker-registry); \
	[ "$${#missing[@]}" = 0 ] || { $(call apt_install,"$${missing[@]}",a Docker engine); }

##@ Measure

.PHONY: bench
bench: $(BENCHMARKS:%=bench-%) ## Run every benchmark

.PHONY: $(BENCHMARKS:%=bench-%)
$(BENCHMARKS:%=bench-%): bench-%: venv
	@$(BIN)/python -m benchmarks.$(subst -,_,$*) $(if $(N),--count $(N)) $(ARGS)

bench-loop bench-distributed: peers

.PHONY: bench-gpu
bench-gpu: venv ## Measure on a GPU: by hand, no part of `make bench`
	@$(BIN)/python -m benchmarks.gpu $(if $(N),--count $(N)) $(ARGS)

.PHONY: peers
peers: build/peers/.installed ## Install the trainers that ours is measured beside, outside .venv

.PHONY: prove
prove: $(PROOFS:%=prove-%) ## Run every proof (N=count for how often)

.PHONY: $(PROOFS:%=prove-%)
$(PROOFS:%=prove-%): prove-%: venv
	@$(BIN)/python -m tests.proofs.$(subst -,_,$*) $(N) $(ARGS)

.PHONY: help
help: ## Show this
	@awk -F ':.*## ' ' \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "Benchmarks: $(BENCHMARKS:%=make bench-%)"
	@echo "Proofs:     $(PROOFS:%=make prove-%)"

.venv/.installed: pyproject.toml constraints.txt
	@if [ -d .venv ] && ! .venv/bin/python -c '$(IS_311)' 2>/dev/null; then rm -rf .venv; fi
	@[ -d .venv ] || { $(call make_venv,.venv); }
	@$(call install,.venv,-c constraints.txt)
	@touch $@

# Without dependencies: torch and all that .venv has comes from there.
build/peers/.installed: benchmarks/requirements.txt | .venv/.installed
	@rm -rf build/peers && mkdir -p build/peers
	@echo "installing the peers ($<)"
	@$(BIN)/python -m pip --disable-pip-version-check --no-input install -q --no-deps \
		--target build/peers -r $< \
		|| $(call fail,pip could not install the peers,is the package index in reach? Without peers: $(BIN)/python -m benchmarks.loop --without-peers)
	@touch $@

# fail(what, hint): the form of every error here.
fail = { printf 'error: %s\n\nhint: %s\n' '$(1)' '$(2)' >&2; exit 2; }

# any_of(names): is one of these programs there?
any_of = (for name in $(1); do command -v "$$name" > /dev/null && exit 0; done; exit 1)

# make_venv(folder)
define make_venv
[ -n "$(PYTHON)" ] && "$(PYTHON)" -c '$(IS_311)' 2> /dev/null \
	|| $(call fail,Python 3.11 is needed$(comma) and $(or $(PYTHON),neither python3.11 nor python3) is not that,install Python 3.11$(comma) or say where it is: make venv PYTHON=/path/to/python3.11); \
echo "making $(1) with $$($(PYTHON) --version)"; \
"$(PYTHON)" -m venv "$(1)" \
	|| { rm -rf "$(1)"; $(call fail,$(PYTHON) cannot make a virtual environment,on Debian and Ubuntu: apt-get install python3-venv); }
endef

# install(venv, constraints): torch first, because any other requirement of it would bring the
# newest CUDA build, which is gigabytes; then the rest, which finds it there and keeps it.
define install
pip="$(1)/bin/python -m pip --disable-pip-version-check --no-input install"; \
if { command -v nvidia-smi && nvidia-smi -L; } &> /dev/null; then \
	echo "installing torch $(TORCH) (there is an NVIDIA driver)"; \
	$$pip -q "torch==$(TORCH)" $(2); \
else \
	echo "installing torch $(TORCH) (CPU)"; \
	$$pip -q $(if $(TORCH_INDEX),--extra-index-url "$(TORCH_INDEX)") "torch==$(TORCH)+cpu" $(2) 2> /dev/null || { \
		echo "  no CPU wheel in reach: taking the standard one (TORCH_INDEX=url names an index that has it)"; \
		$$pip -q "torch==$(TORCH)" $(2); }; \
fi; \
echo "installing the rest"; \
count=0; log="$(1)/install.log"; \
$$pip -e '.[examples,dev]' $(2) 2>&1 | tee "$$log" | while read -r verb name rest; do \
	case "$$verb $$name" in \
	"Collecting "*) count=$$((count + 1)); [ ! -t 1 ] || printf '\r\033[K  %s: %s' "$$count" "$$name";; \
	"Installing collected") [ ! -t 1 ] || printf '\r\033[K'; echo "  $$((count + 1)) packages";; \
	esac; \
done || { grep -v ^WARNING "$$log" | tail -n 20 >&2; \
	$(call fail,pip could not install the dependencies (above is the end of $(1)/install.log),is the package index in reach?); }
endef

# apt_install(packages, what)
define apt_install
command -v apt-get > /dev/null \
	|| $(call fail,$(2) is not installed$(comma) and there is no apt-get to install it with,install $(2) with the package manager of this machine); \
sudo=; \
if [ "$$(id -u)" != 0 ]; then \
	command -v sudo > /dev/null || $(call fail,$(2) is not installed$(comma) and only root may install it,run as root: make $@); \
	sudo=sudo; \
fi; \
echo "installing $(2)"; \
$$sudo apt-get update -qq; \
$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(1) > /dev/null
endef

# apt_take(package, file, what): one program of a package whose server nobody wants here.
define apt_take
command -v apt-get > /dev/null \
	|| $(call fail,$(3) is not installed$(comma) and there is no apt-get to get it with,put $(3) somewhere in PATH); \
sudo=; \
if [ "$$(id -u)" != 0 ]; then \
	command -v sudo > /dev/null || $(call fail,$(3) is not installed$(comma) and only root may install it,run as root: make $@); \
	sudo=sudo; \
fi; \
echo "installing $(3)"; \
$$sudo apt-get update -qq; \
folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; cd "$$folder"; \
apt-get download -qq $(1) 2> /dev/null \
	|| $(call fail,apt-get could not download the package $(1),is the package index in reach?); \
dpkg-deb -x $(1)_*.deb .; \
$$sudo install $(2) /usr/local/bin/
endef

comma := ,
