#include "tests/text/runner/frame.h"

#include <sstream>
#include <string_view>

#include "ir/base/check.h"

namespace heddle::text_tests {
namespace {

constexpr std::string_view kEach = "\n--- each\n";
constexpr std::string_view kHole = "...";

}  // namespace

std::string Frame::with(const std::string& line) const {
  const size_t hole = text.find(kHole);
  HEDDLE_USER_CHECK(hole != std::string::npos, "the text before `--- each` has no `{}`", kHole);
  return text.substr(0, hole) + line + text.substr(hole + kHole.size());
}

std::optional<Frame> frameOf(const std::string& input) {
  const size_t each = input.find(kEach);
  if (each == std::string::npos) return std::nullopt;
  Frame frame{input.substr(0, each + 1), {}};
  std::istringstream in(input.substr(each + kEach.size()));
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) frame.lines.push_back(line);
  }
  HEDDLE_USER_CHECK(!frame.lines.empty(), "there is no line after `--- each`");
  return frame;
}

std::string outcomeOfLine(const std::string& line, const std::string& outcome) {
  std::string text = line + "\n";
  std::istringstream in(outcome);
  for (std::string each; std::getline(in, each);) text += "    " + each + "\n";
  return text;
}

}  // namespace heddle::text_tests
