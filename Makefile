# pe_numpy: a textbook that runs.  `make` builds the book, `make test` proves it, `make help` lists the rest.

PYTHON ?= python3
BIN := .venv/bin

# A reader's own settings change nothing: of their environment such variables are not passed on.
unexport $(filter PYTHON% PYTEST% NPY_% OPENBLAS_% OMP_% MKL_% IPYTHON% JUPYTER% MPL% HYPOTHESIS% \
  DOCUTILS% SPHINX% COVERAGE% MATPLOTLIBRC PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV \
  UV_SYSTEM_PYTHON UV_PYTHON UV_TARGET UV_PREFIX FORCE_COLOR PY_COLORS COLUMNS,$(.VARIABLES))
# Equal outputs on every run: one BLAS thread, no random hashing, no date in a figure.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export PYTHONHASHSEED := 0
export SOURCE_DATE_EPOCH := 0
# Quiet, whole copies: no hint about newer tools, no warning when caches lie on another disk.
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export UV_LINK_MODE := copy

.DEFAULT_GOAL := all
.PHONY: real real-book real-tables test-real all help notebooks book live pdf contents cards class lab test test-book test-course test-oldest test-newest matrix ledger mutants kills bench ranks study study-quick lint lock clean

all: notebooks book  ## set up, execute every notebook, draw every figure, build the web book
	@echo
	@echo "The book is ready. Read it in a browser: open docs/_build/html/index.html. Or type one of these:"
	@echo
	@echo "    make lab     # the chapters in JupyterLab; start with 00_how_to_read"
	@echo "    make test    # prove all of it"
	@echo "    source .venv/bin/activate && python -m pe_numpy list    # every function; those with * are homework"

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

