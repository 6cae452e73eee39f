#pragma once

#include <gtest/gtest.h>

#include <random>

#include "host/fusion_executor.h"
#include "ir/reference/reference.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"

// Runs fusions with random sequences of shapes and scalars. Each result must equal that of a new
// executor, so no cache may return a plan for other scalars. It must also equal the reference.
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
     }},
};

inline void expectEqual(const HostTensor& got, const HostTensor& expected,
                        const std::string& where) {
  ASSERT_EQ(got.sizes, expected.sizes) << where;
  for (int64_t i = 0; i < got.numel(); ++i) {
    ASSERT_NEAR(toDouble(got.at(i)), toDouble(expected.at(i)), 1e-5) << where << ", element " << i;
  }
}

class Sequence {
 public:
  Sequence(const Case& one, Device& device, uint64_t seed)
      : case_(one),
        fusion_(parseFusion("heddle 1\nfusion f(%x: f32[t, h], %n: i64?, %m: i64?) {\n" +
                            std::string(one.statements) + "\n}\n")),
        device_(device),
        choices_(seed),
        executor_(fusion_, {&device}) {}

  void run(const std::string& where) {
    const bool is_first = runs_++ == 0;             // the executor is new
    if (is_first || choices_.between(0, 1) == 0) {  // otherwise only the scalars change
      t_ = choices_.between(0, 5);
      h_ = choices_.between(1, 4);
    }
    const auto [n, m] = case_.choose(choices_, t_, h_);
    HostTensor x = HostTensor(DType::F32, {t_, h_});
    for (int64_t i = 0; i < x.numel(); ++i) x.set(i, static_cast<double>(i % 7) / 4);
    const std::vector<Argument> arguments = {
        toDevice(device_, device_.allocator(), x, denseDesc(DType::F32, {t_, h_})), Scalar(n),
        Scalar(m)};
    const Outputs outputs = executor_.run(arguments);
    outputs.wait();
    FusionExecutor fresh(fusion_, {&device_});
    const Outputs expected = is_first ? outputs : fresh.run(arguments);
    expected.wait();
    const auto& inputs = fusion_.inputs();
    const std::vector<HostTensor> reference = evaluateReference(
        fusion_, {{{inputs[0], x}}, {{inputs[1], Scalar(n)}, {inputs[2], Scalar(m)}}},
        {{"t", t_}, {"h", h_}});
    for (size_t i = 0; i < reference.size(); ++i) {
      const std::string which =
          fmt::format("{}: x[{}, {}], n = {}, m = {}, output {}", where, t_, h_, n, m, i);
      const HostTensor got = toHost(device_, std::get<Tensor>(outputs[i]));
      expectEqual(got, toHost(device_, std::get<Tensor>(expected[i])), which);
      expectEqual(got, reference[i], which);
    }
  }

 private:
  const Case& case_;
  Fusion fusion_;
  Device& device_;
  Choices choices_;
  FusionExecutor executor_;
  int64_t t_ = 0, h_ = 0;
  int runs_ = 0;
};

// Runs `sequences` sequences of two runs each on the device.
inline void expectRandomSizes(Device& device, int sequences) {
  for (int i = 0; i < sequences && !::testing::Test::HasFailure(); ++i) {
    Sequence sequence(kCases[static_cast<size_t>(i) % std::size(kCases)], device,
                      static_cast<uint64_t>(i));
    for (int run = 0; run < 2; ++run) sequence.run(fmt::format("sequence {}, run {}", i, run));
  }
}

}  // namespace heddle::host::random_sizes
