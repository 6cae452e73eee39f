#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "host/compile.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/rank_harness.h"

// One step of Adam in place on many parameters of odd sizes, compared with the reference evaluator.
namespace heddle::host::adam_steps {

// Returns a fusion that makes the step. Every fifth parameter is sharded if there are several
// ranks. The norm %s scales all gradients.
inline Fusion adamStep(int parameters, bool sharded) {
  const int least = sharded ? 2 : 1;  // axes of one element are not sharded
  std::string inputs;
  std::string body;
  std::string outputs;
  for (int p = 0; p < parameters; ++p) {
    const std::string shape = p % 3 == 0 ? fmt::format("[{}]", p * 7 % 97 + least)
                                         : fmt::format("[{}, {}]", p % 7 + least, p * 5 % 61 + 3);
    const std::string type =
        "f32" + shape + (sharded ? p % 5 == 0 ? " shard(@m, 0: x)" : " shard(@m)" : "");
    for (const char* name : {"w", "m", "v", "g"})
      inputs += fmt::format("%{}{}: {}, ", name, p, type);
    body += fmt::format(
        "%h{0} = mul(%g{0}, %s) %a{0} = mul(%m{0}, 0.9) %b{0} = mul(%h{0}, 0.1)\n"
        "%m1_{0} = add(%a{0}, %b{0}) %c{0} = mul(%v{0}, 0.999) %d{0} = mul(%h{0}, %h{0})\n"
        "%e{0} = mul(%d{0}, 0.001) %v1_{0} = add(%c{0}, %e{0}) %f{0} = abs(%v1_{0})\n"
        "%i{0} = sqrt(%f{0}) %j{0} = add(%i{0}, 0.25) %k{0} = mul(%m1_{0}, %rate)\n"
        "%l{0} = div(%k{0}, %j{0}) %w1_{0} = sub(%w{0}, %l{0})\n",
        p);
    outputs += fmt::format("{1}%w1_{0} in! %w{0}, %m1_{0} in! %m{0}, %v1_{0} in! %v{0}", p,
                           p > 0 ? ", " : "");
  }
  return parseFusion(fmt::format("heddle 1\n{}fusion adam({}%s: f32[], %rate: f64 = 0.01) {{\n{}"
                                 "return {}\n}}\n",
                                 sharded ? "mesh @m = [x=ranks]\n" : "", inputs, body, outputs),
                     "adam");
}

// Runs the step, and expects one launch and the results of the reference.
inline void expectStep(int parameters, int ranks, DeviceKind kind) {
  SCOPED_TRACE(fmt::format("{} parameters, {} rank(s)", parameters, ranks));
  const Fusion fusion = adamStep(parameters, ranks > 1);
  CompileOptions compile_options;
  compile_options.passes.verify_each = true;
  const Program program = compile(fusion, ranks, compile_options);
  const auto launches = std::count_if(
      program.body.begin(), program.body.end(),
      [](const Instruction& x) { return std::holds_alternative<LaunchKernel>(x.op); });
  EXPECT_EQ(launches, 1);
  testing::HarnessOptions options;
  options.ranks = ranks;
  options.kind = kind;
  options.cpu.adversarial_seed = 1;
  const std::vector<HostTensor> expected = testing::expectedOf(fusion, options);
  const std::vector<HostTensor> got = testing::runProgram(program, options);
  ASSERT_EQ(got.size(), static_cast<size_t>(3 * parameters));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LT(testing::relativeError(got[i], expected[i]), 1e-5) << "output " << i;
  }
}

}  // namespace heddle::host::adam_steps
