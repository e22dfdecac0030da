# Everything a contributor runs. The tests in a browser want Chromium, and are skipped without. `make bench` and `make test-extra`
# need Python 3.11 or later and a few GB of disk.

CARGO ?= cargo
PYTHON ?= python3
ENV = python/.venv
IN_ENV = PYTHONPATH=$(CURDIR)/python $(ENV)/bin/python -m

.PHONY: test test-python test-extra lint bench

test:
	$(CARGO) build --workspace --all-targets
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		set -ex; $(CARGO) nextest run --workspace; $(CARGO) test --workspace --doc; \
	else \
		set -ex; $(CARGO) test --workspace; \
	fi
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps
	$(PYTHON) -m unittest discover --start-directory bench --verbose
	$(PYTHON) -m unittest discover --start-directory tests/browser --verbose
	PYTHON=$(PYTHON) tests/hepdata/setup
	if [ -x tests/hepdata/.venv/bin/python ]; then tests/hepdata/.venv/bin/python -m unittest discover --start-directory tests/hepdata --verbose; fi
	$(MAKE) test-python

# The Python package, from the module that `cargo build --workspace` built along with the rest: nothing is compiled twice.
test-python: $(ENV)/installed
	$(CARGO) build --workspace --all-targets
	ln -sf ../../target/debug/lib_neb.so python/neb/_neb.abi3.so
	$(IN_ENV) mypy
	$(IN_ENV) pytest --durations 5

# The same with PyTorch, ArviZ and sbi; then `pip install .` as a user does it.
test-extra: $(ENV)/installed-extra
	$(CARGO) build --workspace --all-targets
	ln -sf ../../target/debug/lib_neb.so python/neb/_neb.abi3.so
	$(IN_ENV) pytest --override-ini addopts= --doctest-modules python/neb/torch.py python/tests/extra
	rm -rf $(ENV)-clean
	$(PYTHON) -m venv $(ENV)-clean
	$(ENV)-clean/bin/pip install --disable-pip-version-check .
	cd $(ENV)-clean && bin/python -c "import neb; print(neb.Surrogate('mixture', epochs=1).fit(*neb.simulators.TwoMoons().pairs(500)))"

$(ENV)/installed: python/requirements.txt
	$(PYTHON) -m venv $(ENV)
	$(ENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

$(ENV)/installed-extra: python/requirements-extra.txt $(ENV)/installed
	$(ENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

bench:
	PYTHON=$(PYTHON) bench/setup
	bench/.venv/bin/python bench/compare.py
