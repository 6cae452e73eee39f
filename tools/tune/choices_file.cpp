#include "tools/tune/choices_file.h"

#include <algorithm>
#include <sstream>

#include "codegen/kernel_choice.h"
#include "host/device/kernel_choices.h"
#include "ir/base/check.h"
#include "ir/system/files.h"

namespace heddle::tools {
namespace {

constexpr std::string_view kHeader = "heddle choices 1";
constexpr int64_t kLargestFile = int64_t{16} << 20;
constexpr size_t kKeyLength = 64;

bool isKey(std::string_view word) {
  return word.size() == kKeyLength &&
         word.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool isChoice(std::string_view text) {
  return text.starts_with(kOverlap) || text.starts_with(host::kAlgorithm) ||
         codegen::parseKernelChoice(std::string(text));
}

}  // namespace

std::string printChoices(const Choices& choices, std::string_view comment) {
  std::string text = fmt::format("{}\n# {}\n", kHeader, comment);
  for (const auto& [key, parameters] : choices) text += fmt::format("{} {}\n", key, parameters);
  return text;
}

Choices parseChoices(std::string_view text, std::string_view origin) {
  Choices choices;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (number == 1) {
      HEDDLE_USER_CHECK(line == kHeader, "{}:1: expected '{}'", origin, kHeader);
      continue;
    }
    if (line.empty() || line.front() == '#') continue;
    const size_t space = std::min(line.find(' '), line.size());
    const std::string parameters = line.substr(std::min(space + 1, line.size()));
    HEDDLE_USER_CHECK(isKey(line.substr(0, space)) && isChoice(parameters),
                      "{}:{}: expected a key of 64 hexadecimal digits and a choice such as "
                      "'loops unroll=2', 'algorithm 01ab' or 'overlap off'",
                      origin, number);
    choices[line.substr(0, space)] = parameters;
  }
  HEDDLE_USER_CHECK(number > 0, "{}:1: expected '{}'", origin, kHeader);
  return choices;
}

Choices readChoices(const std::string& path) {
  return parseChoices(readTextFile(path, kLargestFile), path);
}

}  // namespace heddle::tools
