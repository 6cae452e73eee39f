// Tests what is known about the launches of a program before it runs.
#include "host/inspect.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "host/compile.h"
#include "ir/text/fusion_text.h"

namespace heddle::host::inspect_test {
namespace {

// Returns the known values of the scalars of the only kernel.
std::vector<int64_t> scalarsOf(const std::string& fusion, const SizeBindings& sizes) {
  const Program program = compile(parseFusion("heddle 1\nfusion f" + fusion), 1, {});
  std::vector<int64_t> values;
  int kernels = 0;
  forEachLaunchedKernel(program, sizes, 0, 1, DeviceKind::Cpu, Launches::All,
                        [&](const LaunchedKernel& kernel) {
                          ++kernels;
                          for (const std::optional<Scalar>& value : kernel.scalars) {
                            if (value) values.push_back(toInt(*value));
                          }
                        });
  EXPECT_EQ(kernels, 1);
  std::sort(values.begin(), values.end());
  return values;
}

TEST(Inspect, SizesDecideTheScalarsOfALaunch) {
  // The kernel compares the index of an element with the ends of the parts.
  EXPECT_EQ(scalarsOf("(%a: f32[n], %b: f32[m], %c: f32[n]) {\n  %y = cat(%a, %b, %c, axis=0)\n"
                      "  return %y\n}\n",
                      {{"n", 5}, {"m", 7}}),
            (std::vector<int64_t>{5, 12}));
}

TEST(Inspect, OtherScalarsOfALaunchAreUnknown) {
  const std::string text = "(%a: f32[n], %s: f64) {\n  %y = mul(%a, %s)\n  return %y\n}\n";
  EXPECT_EQ(scalarsOf(text, {{"n", 5}}), std::vector<int64_t>());
}

}  // namespace
}  // namespace heddle::host::inspect_test
