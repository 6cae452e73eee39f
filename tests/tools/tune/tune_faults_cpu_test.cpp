// Tests which candidates tuning leaves out, and errors of tuning. No test depends on a time.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/host/faulty_device.h"
#include "tests/tools/tuning.h"
#include "tools/tune/kernel_runs.h"
#include "tools/tune/tune_report.h"

namespace heddle::tools::tune_faults_cpu_test {
namespace {

using host::testing::programOf;
using tuning::FakeTimer;
using tuning::kSizes;

class TuneFaults : public tuning::Tuning {};

TEST_F(TuneFaults, FaultyCandidatesAreReportedAndNeverChosen) {
  TuneOptions options;
  options.makeTimer = [](const host::LaunchedKernel&, const std::vector<codegen::Candidate>& all,
                         std::vector<TunedKernel::Row>& rows) {
    rows.back().fault = "wrong results: on purpose";
    return std::make_unique<FakeTimer>(all.size(), all.size() - 1);
  };
  const std::vector<TunedKernel> kernels = tune(program_, kSizes, 1, *device_, images_, options);
  for (const TunedKernel& kernel : kernels) {
    EXPECT_NE(kernel.chosen, kernel.rows.size() - 1);
    EXPECT_EQ(kernel.rows.back().runs, 0);
  }
  EXPECT_NE(tuneText({"p.hostir", kernels}, false).find("; wrong results: on purpose, "),
            std::string::npos);
  EXPECT_NE(tuneCsv({"p.hostir", kernels}).find(",wrong results: on purpose,0,"),
            std::string::npos);
}

TEST_F(TuneFaults, CandidatesThatSpillRegistersAreLeftOut) {
  TuneOptions options;
  options.makeTimer = [](const host::LaunchedKernel&, const std::vector<codegen::Candidate>& all,
                         std::vector<TunedKernel::Row>& rows) {
    rows[0].local_bytes = kMostLocalBytes;
    rows[1].local_bytes = kMostLocalBytes + 1;
    return std::make_unique<FakeTimer>(all.size(), 1);
  };
  for (const TunedKernel& kernel : tune(program_, kSizes, 1, *device_, images_, options)) {
    EXPECT_NE(kernel.chosen, 1u);
    EXPECT_EQ(kernel.rows[0].fault, "");
    EXPECT_EQ(kernel.rows[1].fault,
              "spills registers: 257 bytes of local memory per thread, at most 256 are allowed");
    EXPECT_EQ(kernel.rows[1].runs, 0);
  }
}

TEST(TuneFaultsSpilled, SpillingIsNoFaultIfEveryUsableCandidateSpills) {
  std::vector<TunedKernel::Row> rows(3);
  rows[0].local_bytes = 1000;
  rows[1].local_bytes = 2000;
  rows[2].fault = "wrong results: on purpose";
  dropSpilled(rows);
  EXPECT_EQ(rows[0].fault, "");
  EXPECT_EQ(rows[1].fault, "");
  EXPECT_EQ(rows[2].fault, "wrong results: on purpose");
}

// A device whose kernels use local memory: the first one the least.
class SpillingDevice : public host::testing::FaultyDevice {
 public:
  std::optional<host::KernelResources> resourcesOf(host::KernelHandle,
                                                   const codegen::LaunchStage&) override {
    host::KernelResources used;
    used.registers = 255;
    used.local_bytes = 4096 * questions_++;
    return used;
  }

 private:
  int64_t questions_ = 0;
};

TEST_F(TuneFaults, LocalMemoryOfTheDeviceIsBounded) {
  const host::Program program = programOf(R"(
kernel @double {
  fusion double(%x: f32[n, m]) {
    %y = add(%x, %x)
    return %y
  }
}
program p(%x: f32[n, m]) -> (%y) with n = 4, m = 32 {
  slot %y: f32[n, m]
  %y = allocate
  launch @double(%x) -> (%y)
}
)");
  SpillingDevice device;
  const std::vector<TunedKernel> kernels = tune(program, kSizes, 1, device, images_, {});
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].chosen, 0u);
  EXPECT_EQ(kernels[0].rows[0].fault, "");
  EXPECT_EQ(kernels[0].rows[0].registers, 255);
  ASSERT_GE(kernels[0].rows.size(), 2u);
  for (size_t i = 1; i < kernels[0].rows.size(); ++i) {
    EXPECT_TRUE(kernels[0].rows[i].fault.starts_with("spills registers: "));
  }
}

TEST_F(TuneFaults, KernelWithoutAUsableCandidateIsAnError) {
  TuneOptions options;
  options.makeTimer = [](const host::LaunchedKernel&, const std::vector<codegen::Candidate>& all,
                         std::vector<TunedKernel::Row>& rows) {
    for (TunedKernel::Row& row : rows) row.fault = "does not compile: on purpose";
    return std::make_unique<FakeTimer>(all.size(), 0);
  };
  EXPECT_EQ(
      host::testing::userErrorOf([&] { tune(program_, kSizes, 1, *device_, images_, options); }),
      "kernel center: no candidate can be used; the first one does not compile: on purpose");
}

