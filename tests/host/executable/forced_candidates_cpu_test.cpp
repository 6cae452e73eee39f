// Tests kernels whose candidate the host program names. Results are compared with numbers that the
// test computes itself.
#include <gtest/gtest.h>

#include <cmath>

#include "host/device/cpu/cpu_device.h"
#include "host/device/null/null_device.h"
#include "host/inspect.h"
#include "tests/host/example_files.h"
#include "tests/host/executable_common.h"
#include "tests/host/on_ranks.h"

namespace heddle::host::forced_candidates_cpu_test {
namespace {

using testing::deviceFloats;
using testing::floatsOf;
using testing::programOf;

// Two kernels with equal segments, so that only the candidate distinguishes them.
std::string programWith(const std::string& first, const std::string& second) {
  const std::string body =
      " {\n  fusion f(%x: f32[n, m]) {\n    %s = sum(%x, axes=[1])\n"
      "    %e = broadcast(%s, axes=[1])\n    %y = sub(%x, %e)\n    return %y\n  }\n}\n";
  return "kernel @k0" + first + body + "kernel @k1" + second + body +
         "program p(%x: f32[n, m]) -> (%y, %z) with n = 6, m = 40 {\n"
         "  slot %y: f32[n, m]\n  slot %z: f32[n, m]\n  %y = allocate\n"
         "  launch @k0(%x) -> (%y)\n  %z = allocate\n  launch @k1(%y) -> (%z)\n}\n";
}

constexpr int64_t kRows = 6;
constexpr int64_t kColumns = 40;

std::vector<float> centered(const std::vector<float>& x) {
  std::vector<float> y = x;
  for (int64_t row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < kColumns; ++i) sum += x[static_cast<size_t>(row * kColumns + i)];
    for (int64_t i = 0; i < kColumns; ++i) {
      y[static_cast<size_t>(row * kColumns + i)] -= static_cast<float>(sum);
    }
  }
  return y;
}

// Multiples of 1/8, whose sums are exact in any order.
std::vector<float> someValues() {
  std::vector<float> x;
  for (int i = 0; i < kRows * kColumns; ++i) x.push_back(static_cast<float>(i * 7 % 33 - 16) / 8);
  return x;
}

std::vector<KernelCandidates> candidatesOf(const Program& program) {
  return kernelCandidates(program, {{"n", kRows}, {"m", kColumns}}, 0, 1, DeviceKind::Cpu);
}

TEST(ForcedCandidates, EveryPairOfCandidatesGivesTheRightNumbers) {
  const std::vector<float> x = someValues();
  const std::vector<float> y = centered(x);
  const std::vector<float> z = centered(y);
  const size_t count = candidatesOf(programOf(programWith("", ""))).at(0).rows.size();
  ASSERT_GE(count, 2u);
  const auto device = makeCpuDevice({.threads = 2, .adversarial_seed = 5});
  for (size_t a = 0; a < count; ++a) {
    for (size_t b = 0; b < count; ++b) {
      const Program program = testing::printedAndParsed(programOf(
          programWith(" candidate=" + std::to_string(a), " candidate=" + std::to_string(b))));
      Executable executable(program, {device.get(), nullptr, nullptr});
      const Tensor input = deviceFloats(*device, x, {kRows, kColumns});
      const Outputs outputs = executable.run({input});
      outputs.wait();
      EXPECT_EQ(floatsOf(*device, outputs[0]), y) << a << b;
      EXPECT_EQ(floatsOf(*device, outputs[1]), z) << a << b;
      // Two kernels that use the same candidate share their text. Other kernels do not.
      EXPECT_EQ(executable.stats().kernel_texts, a == b ? 1 : 2) << a << b;
    }
  }
}

TEST(ForcedCandidates, InspectionShowsTheUsedCandidate) {
  const std::vector<KernelCandidates> plain = candidatesOf(programOf(programWith("", "")));
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain[0].used, 0u);
  const std::vector<KernelCandidates> forced =
      candidatesOf(programOf(programWith("", " candidate=\"sweeps\"")));
  EXPECT_EQ(forced[0].used, 0u);
  ASSERT_LT(forced[1].used, forced[1].rows.size());
  EXPECT_EQ(forced[1].rows[forced[1].used].parameters, "sweeps");
  EXPECT_GT(forced[1].rows[forced[1].used].launches, 1u);
  const auto texts = kernelTexts(programOf(programWith("", " candidate=\"sweeps\"")),
                                 {{"n", kRows}, {"m", kColumns}}, 0, 1, DeviceKind::Cpu);
  EXPECT_NE(texts[0].source, texts[1].source);
  EXPECT_NE(texts[0].schedule, texts[1].schedule);
}

