#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ir/base/error.h"
#include "tests/text/runner/stages.h"

namespace heddle::text_tests {
namespace {

std::string textOf(const Outcome& outcome) {
  return (outcome.is_error ? "--- error\n" : "--- expected\n") + outcome.text;
}

// Returns the number of cases that fail.
int runFile(const std::string& path, bool update) {
  const CaseFile file = readCases(path);
  std::vector<Outcome> outcomes;
  int failed = 0;
  for (const Case& test : file.cases) {
    outcomes.push_back(runCase(file.stage, test));
    if (update || outcomes.back() == test.expected) continue;
    ++failed;
    std::printf("%s:%d: %s\n%s\n", path.c_str(), test.line, test.name.c_str(),
                unifiedDiff(textOf(test.expected), textOf(outcomes.back())).c_str());
  }
  if (update) {
    writeCases(file, outcomes);
    std::printf("%s: %zu cases written\n", path.c_str(), file.cases.size());
  } else {
    std::printf("%s: %zu cases, %d failed\n", path.c_str(), file.cases.size(), failed);
  }
  return failed;
}

}  // namespace
}  // namespace heddle::text_tests

int main(int argc, char** argv) {
  const char* from_environment = std::getenv("HEDDLE_UPDATE");
  bool update = from_environment != nullptr && std::string_view(from_environment) == "1";
  int failed = 0;
  int files = 0;
  try {
    for (int i = 1; i < argc; ++i) {
      if (std::string_view(argv[i]) == "--update") {
        update = true;
        continue;
      }
      ++files;
      failed += heddle::text_tests::runFile(argv[i], update);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "text_tests: %s\n", error.what());
    return 2;
  }
  if (files == 0) {
    std::fputs("usage: text_tests [--update] FILE...\n", stderr);
    return 2;
  }
  return failed == 0 ? 0 : 1;
}
