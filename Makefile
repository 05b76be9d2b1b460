# `make demo` and `make test` are all that a new checkout needs: each creates .venv
# and installs what it uses, once per change of the dependencies. Where all is installed
# already, as in a container, the demo is: make demo PYTHON=python INSTALLED_DEMO=
OSEQ_PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
PYTHON := $(VENV)/bin/python
PIP_INSTALL := $(PYTHON) -m pip install --quiet --disable-pip-version-check
INSTALLED_DEMO := $(VENV)/installed-demo
INSTALLED_DEV := $(VENV)/installed-dev
INSTALLED_HOROVOD := $(VENV)/installed-horovod

DEMO := example_configs/text2text/cldr
DEMO_CONFIG := $(DEMO)/en-de-transformer.py
DEMO_CORPUS := data/cldr-en-de
DEMO_RUN := runs/cldr-en-de
DEMO_OUTPUT := $(DEMO_RUN)/test.out.de

.PHONY: help demo test lint format bench clean

help:
	@echo "make demo    generate a corpus, train a Transformer on it, translate, score"
	@echo "make test    run the test suite"
	@echo "make lint    ruff, mypy, shellcheck, hadolint and clang-format"
	@echo "make format  let ruff and clang-format rewrite the sources"
	@echo "make bench   measure the speed of training and decoding"
	@echo "make clean   remove the demo's run and corpus, and the tools' caches"

$(PYTHON):
	$(OSEQ_PYTHON) -m venv $(VENV)

$(INSTALLED_DEMO): setup.cfg pyproject.toml | $(PYTHON)
	@echo "Installing oseq and TensorFlow into $(VENV)"
	$(PIP_INSTALL) --editable '.[demo]'
	touch $@

$(INSTALLED_DEV): setup.cfg pyproject.toml | $(PYTHON)
	@echo "Installing oseq, TensorFlow and the development tools into $(VENV)"
	$(PIP_INSTALL) --editable '.[demo,dev]'
	touch $@

# Without MPI, which horovodrun would prefer: the tests find the same on all machines.
$(INSTALLED_HOROVOD): docker/install_horovod.sh $(INSTALLED_DEV)
	HOROVOD_WITHOUT_MPI=1 docker/install_horovod.sh $(PYTHON)
	touch $@

# The files of one corpus appear together; the last one written stands for all.
$(DEMO_CORPUS)/test.de: $(DEMO)/make_corpus.py | $(INSTALLED_DEMO)
	$(PYTHON) $< --source-locale en --target-locale de --output $(DEMO_CORPUS)

# An interrupted training continues where it was.
$(DEMO_OUTPUT): $(DEMO_CONFIG) $(DEMO_CORPUS)/test.de | $(INSTALLED_DEMO)
	$(PYTHON) run.py --config_file=$< --mode=train_eval --resume=auto
	$(PYTHON) run.py --config_file=$< --mode=infer \
	    --infer_input_file=$(DEMO_CORPUS)/test.en --infer_output_file=$@

demo: $(DEMO_OUTPUT)
	$(PYTHON) $(DEMO)/score.py --source $(DEMO_CORPUS)/test.en \
	    --reference $(DEMO_CORPUS)/test.de --output $(DEMO_OUTPUT)

# Nothing runs beside the tests that start workers and wait for them.
test: $(INSTALLED_HOROVOD)
	$(PYTHON) -m pytest --quiet --numprocesses=2 --dist=loadfile -m "not alone"
	$(PYTHON) -m pytest --quiet -m alone tests/integration

lint: $(INSTALLED_DEV)
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(VENV)/bin/shellcheck .ci/run $$(git ls-files '*.sh')
	$(VENV)/bin/clang-format --dry-run -Werror $$(git ls-files '*.cc')
	$(VENV)/bin/hadolint --config docker/hadolint.yaml docker/Dockerfile.*

format: $(INSTALLED_DEV)
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .
	$(VENV)/bin/clang-format -i $$(git ls-files '*.cc')

bench: $(INSTALLED_HOROVOD)
	$(PYTHON) -m tests.benchmarks

clean:
	rm -rf $(DEMO_RUN) $(DEMO_CORPUS) build dist .pytest_cache .mypy_cache .ruff_cache
