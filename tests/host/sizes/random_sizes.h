#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "host/fusion_executor.h"
#include "ir/base/check.h"
#include "ir/reference/reference.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"

// Runs fusions with random sequences of shapes, memory orders and scalars. Runs repeat arguments of
// earlier runs, donate inputs and preallocate outputs. Each result must equal that of a new
// executor, so no cache may return a plan for other arguments. It must also equal the reference.
namespace heddle::host::random_sizes {

class Choices {
 public:
  explicit Choices(uint64_t seed) : random_(seed) {}
  int64_t between(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  // Returns a divisor of n, or a small number if n is 0.
  int64_t divisor(int64_t n) {
    std::vector<int64_t> found;
    for (int64_t i = 1; i <= std::max<int64_t>(n, 3); ++i) {
      if (n % i == 0) found.push_back(i);
    }
    return found[static_cast<size_t>(between(0, static_cast<int64_t>(found.size()) - 1))];
  }

 private:
  std::mt19937_64 random_;
};

// A fusion of %x: f32[t, h] and two integers, and a function that chooses valid values.
struct Case {
  const char* statements;
  std::pair<int64_t, int64_t> (*choose)(Choices&, int64_t t, int64_t h);
  // true: an axis whose size is a scalar broadcasts if the scalar is 1.
  bool broadcasts = false;
};

inline constexpr Case kCases[] = {
    {"  %z = reshape(%x, sizes=[%n, %m])\n  %y = add(%z, 1.0)\n"
     "  %w = sum(%y, axes=[1])\n  return %y, %w",
     [](Choices& choices, int64_t t, int64_t h) {
       const int64_t n = choices.divisor(t * h);
       const int64_t open = t * h == 0 ? 0 : choices.between(0, 2);
       return std::pair(open == 1 ? -1 : n, open == 2 ? -1 : t * h / n);
     }},
    {"  %z = slice(%x, starts=[%n, 0], stops=[%n + %m, h])\n  %k = add(%m, 1)\n"
     "  %c = full(2.0, sizes=[%k, h], dtype=f32)\n  %w = sum(%c, axes=[0])\n"
     "  %y = mul(%z, %w)\n  return %y, %z",
     [](Choices& choices, int64_t t, int64_t) {
       const int64_t n = choices.between(0, t);
       return std::pair(n, choices.between(0, t - n));
     }},
    {"  %p = pad(%x, 3.0, lows=[%n, 0], highs=[%m - 1, 0])\n  %y = neg(%p)\n"
     "  %i = iota(sizes=[%m, h], axis=0)\n  %r = repeat(%i, repeats=[%n, 1])\n"
     "  %e = expand(%x, sizes=[%m, -1, h])\n  %w = exp(%e)\n  return %y, %r, %w",
     [](Choices& choices, int64_t, int64_t) {
       return std::pair(choices.between(0, 2), choices.between(1, 2));
     }},
    {"  %r = reshape(%x, sizes=[%n, -1])\n  %c = full(2.0, sizes=[%m, 1], dtype=f32)\n"
     "  %y = add(%r, %c)\n  %w = sum(%y, axes=[0])\n  return %y, %w",
     [](Choices& choices, int64_t t, int64_t h) {
       const int64_t n = t * h == 0 ? choices.between(1, 2) : choices.divisor(t * h);
       const int64_t m = n == 1 ? choices.between(0, 3) : choices.between(0, 1) == 0 ? 1 : n;
       return std::pair(n, m);
     },
     true},
    {"  %z = reshape(%x, sizes=[%n, %m])\n  %y = softmax(%z, axis=1)\n"
     "  %w = rms_norm(%z)\n  return %y, %w",
     [](Choices& choices, int64_t t, int64_t h) {
       const int64_t n = choices.divisor(t * h);
       return std::pair(n, choices.between(0, 1) == 0 && t * h > 0 ? -1 : t * h / n);
     }},
    {"  %p = pad(%x, 3.0, lows=[0, %n], highs=[0, %m])\n  %y = layer_norm(%p)\n"
     "  %s = softmax(%p, axis=0)\n  %w = sum(%s, axes=[0])\n  return %y, %s, %w",
     [](Choices& choices, int64_t, int64_t) {
       return std::pair(choices.between(0, 3), choices.between(0, 1) * choices.between(0, 600));
     }},
};

inline constexpr int kCaseCount = static_cast<int>(std::size(kCases));

// The arguments of a run.
struct Arguments {
  int64_t t = 0, h = 0, n = 0, m = 0;
  enum class Memory { Dense, Columns, Gaps } memory = Memory::Dense;  // how %x is stored
};

// Returns the descriptor of %x with sizes [t, h].
inline TensorDesc descOf(const Arguments& arguments) {
  const int64_t t = arguments.t, h = arguments.h;
  TensorDesc desc = denseDesc(DType::F32, {t, h});
  if (arguments.memory == Arguments::Memory::Columns) desc.strides = {1, std::max<int64_t>(t, 1)};
  if (arguments.memory == Arguments::Memory::Gaps) desc.strides = {h + 3, 1};
  return desc;
}

inline HostTensor valuesOf(const Arguments& arguments) {
  HostTensor x(DType::F32, {arguments.t, arguments.h});
  for (int64_t i = 0; i < x.numel(); ++i) x.set(i, static_cast<double>(i % 7) / 4);
  return x;
}

inline Fusion fusionOf(const Case& one, bool broadcasts) {
  const std::string type = broadcasts ? "i64?" : "i64";
  return parseFusion("heddle 1\nfusion f(%x: f32[t, h], %n: " + type + ", %m: " + type + ") {\n" +
                     one.statements + "\n}\n");
}

inline void expectEqual(const HostTensor& got, const HostTensor& expected,
                        const std::string& where) {
  ASSERT_EQ(got.sizes, expected.sizes) << where;
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double value = toDouble(expected.at(i));
    ASSERT_NEAR(toDouble(got.at(i)), value, 1e-5 * std::max(1.0, std::abs(value)))
        << where << ", element " << i;
  }
}

class Sequence {
 public:
  Sequence(const Case& one, Device& device, uint64_t seed)
      : case_(one),
        choices_(seed),
        fusion_(fusionOf(one, one.broadcasts || choices_.between(0, 1) == 0)),
        device_(device),
        executor_(fusion_, {&device}) {}

