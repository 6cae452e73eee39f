#include <gtest/gtest.h>

#include <string>

#include "tests/host/executable_common.h"
#include "tools/tune/choices_file.h"

namespace heddle::tools::choices_file_cpu_test {
namespace {

TEST(ChoicesFile, FileIsWrittenAndRead) {
  const Choices choices = {{std::string(64, 'a'), "loops lanes=4"},
                           {std::string(64, '0'), "sweeps"},
                           {std::string(64, '1'), "algorithm engine=2 knobs=24:7"},
                           {std::string(64, '2'), "overlap off"}};
  EXPECT_EQ(parseChoices(printChoices(choices, "cpu"), "file"), choices);
  const auto errorOf = [](const std::string& text) {
    return host::testing::userErrorOf([&] { parseChoices(text, "file"); });
  };
  EXPECT_EQ(errorOf(""), "file:1: expected 'heddle choices 1'");
  EXPECT_EQ(errorOf("heddle choices 2\n"), "file:1: expected 'heddle choices 1'");
  const std::string header = "heddle choices 1\n";
  const std::string expected =
      "file:2: expected a key of 64 hexadecimal digits and a choice such as 'loops unroll=2', "
      "'algorithm 01ab' or 'overlap off'";
  for (const std::string& line :
       {std::string("abc loops"), std::string(64, 'g') + " loops", std::string(64, 'a'),
        std::string(64, 'a') + " a b", std::string(65, 'a') + " loops"}) {
    EXPECT_EQ(errorOf(header + line + "\n"), expected) << line;
  }
  EXPECT_EQ(parseChoices(header + "\n# comment\n", "file"), Choices());
}

}  // namespace
}  // namespace heddle::tools::choices_file_cpu_test
