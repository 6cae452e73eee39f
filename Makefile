# The commands that a new user needs. For everything else, use CMake directly (CMakePresets.json,
# docs/contributing.md).
.PHONY: help setup build product run install test format clean
PREFIX ?= /usr/local
.DEFAULT_GOAL := help

help:
	@echo "make run      install missing packages, build, run the example fusion and check its result"
	@echo "make install  build heddle without tests, and install it in PREFIX=DIR (default: /usr/local)"
	@echo "make test     install missing packages, then run every test, the sanitizers and 40 seconds of fuzzing"
	@echo "make build    build everything in release mode (build/release)"
	@echo "make format   run clang-format on all sources"
	@echo "make clean    remove build/"

setup:
	@tools/setup.sh

build: setup
	cmake --preset release
	cmake --build --preset release

product: setup
	cmake --preset release
	cmake --build --preset release --target heddle_product

run: product
	build/release/bin/heddle run examples/gelu_backward_bias_grad.fusion --check

install: product
	cmake --install build/release --prefix "$(PREFIX)"

test: setup
	@tests/run_all.sh

format:
	find ir codegen comm host tools tests examples bench \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' \) \
	  -print0 | xargs -0 clang-format -i

clean:
	rm -rf build