  void run(const std::string& where) {
    const Arguments arguments = choose();
    SCOPED_TRACE(fmt::format("{}: x[{}, {}] stored as {}, n = {}, m = {}", where, arguments.t,
                             arguments.h, static_cast<int>(arguments.memory), arguments.n,
                             arguments.m));
    FusionExecutor fresh(fusion_, {&device_});
    const Outputs expected = fresh.run(inputsOf(arguments));
    expected.wait();
    RunOptions options;
    if (choices_.between(0, 2) == 0) options.preallocated = likeFirst(expected);
    if (arguments.memory == Arguments::Memory::Dense && choices_.between(0, 3) == 0)
      donate(options);
    const Outputs outputs = executor_.run(inputsOf(arguments), options);
    outputs.wait();
    const auto& inputs = fusion_.inputs();
    const std::vector<HostTensor> reference =
        evaluateReference(fusion_,
                          {{{inputs[0], valuesOf(arguments)}},
                           {{inputs[1], Scalar(arguments.n)}, {inputs[2], Scalar(arguments.m)}}},
                          {{"t", arguments.t}, {"h", arguments.h}});
    for (size_t i = 0; i < reference.size(); ++i) {
      const std::string which = fmt::format("output {}", i);
      const HostTensor got = toHost(device_, std::get<Tensor>(outputs[i]));
      expectEqual(got, toHost(device_, std::get<Tensor>(expected[i])), which);
      expectEqual(got, reference[i], which);
    }
  }

 private:
  // Chooses the arguments of an earlier run, the same tensor with other scalars, or new arguments.
  Arguments choose() {
    if (!earlier_.empty() && choices_.between(0, 2) == 0) {
      return earlier_[static_cast<size_t>(
          choices_.between(0, static_cast<int64_t>(earlier_.size()) - 1))];
    }
    Arguments next;
    if (earlier_.empty() || choices_.between(0, 1) == 0) {
      next.t = choices_.between(0, 5);
      next.h = choices_.between(1, 4);
      next.memory = static_cast<Arguments::Memory>(std::max<int64_t>(0, choices_.between(-1, 2)));
    } else {
      next = earlier_.back();
    }
    std::tie(next.n, next.m) = case_.choose(choices_, next.t, next.h);
    earlier_.push_back(next);
    return next;
  }

  std::vector<Argument> inputsOf(const Arguments& arguments) {
    return {toDevice(device_, device_.allocator(), valuesOf(arguments), descOf(arguments)),
            Scalar(arguments.n), Scalar(arguments.m)};
  }

  // Returns a preallocated tensor for output 0.
  std::vector<Tensor> likeFirst(const Outputs& outputs) {
    const std::vector<int64_t> sizes = std::get<Tensor>(outputs[0]).desc.sizes;
    return {toDevice(device_, device_.allocator(), HostTensor(DType::F32, sizes),
                     denseDesc(DType::F32, sizes))};
  }

  // Donates %x, unless an output may be a view of it.
  void donate(RunOptions& options) const {
    for (ValueId output : fusion_.outputs()) {
      const OpKind kind = fusion_.expr(fusion_.value(output).definition).op->kind;
      if (kind != OpKind::Pointwise && kind != OpKind::Reduction) return;
    }
    options.donated = {0};
  }

  const Case& case_;
  Choices choices_;
  Fusion fusion_;
  Device& device_;
  FusionExecutor executor_;
  std::vector<Arguments> earlier_;
};

// Runs the sequences first, first + step, ... below `sequences`, with `runs` runs each. Sequence i
// runs the fusion of kCases[i % kCaseCount].
inline void expectRandomSizes(Device& device, int first, int step, int sequences, int runs) {
  for (int i = first; i < sequences && !::testing::Test::HasFailure(); i += step) {
    Sequence sequence(kCases[i % kCaseCount], device, static_cast<uint64_t>(i));
    for (int run = 0; run < runs; ++run) sequence.run(fmt::format("sequence {}, run {}", i, run));
  }
}

}  // namespace heddle::host::random_sizes