TEST(ForcedCandidates, NewSizesUseTheSameCandidate) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 5});
  const Program program = programOf(programWith(" candidate=\"sweeps\"", ""));
  Executable executable(program, {device.get(), nullptr, nullptr});
  for (const int64_t rows : {2, 3, 2, 5}) {
    std::vector<float> x(static_cast<size_t>(rows * 8), 1);
    const Outputs outputs = executable.run({deviceFloats(*device, x, {rows, 8})});
    outputs.wait();
    EXPECT_EQ(floatsOf(*device, outputs[0]), std::vector<float>(x.size(), -7)) << rows;
  }
}

TEST(ForcedCandidates, UnknownCandidateListsTheKnownOnes) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 5});
  for (const std::string asked : {"99", "\"squares\"", "\"rows looped=7\""}) {
    const Program program = programOf(programWith("", " candidate=" + asked));
    const std::string error = testing::userErrorOf([&] {
      Executable executable(program, {device.get(), nullptr, nullptr});
      executable.run({deviceFloats(*device, someValues(), {kRows, kColumns})}).wait();
    });
    EXPECT_NE(error.find("instruction 3 (launch @k1(%y) -> (%z) stream=0)"), std::string::npos)
        << error;
    EXPECT_NE(error.find("kernel k1 has no candidate"), std::string::npos) << error;
    EXPECT_NE(error.find("\n  0: rows looped=0\n  1: "), std::string::npos) << error;
  }
}

TEST(ForcedCandidates, MalformedTextsAreRejected) {
  const auto errorOf = [](const std::string& candidate) {
    return testing::userErrorOf([&] { programOf(programWith(candidate, "")); });
  };
  const std::string expected = "expected the index of a candidate, or its parameters in quotes";
  EXPECT_NE(errorOf(" candidate=loops").find(expected), std::string::npos);
  EXPECT_NE(errorOf(" candidate=-1").find(expected), std::string::npos);
  EXPECT_NE(errorOf(" candidate").find("expected '='"), std::string::npos) << errorOf(" candidate");
  for (const char* text : {" candidate=\"\"", " candidate=\"a b\"", " candidate=\"unroll=x\""}) {
    EXPECT_NE(errorOf(text).find("expected an index, or parameters such as"), std::string::npos)
        << errorOf(text);
  }
}

TEST(ForcedCandidates, ProgramsWithOtherCandidatesDiffer) {
  const Program one = programOf(programWith(" candidate=1", ""));
  EXPECT_TRUE(sameProgram(one, testing::printedAndParsed(one)));
  EXPECT_FALSE(sameProgram(one, programOf(programWith(" candidate=2", ""))));
  EXPECT_FALSE(sameProgram(one, programOf(programWith("", ""))));
}

TEST(ForcedCandidates, RanksWithDifferentCandidatesAreReported) {
  const auto errors = testing::onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 5});
    const std::string candidate = world.rank() == 0 ? " candidate=0" : " candidate=1";
    Executable(programOf(programWith(candidate, "")), {device.get(), &world, nullptr});
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("kernel @k0 candidate="), std::string::npos) << error;
  }
}

TEST(ForcedCandidates, RanksRunTheForcedCandidate) {
  const auto errors = testing::onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 5});
    Executable executable(programOf(programWith(" candidate=\"sweeps\"", " candidate=1")),
                          {device.get(), &world, nullptr});
    const Outputs outputs =
        executable.run({deviceFloats(*device, someValues(), {kRows, kColumns})});
    outputs.wait();
    EXPECT_EQ(floatsOf(*device, outputs[1]), centered(centered(someValues())));
    world.barrier();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST(ForcedCandidates, NullDeviceIgnoresTheCandidate) {
  const auto counts = std::make_shared<NullCounts>();
  const auto device = makeNullDevice(counts);
  Executable executable(programOf(programWith(" candidate=99", "")),
                        {device.get(), nullptr, nullptr});
  executable.run({testing::nullTensor({kRows, kColumns})}).wait();
  EXPECT_EQ(counts->launch, 2);
}

}  // namespace
}  // namespace heddle::host::forced_candidates_cpu_test