// Measures the kernel of `program` once per call of the device, and breaks the device at this call
// with breakAt(device, call). Returns the messages of the errors whose code is OutOfMemory.
template <class BreakAt>
std::string exhaustionErrors(const host::Program& program, codegen::ImageCache& images,
                             const BreakAt& breakAt) {
  host::testing::FaultyDevice device;
  std::string errors;
  const auto visit = [&](const host::LaunchedKernel& kernel) {
    const std::vector<codegen::Candidate> all = kernel.candidates();
    bool fails = true;
    for (int64_t call = 0; fails; ++call) {
      breakAt(device, call);
      try {
        KernelRuns(kernel, all, std::vector<std::string>(all.size()), device, images, 0);
      } catch (const UserError& error) {
        if (error.code() == ErrorCode::OutOfMemory) errors += std::string(error.what()) + "\n";
      }
      fails = device.hasFailed();
      device.repair();
    }
  };
  host::forEachLaunchedKernel(program, kSizes, 0, 1, device.kind(), host::Launches::First, visit);
  return errors;
}

// Every allocation of the measurement fails once. If the block that flushes the caches cannot be
// allocated, the measurement uses a smaller one.
TEST_F(TuneFaults, ExhaustedMemoryNamesTheKernelAndTheOperand) {
  const std::string errors =
      exhaustionErrors(program_, images_, [](auto& device, int64_t call) { device.failAt(call); });
  const std::string cannot = "tuning kernel center: cannot allocate ";
  for (const char* operand :
       {"input %x (512 bytes): ", "output %y (512 bytes): ", "the workspace ("}) {
    EXPECT_NE(errors.find(cannot + operand), std::string::npos) << operand << "\n" << errors;
  }
  EXPECT_EQ(errors.find("caches"), std::string::npos) << errors;
}

// From one allocation on, all of them fail. The message about the caches names the smallest block.
TEST_F(TuneFaults, NoMemoryForTheSmallestFlushIsAnError) {
  const std::string errors =
      exhaustionErrors(program_, images_, [](auto& device, int64_t call) { device.loseAt(call); });
  EXPECT_NE(
      errors.find("tuning kernel center: cannot allocate the block that replaces the contents "
                  "of the caches (8388608 bytes): "),
      std::string::npos)
      << errors;
}

// Runs only the first kernel.
class ForgetfulDevice : public host::testing::FaultyDevice {
 public:
  void launch(host::KernelHandle kernel, const codegen::LaunchStage& stage, const std::byte* args,
              host::Stream stream, const host::Issue& issue) override {
    if (launches_++ == 0) FaultyDevice::launch(kernel, stage, args, stream, issue);
  }

 private:
  int launches_ = 0;
};

// The right results are 0, which is also what unwritten memory often holds.
TEST_F(TuneFaults, CandidateThatWritesNothingIsLeftOut) {
  const host::Program program = programOf(R"(
kernel @zero {
  fusion zero(%x: f32[n, m]) {
    %y = sub(%x, %x)
    return %y
  }
}
program p(%x: f32[n, m]) -> (%y) with n = 4, m = 32 {
  slot %y: f32[n, m]
  %y = allocate
  launch @zero(%x) -> (%y)
}
)");
  ForgetfulDevice device;
  const auto visit = [&](const host::LaunchedKernel& kernel) {
    const std::vector<codegen::Candidate> all = kernel.candidates();
    ASSERT_GE(all.size(), 2u);
    const std::vector<std::string> orders(all.size());
    const std::vector<std::string> faults =
        KernelRuns(kernel, all, orders, device, images_, 0).faults();
    EXPECT_EQ(faults[0], "");
    for (size_t i = 1; i < faults.size(); ++i) {
      EXPECT_TRUE(faults[i].starts_with("wrong results: element 0 in the memory of output 0 is "))
          << faults[i];
    }
  };
  host::forEachLaunchedKernel(program, kSizes, 0, 1, device.kind(), host::Launches::First, visit);
}

// Changes the last bit of the first output of every kernel except the first one.
class InexactDevice : public host::testing::FaultyDevice {
 public:
  void launch(host::KernelHandle kernel, const codegen::LaunchStage& stage, const std::byte* args,
              host::Stream stream, const host::Issue& issue) override {
    FaultyDevice::launch(kernel, stage, args, stream, issue);
    if (launches_++ == 0) return;
    std::byte* output = nullptr;
    for (const codegen::LaunchStage::PointerPatch& patch : stage.pointers) {
      if (patch.operand == 1) std::memcpy(&output, args + patch.offset, sizeof(output));
    }
    hostTask([output] { *output ^= std::byte{1}; }, stream, issue);
  }

 private:
  int launches_ = 0;
};

TEST_F(TuneFaults, CandidatesWithEqualOrdersMustGiveEqualBits) {
  const auto visit = [&](const host::LaunchedKernel& kernel) {
    if (kernel.kernel.name != "double") return;
    const std::vector<codegen::Candidate> all = kernel.candidates();
    ASSERT_GE(all.size(), 2u);
    const auto faultsWith = [&](const std::vector<std::string>& orders) {
      InexactDevice device;
      return KernelRuns(kernel, all, orders, device, images_, 0).faults();
    };
    std::vector<std::string> orders(all.size(), "same");
    const std::vector<std::string> faults = faultsWith(orders);
    EXPECT_EQ(faults[0], "");
    for (size_t i = 1; i < faults.size(); ++i) {
      EXPECT_EQ(faults[i],
                "wrong results: other bits than candidate 0, which adds in the same order");
    }
    for (size_t i = 0; i < all.size(); ++i) orders[i] = fmt::format("order {}", i);
    for (const std::string& fault : faultsWith(orders)) EXPECT_EQ(fault, "");
  };
  host::forEachLaunchedKernel(program_, kSizes, 0, 1, device_->kind(), host::Launches::First,
                              visit);
}

}  // namespace
}  // namespace heddle::tools::tune_faults_cpu_test
