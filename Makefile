# `make demo` and `make test` are all that a new checkout needs: each creates .venv
# and installs what it uses, once per change of the dependencies.
OSEQ_PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
PYTHON := $(VENV)/bin/python
PIP_INSTALL := $(PYTHON) -m pip install --quiet --disable-pip-version-check

DEMO := example_configs/text2text/cldr
DEMO_CONFIG := $(DEMO)/en-de-transformer.py
DEMO_CORPUS := data/cldr-en-de
DEMO_RUN := runs/cldr-en-de
DEMO_OUTPUT := $(DEMO_RUN)/test.out.de

.PHONY: help demo test lint format bench clean

help:
	@echo "make demo    generate a corpus, train a Transformer on it, translate, score"
	@echo "make test    run the test suite"
	@echo "make lint    ruff and mypy"
	@echo "make format  let ruff rewrite the sources"
	@echo "make bench   measure the speed of training and decoding"
	@echo "make clean   remove the demo's run and corpus, and the tools' caches"

$(PYTHON):
	$(OSEQ_PYTHON) -m venv $(VENV)

$(VENV)/installed-demo: setup.cfg pyproject.toml | $(PYTHON)
	@echo "Installing oseq and TensorFlow into $(VENV)"
	$(PIP_INSTALL) --editable '.[demo]'
	touch $@

$(VENV)/installed-dev: setup.cfg pyproject.toml | $(PYTHON)
	@echo "Installing oseq, TensorFlow and the development tools into $(VENV)"
	$(PIP_INSTALL) --editable '.[demo,dev]'
	touch $@

# The files of one corpus appear together; the last one written stands for all.
$(DEMO_CORPUS)/test.de: $(DEMO)/make_corpus.py | $(VENV)/installed-demo
	$(PYTHON) $< --source-locale en --target-locale de --output $(DEMO_CORPUS)

# An interrupted training continues where it was.
$(DEMO_OUTPUT): $(DEMO_CONFIG) $(DEMO_CORPUS)/test.de | $(VENV)/installed-demo
	$(PYTHON) run.py --config_file=$< --mode=train_eval --resume=auto
	$(PYTHON) run.py --config_file=$< --mode=infer \
	    --infer_input_file=$(DEMO_CORPUS)/test.en --infer_output_file=$@

demo: $(DEMO_OUTPUT)
	$(PYTHON) $(DEMO)/score.py --source $(DEMO_CORPUS)/test.en \
	    --reference $(DEMO_CORPUS)/test.de --output $(DEMO_OUTPUT)

test: $(VENV)/installed-dev
	$(PYTHON) -m pytest --quiet

lint: $(VENV)/installed-dev
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy

format: $(VENV)/installed-dev
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

bench: $(VENV)/installed-dev
	$(PYTHON) -m tests.benchmarks

clean:
	rm -rf $(DEMO_RUN) $(DEMO_CORPUS) build dist .pytest_cache .mypy_cache .ruff_cache
