#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include "ir/base/check.h"
#include "ir/reference/reference.h"
#include "ir/text/fusion_text.h"
#include "tests/codegen/simt/simt_kernels.h"

namespace heddle::codegen::testing {

// The shape and the strides of a tensor of a test. Empty strides: dense. The tensor begins `shift`
// elements after an aligned address.
struct Layout {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides = {};
  int64_t shift = 0;
};

inline HostTensor valuesOf(const Buffer& buffer) {
  HostTensor values(buffer.desc.dtype, buffer.desc.sizes);
  int64_t at = 0;
  auto& source = const_cast<Buffer&>(buffer);
  buffer.forEach([&](const std::vector<int64_t>& index) {
    values.set(at++, loadElement(source.data(), buffer.desc.dtype, buffer.offsetOf(index)));
  });
  return values;
}

// Kernels, their buffers and the expected outputs.
class Cases {
 public:
  // Adds a fusion whose text is one kernel. `layouts` are the layouts of the inputs. Each output
  // begins `output_shift` elements after an aligned address. planKernel() gets `choice`.
  void add(const std::string& text, const std::vector<Layout>& layouts, const SizeBindings& sizes,
           const std::vector<std::vector<int64_t>>& output_strides = {}, int64_t output_shift = 0,
           const KernelChoice* choice = nullptr) {
    Case one;
    one.name = text + str(layouts.empty() ? std::vector<int64_t>{} : layouts[0].sizes);
    const Fusion fusion = parseFusion("heddle 1 fusion f(" + text + " }", "f");
    ReferenceInputs inputs;
    std::vector<Buffer*> in;
    for (size_t i = 0; i < fusion.inputs().size(); ++i) {
      const ValueId id = fusion.inputs()[i];
      const DType dtype = fusion.tensor(id).dtype;
      const auto shift = static_cast<size_t>(layouts[i].shift * sizeOf(dtype));
      Buffer& buffer = buffers_.emplace_back(dtype, layouts[i].sizes, layouts[i].strides, shift);
      inputs.tensors[id] = valuesOf(buffer.fill(static_cast<unsigned>(i) + 3));
      in.push_back(&buffer);
    }
    one.wanted = evaluateReference(fusion, inputs, sizes);
    for (size_t i = 0; i < one.wanted.size(); ++i) {
      const HostTensor& wanted = one.wanted[i];
      one.outputs.push_back(&buffers_.emplace_back(
          wanted.dtype, wanted.sizes,
          i < output_strides.size() ? output_strides[i] : std::vector<int64_t>{},
          static_cast<size_t>(output_shift * sizeOf(wanted.dtype))));
    }
    one.kernel = kernels_.add(fusion, in, one.outputs, {}, choice);
    cases_.push_back(std::move(one));
  }

  void compile() { kernels_.compile(); }
  size_t size() const { return cases_.size(); }
  const std::string& name(size_t number) const { return cases_[number].name; }
  std::pair<int, int> barriers(size_t number) const { return kernels_.barriers(number); }
  const std::string& entry(size_t number) const { return kernels_.plan(number).stages.at(0).entry; }
  const std::string& text(size_t number) const { return kernels_.plan(number).source.text; }
  KernelChoice candidate(size_t number) const {
    return parseKernelChoice(kernels_.plan(number).candidate).value();
  }
  // The first output, after a run.
  const Buffer& output(size_t number) const { return *cases_[number].outputs.at(0); }
  size_t stages(size_t number) const { return kernels_.plan(number).stages.size(); }
  // Dynamic shared memory of the first launch.
  int32_t sharedBytes(size_t number) const {
    return kernels_.plan(number).stages.at(0).shared_bytes;
  }

  // Runs a kernel. Returns a text about the first fault, or "". A float may differ from the
  // expected value by `roundings` rounding errors of its type. If the magnitude of the expected
  // value is below 1, the rounding errors of 1 are allowed. `skipped` and `at_once` are arguments
  // of SimtKernels::run(). The kernel must not write to the bytes between the elements of an
  // output, because they may belong to another tensor.
  std::string run(size_t number, uint64_t seed, double roundings = 0, int skipped = -1,
                  int at_once = 3) {
    Case& one = cases_[number];
    for (Buffer* output : one.outputs) {
      std::fill(output->bytes.begin(), output->bytes.end(), kUntouched);
    }
    std::string fault = kernels_.run(one.kernel, seed, skipped, at_once);
    for (size_t i = 0; i < one.outputs.size() && fault.empty(); ++i) {
      fault = difference(valuesOf(*one.outputs[i]), one.wanted[i], roundings);
      if (fault.empty() && !hasUntouchedGaps(*one.outputs[i])) {
        fault = fmt::format("bytes between the elements of output {} are written", i);
      }
    }
    return fault;
  }

  // Returns a text about the first element that differs from the expected one, or "". run()
  // explains `roundings`.
  static std::string difference(const HostTensor& got, const HostTensor& wanted, double roundings) {
    const double tolerance = roundings * roundingOf(wanted.dtype);
    for (int64_t i = 0; i < wanted.numel(); ++i) {
      const double a = toDouble(got.at(i));
      const double b = toDouble(wanted.at(i));
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      if (std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b))) continue;
      return fmt::format("element {} is {}, expected {}", i, a, b);
    }
    return "";
  }

 private:
  struct Case {
    std::string name;
    size_t kernel = 0;
    std::vector<Buffer*> outputs;
    std::vector<HostTensor> wanted;
  };

  static constexpr char kUntouched = '\x5a';

  static bool hasUntouchedGaps(const Buffer& buffer) {
    std::vector<char> bytes = buffer.bytes;
    const auto width = static_cast<size_t>(sizeOf(buffer.desc.dtype));
    buffer.forEach([&](const std::vector<int64_t>& index) {
      const size_t first = buffer.shift + static_cast<size_t>(buffer.offsetOf(index)) * width;
      std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(first), width, kUntouched);
    });
    return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == kUntouched; });
  }

  // Half the distance between 1 and the next larger number of the type.
  static double roundingOf(DType dtype) {
    switch (dtype) {
      case DType::F8E5M2:
        return 0x1p-3;
      case DType::F8E4M3:
        return 0x1p-4;
      case DType::BF16:
        return 0x1p-8;
      case DType::F16:
        return 0x1p-11;
      case DType::F32:
        return 0x1p-24;
      case DType::F64:
        return 0x1p-53;
      default:
        return 0;
    }
  }

  SimtKernels kernels_;
  std::deque<Buffer> buffers_;
  std::deque<Case> cases_;
};

inline void expectRight(Cases& cases, double roundings = 0) {
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    for (uint64_t seed : {0, 1, 2}) {
      EXPECT_EQ(cases.run(i, seed, roundings), "") << cases.name(i) << " seed " << seed;
    }
  }
}

// Expects that each run of a kernel in which threads do not wait at barrier number `barrier` has a
// fault or a wrong result.
inline void expectNeeded(Cases& cases, size_t number, int barrier, double roundings = 0) {
  for (uint64_t seed : {0, 1, 2}) {
    EXPECT_NE(cases.run(number, seed, roundings, barrier), "")
        << cases.name(number) << " without barrier " << barrier;
  }
}

}  // namespace heddle::codegen::testing
