#include "codegen/kernel_choice.h"

#include <gtest/gtest.h>

#include <string>

namespace heddle::codegen::kernel_choice_test {
namespace {

TEST(KernelChoice, TextIsParsedAndPrinted) {
  for (const std::string text : {"loops", "loops lanes=4", "lanes=4 unroll=2", "rows looped=0"}) {
    const auto choice = parseKernelChoice(text);
    ASSERT_TRUE(choice.has_value()) << text;
    EXPECT_EQ(print(*choice), text);
  }
  EXPECT_EQ(print(*parseKernelChoice(" loops,lanes=4, unroll=2 ")), "loops lanes=4 unroll=2");
  for (const std::string text : {"", " ", "a b", "a=1 loops", "=1", "a=", "a=x", "a=1x", "a=1 a=2",
                                 "a=99999999999999999999", "a=1=2"}) {
    EXPECT_FALSE(parseKernelChoice(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace heddle::codegen::kernel_choice_test