define check_python
@command -v $(PYTHON) >/dev/null || { \
  echo "make: there is no '$(PYTHON)'; install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
  echo "make: pe_numpy needs Python 3.11 or newer; name one: make PYTHON=/path/to/python3" >&2; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
  echo "make: this Python has no venv module; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
endef

# $(call install,LOCK): .venv with the packages of requirements/LOCK, and this package, editable.
define install
@echo "Setting up .venv from requirements/$(1) ..."
@test -x $(BIN)/uv || { $(PYTHON) -m venv --clear .venv && \
  $(BIN)/pip install -qq --require-hashes -r requirements/bootstrap.lock; }
@$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements/$(1)
@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
@touch $@
endef

.venv/ok: requirements/bootstrap.lock requirements/dev.lock pyproject.toml
	$(check_python)
	@rm -rf .venv
	$(call install,dev.lock)

.venv/lab: .venv/ok requirements/lab.lock
	$(call install,lab.lock)

.venv/browser: .venv/ok requirements/browser.lock
	$(call install,browser.lock)

notebooks: .venv/ok  ## execute every notebook from its reviewed source, and draw every figure
	@$(BIN)/python notebooks/build.py

book: .venv/ok  ## build the web book from the executed notebooks and the docstrings
	@$(BIN)/python docs/build.py

live: .venv/ok  ## fetch Python for the browser (once), so that the pages can run their cells
	@$(BIN)/python docs/live.py

pdf: book  ## print the whole book by a headless Chromium (some minutes); writes docs/_build/pe_numpy.pdf
	@$(BIN)/python docs/pdf.py

contents: .venv/ok  ## write the README's chapters and routes, and FUNCTIONS.md's schemes, from their registers
	@$(BIN)/python docs/toc.py

cards: .venv/ok  ## measure what the cards say of each scheme (a minute); writes CARDS.md
	@$(BIN)/python docs/cards.py

class: .venv/ok  ## check a class of sixty files of all kinds (a minute); writes notebooks/results/class.csv
	@$(BIN)/python tests/trial

lab: .venv/lab  ## open JupyterLab on the notebooks
	@$(BIN)/jupyter lab notebooks

test: .venv/ok  ## set up and pass every test, of the code and of the book
	@$(BIN)/python -m pytest -q -n 2 --dist loadscope --nbval --nbval-current-env --nbval-cell-timeout=120

test-book: .venv/browser book  ## open every page of the web book in a headless Chromium
	@command -v chromium >/dev/null || { \
	  echo "make: this test needs Chromium; on Debian: apt install chromium" >&2; exit 1; }
	@$(BIN)/python -m pytest -n 2 --dist worksteal -c tests/browser/pytest.ini tests/browser

MODELS ?= minilm gemma
real: .venv/ok  ## fetch two trained models (322 MB; Gemma's terms: GEMMA=accept, or MODELS=minilm alone) into weights/
	@$(BIN)/python -m pe_numpy fetch $(MODELS) $(if $(filter accept,$(GEMMA)),--accept-gemma-terms)

real-book: .venv/ok  ## execute the chapters that need trained models, of those that are there
	@$(BIN)/python notebooks/build.py --real

real-tables: .venv/ok  ## measure the trained models where a table is out of date; writes notebooks/results/real.csv and break.json
	@$(BIN)/python notebooks/results/real.py
	@$(BIN)/python notebooks/results/real_break.py

test-real: .venv/ok  ## what the trained models show, of those that are there
	@$(BIN)/python -m pytest -q -c tests/real/pytest.ini tests/real

.venv-nbgrader/ok: .venv/ok requirements/nbgrader.lock
	@echo "Setting up .venv-nbgrader from requirements/nbgrader.lock ..."
	@$(BIN)/python -m venv --clear --without-pip .venv-nbgrader
	@$(BIN)/uv pip install -q --python .venv-nbgrader/bin/python --require-hashes -r requirements/nbgrader.lock
	@touch $@

test-course: .venv-nbgrader/ok  ## let nbgrader itself release and grade a notebook of ours (minutes; in an environment of its own)
	@PYTHONPATH="$(CURDIR)" .venv-nbgrader/bin/python -m pytest -c tests/nbgrader/pytest.ini tests/nbgrader

.venv-oldest/ok: .venv/ok
	@$(BIN)/python -m venv --clear --without-pip .venv-oldest
	@$(BIN)/uv pip install -q --python .venv-oldest/bin/python --only-binary :all: \
	  --resolution lowest-direct -r pyproject.toml --extra unit
	@touch $@

test-oldest: .venv-oldest/ok  ## the unit tests with the oldest numpy 2 that this Python has a wheel for
	@.venv-oldest/bin/python -c "import numpy; print('numpy', numpy.__version__)"
	@PYTHONPATH="$(CURDIR)" .venv-oldest/bin/python -m pytest -q pe_numpy tests \
	  --ignore=tests/book --ignore=tests/formula_mutants.py --ignore=pe_numpy/book/plots --ignore=pe_numpy/book/show.py

# Of NumPy alone the oldest; the tools are those of the lock.
.venv-oldest-book/ok: .venv/ok requirements/dev.lock
	@$(BIN)/python -m venv --clear --without-pip .venv-oldest-book
	@sed -E '/^ +--hash/d; s/ *\\$$//' requirements/dev.lock | grep -v '^numpy==' > .venv-oldest-book/packages.txt
	@$(BIN)/uv pip install -q --python .venv-oldest-book/bin/python --no-deps -r .venv-oldest-book/packages.txt
	@$(BIN)/uv pip install -q --python .venv-oldest-book/bin/python --only-binary :all: \
	  --resolution lowest-direct --no-deps -r pyproject.toml
	@touch $@

.venv-newest/ok: .venv/ok
	@$(BIN)/python -m venv --clear --without-pip .venv-newest
	@$(BIN)/uv pip install -q --python .venv-newest/bin/python -r pyproject.toml --extra dev
	@touch $@

test-newest: .venv-newest/ok  ## every test with the newest releases of all packages
	@PYTHONPATH="$(CURDIR)" .venv-newest/bin/python -m pytest -q -n 2 --dist loadscope --nbval --nbval-current-env --nbval-cell-timeout=120

matrix: .venv-oldest-book/ok .venv-newest/ok  ## all chapters without AVX-512, without AVX2, on other NumPy, on ARM (half an hour; ARM an hour more)
	@$(BIN)/python tests/matrix.py $(ROWS)

ledger: .venv/ok  ## which code of others agrees, and how closely; writes notebooks/results/ledger.csv
	@$(BIN)/python tests/ledger.py

mutants: .venv/ok  ## seed one mistake after another; the tests, and the chapters' assertions, must catch each
	@$(BIN)/python tests/mutants.py
	@$(BIN)/python tests/formula_mutants.py

kills: .venv/ok  ## kill a training and a study, 50 times each, and see that nothing is lost (a minute)
	@$(BIN)/python tests/kills.py

.venv-bench/ok: .venv/ok requirements/bench.txt
	@echo "Setting up .venv-bench with PyTorch ..."
	@$(BIN)/python -m venv --clear .venv-bench
	@.venv-bench/bin/python -m pip install -qq -r requirements/bench.txt \
	  numpy==$$($(BIN)/python -c "import numpy; print(numpy.__version__)")
	@touch $@

bench: .venv-bench/ok  ## time and memory beside PyTorch (6 minutes); writes notebooks/results/bench*.md
	@PYTHONPATH=. THP_MEM_ALLOC_ENABLE=1 .venv-bench/bin/python -m pytest -c tests/bench/pytest.ini tests/bench

ranks: .venv/ok  ## one attention over 65,536 tokens by four processes (half a minute); writes notebooks/results/context_parallel.csv
	@$(BIN)/python notebooks/results/context_parallel.py

study: .venv/ok  ## train short, test long (hours; goes on where it stopped); adds to notebooks/results/study.csv
	@$(BIN)/python notebooks/results/study.py

study-quick: .venv/ok  ## measure a part of the study anew, and compare (15 minutes)
	@$(BIN)/python notebooks/results/study.py --quick

lint: .venv/ok  ## style, types, docstrings, spelling
	@$(BIN)/ruff check -q
	@$(BIN)/ruff format -q --check
	@$(BIN)/mypy
	@$(BIN)/codespell
	@echo "lint: clean"

lock: .venv/ok  ## resolve the requirements anew and write the locks (pins and hashes, no addresses)
	@for set in "bootstrap requirements/bootstrap.in" "nbgrader requirements/nbgrader.in" "dev pyproject.toml --extra dev" \
	  "lab pyproject.toml --extra dev --extra lab -c requirements/dev.lock" \
	  "browser pyproject.toml --extra dev --extra browser -c requirements/dev.lock"; do set -- $$set; name=$$1; shift; \
	  $(BIN)/uv pip compile -q --upgrade --universal --generate-hashes --no-header --no-annotate \
	    --python $(BIN)/python "$$@" -o requirements/$$name.lock || exit 1; done

clean:  ## remove the environments and caches (nothing that is committed)
	@rm -rf .venv .venv-* docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
