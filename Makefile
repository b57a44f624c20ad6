# Every target makes what it needs; the environment lives in .venv.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin

.PHONY: test demo lint types clean

$(VENV)/.installed: pyproject.toml
	test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	touch $@

test: $(VENV)/.installed
	$(RUN)/python -m pytest $(ARGS)

demo: $(VENV)/.installed
	$(RUN)/python examples/digits.py $(ARGS)

lint: $(VENV)/.installed
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .

# The type checker reads the installed package, which is what ships.
types: $(VENV)/.installed
	rm -rf build/types build/lib
	$(RUN)/python -m pip install -q --disable-pip-version-check --no-deps --target build/types .
	MYPYPATH=build/types $(RUN)/mypy -p tgraph.runtime -p tgraph.compiler $(ARGS)

clean:
	rm -rf build $(VENV)
