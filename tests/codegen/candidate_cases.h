#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "codegen/bind/candidate_numbers.h"
#include "codegen/bind/candidates.h"
#include "ir/reference/reference.h"
#include "ir/text/fusion_text.h"
#include "tests/codegen/kernel_runner.h"

namespace heddle::codegen::testing {

// A segment with the shapes of its inputs. Empty strides: dense.
struct CandidateCase {
  std::string text;
  std::vector<std::vector<int64_t>> sizes;  // per input
  SizeBindings symbols;
  std::vector<std::vector<int64_t>> strides = {};         // per input
  std::vector<std::vector<int64_t>> output_strides = {};  // per output
};

// Segments of all families, with sizes for which the model (codegen/kernel_choice.h) can choose
// between several kernels.
inline std::vector<CandidateCase> candidateCases() {
  const std::string softmax =
      "(%x: f32[n, m]) {\n  %m = max(%x, axes=[1])\n  %e = broadcast(%m, axes=[1])\n"
      "  %d = sub(%x, %e)\n  %p = exp(%d)\n  %s = sum(%p, axes=[1])\n"
      "  %t = broadcast(%s, axes=[1])\n  %w = div(%p, %t)\n  return %w\n}\n";
  const std::string backward =
      "(%x: f32[n, m], %g: f32[n, m]) {\n  %q = mul(%x, %g)\n  %s = sum(%q, axes=[1])\n"
      "  %e = broadcast(%s, axes=[1])\n  %d = sub(%g, %e)\n  %r = mul(%d, %x)\n"
      "  %c = sum(%r, axes=[0])\n  return %d, %c\n}\n";
  const std::string norm =
      "(%x: f32[n, m]) {\n  %s = sum(%x, axes=[1])\n  %c = div(%s, 7993.0)\n"
      "  %e = broadcast(%c, axes=[1])\n  %d = sub(%x, %e)\n  %q = mul(%d, %d)\n"
      "  %v = sum(%q, axes=[1])\n  %r = rsqrt(%v)\n  %t = broadcast(%r, axes=[1])\n"
      "  %y = mul(%d, %t)\n  return %y\n}\n";
  return {
      {"(%x: f32[n, m], %y: f32[n, m]) {\n  %z = add(%x, %y)\n  return %z\n}\n",
       {{37, 264}, {37, 264}},
       {{"n", 37}, {"m", 264}}},
      {"(%x: bf16[n, m], %y: f32[m]) {\n  %f = cast(%x, dtype=f32)\n"
       "  %e = broadcast(%y, axes=[0])\n  %z = mul(%f, %e)\n  return %z\n}\n",
       {{300, 67}, {67}},
       {{"n", 300}, {"m", 67}}},
      {"(%x: f32[n, m]) {\n  %z = sum(%x, axes=[1])\n  return %z\n}\n",
       {{200, 96}},
       {{"n", 200}, {"m", 96}}},
      {"(%x: f32[n, m]) {\n  %z = sum(%x, axes=[1])\n  return %z\n}\n",
       {{3, 20000}},
       {{"n", 3}, {"m", 20000}}},
      {"(%x: f32[n, m]) {\n  %z = max(%x, axes=[0])\n  return %z\n}\n",
       {{700, 40}},
       {{"n", 700}, {"m", 40}}},
      {"(%x: bf16[n, m]) {\n  %z = max(%x, axes=[0])\n  return %z\n}\n",
       {{700, 42}},
       {{"n", 700}, {"m", 42}}},
      {"(%x: f16[k, n, m]) {\n  %z = sum(%x, axes=[1])\n  return %z\n}\n",
       {{3, 300, 61}},
       {{"k", 3}, {"n", 300}, {"m", 61}}},
      {softmax, {{140, 96}}, {{"n", 140}, {"m", 96}}},
      {softmax, {{3, 1500}}, {{"n", 3}, {"m", 1500}}},
      {norm, {{3, 7993}}, {{"n", 3}, {"m", 7993}}},
      {softmax, {{5, 61}}, {{"n", 5}, {"m", 61}}},
      {softmax, {{2, 33000}}, {{"n", 2}, {"m", 33000}}},
      {backward, {{24, 160}, {24, 160}}, {{"n", 24}, {"m", 160}}},
      {"(%x: f32[n, m, k]) {\n  %y = softmax(%x, axis=1)\n  return %y\n}\n",
       {{3, 90, 24}},
       {{"n", 3}, {"m", 90}, {"k", 24}}},
      {"(%x: f32[n, m, k]) {\n  %y = softmax(%x, axis=1)\n  return %y\n}\n",
       {{1, 2000, 36}},
       {{"n", 1}, {"m", 2000}, {"k", 36}}},
      {"(%x: f32[n, m], %z: f32[n, m]) {\n  %y = sub(%x, %z)\n  return %y\n}\n",
       {{72, 136}, {72, 136}},
       {{"n", 72}, {"m", 136}},
       {{1, 72}, {}}},
      {"(%x: f32[n], %y: f32[m]) {\n  %u = neg(%x)\n  %v = exp(%y)\n  return %u, %v\n}\n",
       {{100}, {50}},
       {{"n", 100}, {"m", 50}}},
  };
}

// The tensors of a case, with the expected outputs.
struct CandidateTensors {
  Fusion fusion;
  std::deque<Buffer> inputs;
  std::deque<Buffer> outputs;
  std::vector<HostTensor> wanted;

