// Compares the backward of scaled_dot_product_attention in half types, as one call of cuDNN, with
// loops in double.
#include "host/compile_stages.h"
#include "host/fusion_executor.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/device/attention_cases.h"

namespace heddle::host::attention_backward_gpu_test {
namespace {

// What a fusion of attention and its backward does with %y, the result of the forward.
enum class ForwardUse : uint8_t {
  None,      // nothing reads %y, so the backward computes the forward again
  Returned,  // %y is an output, and the backward reads the results of the forward
  Reshaped,  // as Returned, but the output is %y as [b, t, h*f], so tokens are outermost in memory
};

// Builds a fusion of attention and its backward. The fusion returns the three gradients, then the
// result of the forward.
Fusion backwardOf(DType dtype, bool causal, ForwardUse use = ForwardUse::Returned) {
  const char* more = use == ForwardUse::None ? "" : use == ForwardUse::Returned ? ", %y" : ", %r";
  return parseFusion(fmt::format(
      "heddle 1\nfusion f(%g: {0}[b, h, t, f], %q: {0}[b, h, t, e], %k: {0}[b, h, s, e], "
      "%v: {0}[b, h, s, f]) {{\n  %y = scaled_dot_product_attention(%q, %k, %v, causal={1})\n"
      "  %p = permute(%y, axes=[0, 2, 1, 3])\n  %r = reshape(%p, sizes=[b, t, h*f])\n"
      "  %dq, %dk, %dv = scaled_dot_product_attention_backward(%g, %q, %k, %v, causal={1})\n"
      "  return %dq, %dk, %dv{2}\n}}\n",
      name(dtype), causal, more));
}

std::string programText(const Fusion& fusion, const AttentionShape& x) {
  return print(host::compile(fusion, 1, {}, attentionOptions(DeviceKind::Cuda, attentionSizes(x))));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Returns [b, t, h*f] as [b, h, t, f].
HostTensor splitHeads(const HostTensor& in, const AttentionShape& x) {
  HostTensor out(in.dtype, {x.batch, x.heads, x.queries, x.v_width});
  for (int64_t i = 0; i < out.numel(); ++i) {
    const int64_t column = i % x.v_width, row = i / x.v_width % x.queries;
    const int64_t head = i / x.v_width / x.queries % x.heads;
    const int64_t batch = i / x.v_width / x.queries / x.heads;
    out.set(i, in.at(((batch * x.queries + row) * x.heads + head) * x.v_width + column));
  }
  return out;
}

// The exact gradients, and for each element the error that host/device/attention.h allows.
struct ExactGradients {
  std::vector<double> dq, dk, dv;
  std::vector<double> off_dq, off_dk, off_dv;
};

struct HeadOperands {
  const AttentionShape& x;
  std::vector<double> g, q, k, v;
  double unit;
};

// Adds the contribution of one query row. `first_key` is the first key row of its head.
void addQuery(const HeadOperands& in, int64_t row, int64_t first_key, int64_t seen,
              ExactGradients& out) {
  const auto at = [](int64_t i, int64_t width, int64_t d) {
    return static_cast<size_t>(i * width + d);
  };
  const int64_t e = in.x.width, f = in.x.v_width;
  const double c = 1 / std::sqrt(static_cast<double>(e));
  std::vector<double> p(static_cast<size_t>(seen)), dp(p.size());
  double top = -INFINITY, sum = 0, total = 0, t = 0;
  for (int64_t j = 0; j < seen; ++j) {
    double& score = p[static_cast<size_t>(j)];
    for (int64_t d = 0; d < e; ++d) {
      score += c * in.q[at(row, e, d)] * in.k[at(first_key + j, e, d)];
    }
    top = std::max(top, score);
  }
  for (double& each : p) sum += each = std::exp(each - top);
  for (double& each : p) each /= sum;
  for (int64_t j = 0; j < seen; ++j) {
    const auto key = static_cast<size_t>(j);
    for (int64_t d = 0; d < f; ++d) {
      const double g = in.g[at(row, f, d)], v = in.v[at(first_key + j, f, d)];
      dp[key] += g * v;
      t += 2 * p[key] * std::fabs(g * v);
      out.dv[at(first_key + j, f, d)] += p[key] * g;
      out.off_dv[at(first_key + j, f, d)] += in.unit * p[key] * std::fabs(g);
    }
    total += p[key] * dp[key];
  }
  for (int64_t j = 0; j < seen; ++j) {
    const auto key = static_cast<size_t>(j);
    const double ds = c * p[key] * (dp[key] - total);
    const double off = in.unit * (std::fabs(ds) + c * p[key] * t);
    for (int64_t d = 0; d < e; ++d) {
      const double q = in.q[at(row, e, d)], k = in.k[at(first_key + j, e, d)];
      out.dq[at(row, e, d)] += ds * k;
      out.off_dq[at(row, e, d)] += off * std::fabs(k);
      out.dk[at(first_key + j, e, d)] += ds * q;
      out.off_dk[at(first_key + j, e, d)] += off * std::fabs(q);
    }
  }
}

// Requires that the error of each element is at most its bound `off` plus one unit in the last
// place, with a small margin. If `in_the_mean`, also requires that the root mean square error is at
// most four units in the last place, which is far below the bounds.
void expectGradient(const std::vector<double>& exact, const std::vector<double>& off, double unit,
                    bool in_the_mean, const HostTensor& got, const std::string& what) {
  const std::vector<double> ys = attentionNumbers(got);
  ASSERT_EQ(ys.size(), exact.size()) << what;
  double worst = 0, squares = 0, exact_squares = 0;
  for (size_t i = 0; i < ys.size(); ++i) {
    const double error = std::isnan(ys[i]) ? INFINITY : std::fabs(ys[i] - exact[i]);
    worst = std::max(worst, error - (off[i] + unit * std::fabs(exact[i])) * 1.05 - 1e-5);
    squares += error * error;
    exact_squares += exact[i] * exact[i];
  }
  EXPECT_LE(worst, 0) << what;
  if (in_the_mean) {
    EXPECT_LE(std::sqrt(squares), 4 * unit * std::sqrt(exact_squares)) << what;
  }
}

// Compares the gradients with `got`, which begins with dq, dk and dv.
void expectGradients(const AttentionShape& x, bool causal, const std::vector<HostTensor>& operands,
                     const std::vector<HostTensor>& got, const std::string& what,
                     bool in_the_mean = true) {
  const double u = attentionUnit(operands[0].dtype);
  const HeadOperands in{x,
                        attentionNumbers(operands[0]),
                        attentionNumbers(operands[1]),
                        attentionNumbers(operands[2]),
                        attentionNumbers(operands[3]),
                        u};
  ExactGradients exact;
  exact.dq = exact.off_dq = std::vector<double>(in.q.size());
  exact.dk = exact.off_dk = std::vector<double>(in.k.size());
  exact.dv = exact.off_dv = std::vector<double>(in.v.size());
  for (int64_t row = 0; row < x.batch * x.heads * x.queries; ++row) {
    const int64_t seen = causal ? std::min(x.keys, row % x.queries + 1) : x.keys;
    addQuery(in, row, row / x.queries * x.keys, seen, exact);
  }
  const bool mean = in_the_mean && x.keys >= 16 && x.queries >= 16;
  expectGradient(exact.dq, exact.off_dq, u, mean, got[0], what + ", dq");
  expectGradient(exact.dk, exact.off_dk, u, mean, got[1], what + ", dk");
  expectGradient(exact.dv, exact.off_dv, u, mean, got[2], what + ", dv");
}

// Returns random g, q, k and v.
std::vector<HostTensor> backwardOperands(DType dtype, const AttentionShape& x, bool one_head) {
  return {attentionSample(dtype, {x.batch, x.heads, x.queries, x.v_width}, "g", one_head),
          attentionSample(dtype, {x.batch, x.heads, x.queries, x.width}, "q", one_head),
          attentionSample(dtype, {x.batch, x.heads, x.keys, x.width}, "k", one_head),
          attentionSample(dtype, {x.batch, x.heads, x.keys, x.v_width}, "v", one_head)};
}

constexpr AttentionShape kBackwardShapes[] = {
    {2, 2, 33, 128, 40, 24},  // this shape is tested in every layout
    {2, 3, 128, 256, 64, 64}, {1, 2, 70, 128, 128, 128}, {1, 2, 200, 128, 64, 64},
    {1, 2, 100, 100, 64, 64}, {1, 1, 2, 384, 8, 8},
};

class AttentionBackwardGpu : public AttentionGpu {
 protected:
  std::vector<Argument> placed(const std::vector<HostTensor>& operands, AttentionLies lies) {
    std::vector<Argument> inputs;
    for (const HostTensor& each : operands) inputs.emplace_back(place(each, lies));
    return inputs;
  }

  std::vector<HostTensor> fetched(const Outputs& outputs) {
    outputs.wait();
    std::vector<HostTensor> results;
    for (size_t i = 0; i < outputs.size(); ++i) {
      results.push_back(fetch(std::get<Tensor>(outputs[i])));
    }
    return results;
  }

  // Runs a fusion of backwardOf(), and compares all its outputs with the exact results.
  void expectBackward(FusionExecutor& executor, DType dtype, bool causal, ForwardUse use,
                      const AttentionShape& x, AttentionLies lies) {
    const auto operands = backwardOperands(dtype, x, lies == AttentionLies::Stretched);
    const std::vector<HostTensor> got = fetched(executor.run(placed(operands, lies)));
    const std::string what =
        fmt::format("{} causal {} use {} queries {} keys {} width {} lies {}", name(dtype), causal,
                    static_cast<int>(use), x.queries, x.keys, x.width, static_cast<int>(lies));
    expectGradients(x, causal, operands, got, what);
    if (use == ForwardUse::None) return;
    const HostTensor y = use == ForwardUse::Reshaped ? splitHeads(got[3], x) : got[3];
    expectAttention(x, causal, operands[1], operands[2], operands[3], y, what);
  }
};

TEST_F(AttentionBackwardGpu, GradientsAreWithinBoundsForEveryLayout) {
  for (DType dtype : {DType::BF16, DType::F16}) {
    for (bool causal : {false, true}) {
      FusionExecutor executor(backwardOf(dtype, causal), {device_.get()});
      for (const AttentionShape& x : kBackwardShapes) {
        for (AttentionLies lies :
             {AttentionLies::Plain, AttentionLies::TokensOut, AttentionLies::WithGaps,
              AttentionLies::Stretched, AttentionLies::Misaligned, AttentionLies::Between}) {
          if (lies != AttentionLies::Plain && &x != kBackwardShapes) continue;
          expectBackward(executor, dtype, causal, ForwardUse::Returned, x, lies);
        }
      }
    }
  }
}

TEST_F(AttentionBackwardGpu, GradientsAreWithinBoundsForEveryUseOfTheForward) {
  for (ForwardUse use : {ForwardUse::None, ForwardUse::Reshaped}) {
    for (bool causal : {false, true}) {
      const Fusion fusion = backwardOf(DType::BF16, causal, use);
      const std::string text = programText(fusion, kBackwardShapes[1]);
      const bool reuses = contains(text, "attention_backward(%g, %q, %k, %v, %y, %y_log_sums");
      EXPECT_EQ(reuses, use == ForwardUse::Reshaped) << text;
      EXPECT_EQ(contains(text, "slot %y: bf16[b, h, t, f] hinted order=[0, 2, 1, 3]"), reuses)
          << text;
      FusionExecutor executor(fusion, {device_.get()});
      for (const AttentionShape& x : kBackwardShapes) {
        expectBackward(executor, DType::BF16, causal, use, x, AttentionLies::Plain);
      }
    }
  }
}

// The log-sums have another memory order than the one that cuDNN needs, so heddle copies them.
TEST_F(AttentionBackwardGpu, LogSumsInAnotherMemoryOrderGiveEqualGradients) {
  const AttentionShape& x = kBackwardShapes[1];
  const std::string text = programText(backwardOf(DType::BF16, false), x);
  const std::string slot = "slot %y_log_sums: f32[b, h, t]";
  ASSERT_TRUE(contains(text, slot + "\n")) << text;
  std::string turned = text;
  turned.insert(turned.find(slot) + slot.size(), " order=[2, 1, 0]");
  const std::vector<HostTensor> operands = backwardOperands(DType::BF16, x, false);
  std::vector<std::vector<HostTensor>> results;
  for (const std::string& each : {text, turned}) {
    Executable executable(parseProgram(each), {device_.get()});
    results.push_back(fetched(executable.run(placed(operands, AttentionLies::Plain))));
    expectGradients(x, false, operands, results.back(), fmt::format("program {}", results.size()));
  }
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(attentionNumbers(results[0][i]), attentionNumbers(results[1][i])) << "output " << i;
  }
}

// All scores are about -128, so their exponentials are 0 in f32. A kernel that gave keys after the
// last one the score 0 would then compute infinity or NaN. Large terms cancel, so only the bounds
// are tested.
TEST_F(AttentionBackwardGpu, GradientsAreWithinBoundsWhenAllExponentialsVanish) {
  for (bool causal : {false, true}) {
    FusionExecutor executor(backwardOf(DType::BF16, causal), {device_.get()});
    for (const AttentionShape& x :
         {AttentionShape{1, 2, 70, 128, 64, 64}, AttentionShape{1, 2, 100, 100, 64, 64},
          AttentionShape{1, 2, 64, 192, 64, 64}}) {
      std::vector<HostTensor> operands = backwardOperands(DType::BF16, x, false);
      for (size_t each : {size_t{1}, size_t{2}}) {
        for (int64_t i = 0; i < operands[each].numel(); ++i) {
          const double value = toDouble(operands[each].at(i));
          operands[each].set(i, Scalar(value / 4 + (each == 1 ? 4.0 : -4.0)));
        }
      }
      expectGradients(
          x, causal, operands, fetched(executor.run(placed(operands, AttentionLies::Plain))),
          fmt::format("causal {} queries {} keys {}", causal, x.queries, x.keys), false);
    }
  }
}

TEST_F(AttentionBackwardGpu, BackwardIsOneDeterministicCallIntoPreallocatedMemory) {
  const AttentionShape x{2, 3, 200, 256, 64, 32};
  const std::string text = programText(backwardOf(DType::BF16, true), x);
  EXPECT_TRUE(contains(text, "attention(%q, %k, %v, causal=true) -> (%y, %y_log_sums)")) << text;
  EXPECT_TRUE(contains(text,
                       "attention_backward(%g, %q, %k, %v, %y, %y_log_sums, causal=true) -> "
                       "(%dq, %dk, %dv)"))
      << text;
  EXPECT_FALSE(contains(text, "launch")) << text;
  Executable executable(parseProgram(text), {device_.get()});
  const std::vector<HostTensor> operands = backwardOperands(DType::BF16, x, false);
  const std::vector<Argument> inputs = placed(operands, AttentionLies::Plain);
  std::vector<HostTensor> first;
  for (AttentionLies lies :
       {AttentionLies::Plain, AttentionLies::Plain, AttentionLies::TokensOut,
        AttentionLies::WithGaps, AttentionLies::Misaligned, AttentionLies::Between}) {
    RunOptions options;
    for (size_t i : {size_t{1}, size_t{2}, size_t{3}, size_t{0}}) {
      options.preallocated.push_back(place(HostTensor(DType::BF16, operands[i].sizes), lies));
    }
    const std::vector<HostTensor> got = fetched(executable.run(inputs, options));
    for (const Tensor& each : options.preallocated) expectZerosBetween(each);
    if (first.empty()) {
      first = got;
      expectGradients(x, true, operands, got, "preallocated");
      expectAttention(x, true, operands[1], operands[2], operands[3], got[3], "preallocated");
    }
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(attentionNumbers(got[i]), attentionNumbers(first[i]))
          << "output " << i << " lies " << static_cast<int>(lies);
    }
  }
}

TEST_F(AttentionBackwardGpu, BackwardsThatCudnnRefusesRunAsOps) {
  FusionExecutor executor(backwardOf(DType::F16, false), {device_.get()});
  constexpr AttentionShape kShapes[] = {
      {1, 2, 9, 128, 20, 8}, {1, 2, 9, 128, 136, 16}, {1, 2, 1, 128, 8, 8}, {1, 2, 0, 128, 8, 8},
      {1, 2, 5, 0, 8, 8},    {1, 2, 9, 11, 8, 8},     {1, 2, 9, 128, 8, 8}};
  for (const AttentionShape& x : kShapes) {
    const bool fits = &x == std::end(kShapes) - 1;
    const std::string text = programText(backwardOf(DType::F16, false), x);
    EXPECT_EQ(contains(text, "attention_backward(%g"), fits) << text;
    const std::vector<HostTensor> operands = backwardOperands(DType::F16, x, false);
    expectGradients(x, false, operands,
                    fetched(executor.run(placed(operands, AttentionLies::Plain))),
                    fmt::format("queries {} keys {} width {}", x.queries, x.keys, x.width));
  }
}

}  // namespace
}  // namespace heddle::host::attention_backward_gpu_test
