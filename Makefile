# Every target makes what it needs; the environment lives in .venv.
PYTHON ?= python3
JOBS ?= 2
VENV := .venv
RUN := $(VENV)/bin
INSTALL := $(RUN)/python -m pip install -q --disable-pip-version-check
# Built with what is installed, where that has what it takes.
ADD = $(INSTALL) $(if $(wildcard $(VENV)/.installed),--no-build-isolation)

# What the tests and benchmarks that compare with PyTorch are held to.
TORCH := torch==2.13.0

# Bytecode of tests is written beside them: each worker and each run rewrites all files else.
unexport PYTHONDONTWRITEBYTECODE

# An editable install has no bytecode, and where Python is told to write none, each process compiles
# all our files, which doubles the time of imports. Native code is made anew where its text changed.
prepare = $(1)/python -m compileall -q tgraph compiler runtime && \
	$(1)/python -m tgraph.runtime.make_prebuilt

.PHONY: test torch pythons consistency operations accuracy array-api conformance thirdparty demo examples bench cpus gpu gpu-sanitize nvrtc sanitize lint types clean

$(RUN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tgraph needs Python 3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(RUN)/python
	$(INSTALL) -e '.[dev]'
	touch $@

$(VENV)/.examples: pyproject.toml | $(RUN)/python
	$(ADD) -e '.[examples]'
	touch $@

# ARGS goes to pytest: make test ARGS="tests/test_ops.py -k softmax". Without, checks of tables
# against the code run before the other tests are collected.
test: $(VENV)/.installed
	$(call prepare,$(RUN))
	$(if $(ARGS),,$(RUN)/python -m pytest tests/consistency)
	$(RUN)/python -m pytest -n $(JOBS) --dist worksteal $(or $(ARGS),--ignore=tests/consistency)

# Tables, stubs, pages and imports against the code.
consistency: $(VENV)/.installed
	$(call prepare,$(RUN))
	$(RUN)/python -m pytest tests/consistency $(ARGS)

# Tests as on smaller processors than this one: see tests/cpus.py.
cpus: $(VENV)/.installed
	$(call prepare,$(RUN))
	$(RUN)/python tests/cpus.py -n $(JOBS) --dist worksteal $(ARGS)

# The same tests on other versions of Python, each in an environment of its own: see
# tests/pythons.py.
pythons: | $(RUN)/python
	$(RUN)/python tests/pythons.py -n $(JOBS) --dist worksteal $(ARGS)

# PyTorch, with which some tests compare; they skip without.
torch: $(VENV)/.torch
$(VENV)/.torch: Makefile $(VENV)/.installed
	$(INSTALL) $(TORCH)
	touch $@

demo: $(VENV)/.examples
	$(call prepare,$(RUN))
	$(RUN)/python examples/digits.py $(ARGS)

# Every example in its short form, as CI runs them, some at once.
examples: $(VENV)/.examples
	$(call prepare,$(RUN))
	printf '%s\n' $(wildcard examples/*.py) | xargs -P $(JOBS) -I{} sh -c \
		'said=$$($(RUN)/python {} --quick 2>&1); code=$$?; echo "{}:"; echo "$$said"; exit $$code'

# tgraph beside its peers, which have an environment of their own: see benchmarks/README.md.
bench: $(VENV)-bench/.installed
	$(call prepare,$(VENV)-bench/bin)
	$(VENV)-bench/bin/python -m benchmarks $(ARGS)

$(VENV)-bench/.installed: pyproject.toml
	test -x $(VENV)-bench/bin/python || $(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/python -m pip install -q --disable-pip-version-check -e . \
		setuptools $(TORCH) jax
	touch $@

# docs/operations.md: what each operation can do, found by running the tables of tests.
operations: $(VENV)/.installed
	$(RUN)/python -W ignore -m tools.operations --write docs/operations.md

# PyTorch's own cases run against tgraph, in the environment of the benchmarks: its ARGS, for example
# "modules --only GRU --verbose".
conformance: $(VENV)-bench/.installed
	$(INSTALL:$(RUN)%=$(VENV)-bench/bin%) expecttest
	$(VENV)-bench/bin/python -W ignore -m tools.conformance $(ARGS)

# docs/accuracy.md and what its test is held to: errors of functions beside mpmath's exact values,
# in the environment of the benchmarks. ARGS="lgamma erf" prints those of some functions instead.
accuracy: $(VENV)-bench/.installed
	$(INSTALL:$(RUN)%=$(VENV)-bench/bin%) mpmath
	$(VENV)-bench/bin/python -W ignore -m tools.accuracy $(or $(ARGS), \
		--page docs/accuracy.md --sample tests/accuracy/data/accuracy.npz)

# The official suite of the array API standard, from the folder SUITE that has a checkout of
# github.com/data-apis/array-api-tests with its submodule; MAX_EXAMPLES for each test.
MAX_EXAMPLES ?= 20
array-api: $(VENV)/.installed
	@test -d "$(SUITE)/array_api_tests" || { echo "make array-api SUITE=folder: no suite there"; exit 1; }
	$(INSTALL) ndindex pytest-json-report
	cd "$(SUITE)" && ARRAY_API_TESTS_MODULE=tgraph.array_api ARRAY_API_TESTS_VERSION=2024.12 \
		$(abspath $(RUN))/python -m pytest array_api_tests --max-examples $(MAX_EXAMPLES) \
		--disable-deadline --xfails-file=$(abspath tests/array_api/suite_xfails.txt) $(ARGS)

# Packages written for PyTorch, run with PyTorch and with tgraph, in an environment of their own.
thirdparty: $(VENV)-thirdparty/.installed
	$(VENV)-thirdparty/bin/python -W ignore -m tools.third_party $(ARGS)

$(VENV)-thirdparty/.installed: pyproject.toml tools/third_party/packages.txt
	test -x $(VENV)-thirdparty/bin/python || $(PYTHON) -m venv $(VENV)-thirdparty
	$(INSTALL:$(RUN)%=$(VENV)-thirdparty/bin%) -e . setuptools $(TORCH) requests
	$(INSTALL:$(RUN)%=$(VENV)-thirdparty/bin%) --no-deps -r tools/third_party/packages.txt
	touch $@

# The ladder, all tests that take a GPU and the GPU benchmark, with what PYTHON has installed: it
# makes no environment and needs no network. COMMIT names what a checkout without the data of git is
# of. See benchmarks/README.md.
gpu:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tgraph needs Python 3.11")'
	@$(PYTHON) tests/gpu.py $(if $(COMMIT),--commit "$(COMMIT)") $(ARGS)

# A sample of kernels on a GPU under compute-sanitizer.
gpu-sanitize:
	@$(MAKE) --no-print-directory gpu ARGS="--sanitize $(ARGS)"

# What compiles CUDA kernels without a GPU; tests that need it skip without.
nvrtc: $(VENV)/.nvrtc
$(VENV)/.nvrtc: pyproject.toml | $(RUN)/python
	$(ADD) -e '.[nvrtc]'
	touch $@

# Generated CUDA kernels on the CPU under sanitizers of addresses and of threads.
sanitize: $(VENV)/.installed
	$(RUN)/python -m pytest -m slow tests/cuda_target/test_sanitized.py \
		tests/cuda_target/test_convolution_cuda.py tests/cuda_target/test_scatter_cuda.py

lint: $(VENV)/.installed
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .

# The type checker reads the installed package, which is what ships.
types: $(VENV)/.installed
	rm -rf build/types build/lib
	$(ADD) --no-deps --target build/types .
	MYPYPATH=build/types $(RUN)/mypy --follow-imports=silent \
		-p tgraph.runtime -p tgraph.compiler $(ARGS)

clean:
	rm -rf build $(VENV)
