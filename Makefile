# SPDX-License-Identifier: MIT
# The front door for people; the build itself is in meson.build.

BUILD = build
PREFIX = /usr/local
DESTDIR =
# Further arguments for `meson setup`, used when BUILD is first configured.
MESON_FLAGS =
FUZZ_BUILD = build-fuzz
FUZZ_SECONDS = 60

.PHONY: all demo check check-long fuzz bench install clean format setup help compile enable-tests
.NOTPARALLEL:

all: need-build compile

demo: need-demo compile
	@BUILD=$(BUILD) tools/demo

check: need-check enable-tests compile
	@tools/run-tests $(BUILD)

check-long: need-long enable-tests compile
	@tools/run-tests $(BUILD) --setup=long

fuzz: need-ci
	@[ -e $(FUZZ_BUILD)/build.ninja ] || CC=clang meson setup $(FUZZ_BUILD) \
		-Dfuzz=true -Dbench=false -Db_sanitize=address,undefined -Db_lundef=false
	@ninja -C $(FUZZ_BUILD)
	@tools/run-fuzz $(FUZZ_BUILD) $(FUZZ_SECONDS)

bench: need-bench compile
	@BUILD=$(BUILD) bench/run

# Only the owner of the build directory rebuilds: `sudo make install` takes what
# is there and leaves nothing behind that the owner could not overwrite.
install:
	@if [ ! -x $(BUILD)/reprise ] || [ -O $(BUILD) ]; then \
		$(MAKE) --no-print-directory all; fi
	@grep -qx 'prefix = $(PREFIX)' $(BUILD)/meson-private/cmd_line.txt || \
		meson setup --reconfigure --prefix=$(PREFIX) $(BUILD)
	@rm -f $(BUILD)/meson-logs/install-log.txt
	@DESTDIR=$(abspath $(DESTDIR)) meson install -C $(BUILD) --no-rebuild
	@[ -O $(BUILD) ] || rm -f $(BUILD)/meson-logs/install-log.txt

clean:
	rm -rf $(BUILD) $(FUZZ_BUILD) build-ci

format: need-ci
	@tools/check-format --fix

setup: need-check

help:
	@echo 'make               build $(BUILD)/reprise'
	@echo 'make demo          show what it does, on a small example'
	@echo 'make check         run the tests'
	@echo 'make check-long    run the tests, the slow ones too'
	@echo 'make fuzz          fuzz each reader for FUZZ_SECONDS=$(FUZZ_SECONDS) (needs clang)'
	@echo 'make bench         measure'
	@echo 'make install       install to PREFIX=$(PREFIX), below DESTDIR if given'
	@echo 'make clean         remove what was built'
	@echo 'make format        bring the sources into the house style (needs clang-format)'
	@echo 'make setup         install the packages that build and tests need'

# need-WHAT: the packages for WHAT are there, or get installed.
need-%:
	@tools/setup $*

compile: $(BUILD)/build.ninja
	@ninja -C $(BUILD) $(if $(V),-v)

# To build alone, the packages of the tests are not needed.
$(BUILD)/build.ninja:
	@meson setup $(BUILD) --prefix=$(PREFIX) \
		-Dtests=$$(pkg-config --exists cmocka && echo true || echo false) $(MESON_FLAGS)

enable-tests: $(BUILD)/build.ninja
	@if grep -qx 'tests = false' $(BUILD)/meson-private/cmd_line.txt; then \
		meson configure $(BUILD) -Dtests=true; fi