  explicit CandidateTensors(const CandidateCase& given)
      : fusion(parseFusion("heddle 1\nfusion f" + given.text)) {
    ReferenceInputs values;
    for (size_t i = 0; i < given.sizes.size(); ++i) {
      const ValueId id = fusion.inputs()[i];
      const bool has_strides = i < given.strides.size();
      Buffer& buffer = inputs.emplace_back(fusion.tensor(id).dtype, given.sizes[i],
                                           has_strides ? given.strides[i] : std::vector<int64_t>{});
      values.tensors[id] = elementsOf(buffer.fill(static_cast<unsigned>(i) + 3));
    }
    wanted = evaluateReference(fusion, values, given.symbols);
    for (const HostTensor& each : wanted) outputs.emplace_back(each.dtype, each.sizes);
  }

  static HostTensor elementsOf(Buffer& buffer) {
    HostTensor values(buffer.desc.dtype, buffer.desc.sizes);
    int64_t at = 0;
    buffer.forEach([&](const std::vector<int64_t>& index) {
      values.set(at++, loadElement(buffer.data(), buffer.desc.dtype, buffer.offsetOf(index)));
    });
    return values;
  }
  static std::vector<Buffer*> pointersTo(std::deque<Buffer>& buffers) {
    std::vector<Buffer*> pointers;
    for (Buffer& buffer : buffers) pointers.push_back(&buffer);
    return pointers;
  }
  static std::vector<TensorDesc> descsOf(const std::deque<Buffer>& buffers) {
    std::vector<TensorDesc> descs;
    for (const Buffer& buffer : buffers) descs.push_back(buffer.desc);
    return descs;
  }

  std::vector<Candidate> candidatesFor(Target target) {
    const std::vector<TensorDesc> in = descsOf(inputs);
    const std::vector<TensorDesc> out = descsOf(outputs);
    return candidates(fusion, in, out, target, alignments(), unshardedSizes(fusion, in, out));
  }
  std::vector<KernelNumbers> numbersOf(const std::vector<Candidate>& all, Target target) {
    const std::vector<TensorDesc> in = descsOf(inputs);
    const std::vector<TensorDesc> out = descsOf(outputs);
    return candidateNumbers(fusion, in, out, target, alignments(), unshardedSizes(fusion, in, out),
                            all);
  }
  std::vector<int32_t> alignments() {
    std::vector<int32_t> all;
    for (auto* buffers : {&inputs, &outputs}) {
      for (Buffer& buffer : *buffers) all.push_back(buffer.alignment());
    }
    return all;
  }

  // Returns a text about the first wrong output, or "". Candidates add in different orders, so the
  // last bits may differ.
  std::string difference() {
    for (size_t i = 0; i < wanted.size(); ++i) {
      std::string text = differenceOf(outputs[i], wanted[i]);
      if (!text.empty()) return fmt::format("output {}: {}", i, text);
    }
    return "";
  }
  static std::string differenceOf(Buffer& buffer, const HostTensor& expected) {
    const HostTensor got = elementsOf(buffer);
    const double relative = expected.dtype == DType::BF16  ? 0x1p-7
                            : expected.dtype == DType::F16 ? 0x1p-10
                                                           : 1e-5;
    for (int64_t i = 0; i < expected.numel(); ++i) {
      const double a = toDouble(got.at(i));
      const double b = toDouble(expected.at(i));
      if (std::abs(a - b) <= relative * std::abs(b) + 1e-5) continue;
      return fmt::format("element {} is {}, expected {}", i, a, b);
    }
    return "";
  }
};

// Stores, per order of reductions, the bits of the outputs of the first candidate with this order.
class BitsByOrder {
 public:
  BitsByOrder(const std::vector<KernelNumbers>& numbers, Target target) {
    for (const KernelNumbers& each : numbers) orders_.push_back(reductionOrder(each, target));
  }
  // Returns whether the outputs of a candidate have the bits of the first candidate with the same
  // order.
  bool agree(size_t candidate, const std::deque<Buffer>& outputs) {
    std::vector<std::vector<char>> bits;
    for (const Buffer& output : outputs) bits.push_back(output.bytes);
    const auto [known, is_first] = bits_.try_emplace(orders_.at(candidate), bits);
    compared_ += is_first ? 0 : 1;
    return known->second == bits;
  }
  int compared() const { return compared_; }

 private:
  std::vector<std::string> orders_;
  std::map<std::string, std::vector<std::vector<char>>> bits_;
  int compared_ = 0;
};

}  // namespace heddle::codegen::testing
