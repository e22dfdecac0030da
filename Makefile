# Everything a contributor runs. The tests in a browser want Chromium, and are skipped without. `make bench` needs Python 3.11 or later and a few GB of disk.

CARGO ?= cargo
PYTHON ?= python3

.PHONY: test lint bench

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

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

bench:
	PYTHON=$(PYTHON) bench/setup
	bench/.venv/bin/python bench/compare.py
