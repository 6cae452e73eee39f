#include <gtest/gtest.h>

#include "host/job/communicators.h"
#include "ir/base/check.h"
#include "tests/host/executable_common.h"
#include "tests/host/faulty_device.h"
#include "tests/host/rank_harness.h"

namespace heddle::host::communicators_cpu_test {
namespace {

using testing::FaultyDevice;

// A device without a compiler. If `search_fails`, even the search for a compiler throws.
class DeviceWithoutCompiler : public FaultyDevice {
 public:
  explicit DeviceWithoutCompiler(bool search_fails) : search_fails_(search_fails) {}
  const codegen::KernelCompiler* compiler() const override {
    HEDDLE_USER_CHECK(!search_fails_, "the disk is full");
    return nullptr;
  }
  std::string whyNoCompiler() const override { return "there is no compiler"; }

 private:
  bool search_fails_;
};

// Returns the error of each of two ranks that create an Executable. `lacks[r]`: rank r has no
// compiler.
std::vector<std::string> errorsOf(const std::vector<bool>& lacks, bool search_fails,
                                  const std::string& body) {
  const Program program = testing::programOf(
      "kernel @k {\n  fusion k(%a: f32[4]) {\n    %b = neg(%a)\n    return %b\n  }\n}\n"
      "program p(%x: f32[4]) -> (%y) {\n  slot %y: f32[4]\n  %y = allocate stream=0\n" +
      body + "}\n");
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, 2);
  std::vector<std::string> errors(2);
  const auto rank = [&](size_t r) {
    std::unique_ptr<Device> device = std::make_unique<FaultyDevice>();
    if (lacks[r]) device = std::make_unique<DeviceWithoutCompiler>(search_fails);
    errors[r] = testing::userErrorOf([&] {
      Executable(program, Context{device.get(), worlds[r].get(), nullptr});
    });
  };
  std::thread other([&] { rank(1); });
  rank(0);
  other.join();
  return errors;
}

const std::string kLaunch = "  launch @k(%x) -> (%y) stream=0\n";

TEST(Communicators, RankWithoutCompilerIsReportedAtTheStart) {
  for (const bool search_fails : {false, true}) {
    const std::string why = search_fails ? "the disk is full" : "there is no compiler";
    for (const std::string& error : errorsOf({false, true}, search_fails, kLaunch)) {
      EXPECT_NE(error.find("rank 1 cannot compile kernels, but rank 0 can"), std::string::npos)
          << error;
      EXPECT_NE(error.find("on rank 1: " + why), std::string::npos) << error;
    }
  }
}

TEST(Communicators, EqualRanksAndProgramsWithoutKernelsAreAccepted) {
  const std::vector<std::string> none(2);
  EXPECT_EQ(errorsOf({true, true}, false, kLaunch), none);
  EXPECT_EQ(errorsOf({false, false}, false, kLaunch), none);
}

}  // namespace
}  // namespace heddle::host::communicators_cpu_test
