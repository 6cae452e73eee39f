#include "tools/fuzz/targets.h"

#include "host/compile.h"
#include "host/executable.h"
#include "host/text/program_text.h"
#include "host/verify/verify.h"
#include "ir/base/check.h"
#include "ir/graph/verify.h"
#include "ir/text/fusion_text.h"

namespace heddle::fuzz {
namespace {

// Checks a fusion text: if it can be parsed, verify() must accept it, and its printed form must
// parse to the same graph.
void checkFusion(const std::string& text) {
  const Fusion fusion = parseFusion(text, "fuzz");
  verify(fusion);
  const std::string printed = print(fusion);
  Fusion again;
  try {
    again = parseFusion(printed, "printed");
  } catch (const UserError& error) {
    HEDDLE_CHECK(false, "the text of print() does not parse: {}\n{}", error.what(), printed);
  }
  HEDDLE_CHECK(print(again) == printed, "printing the parsed text differs:\n{}\n{}", printed,
               print(again));
  // Fusions with NaN are excluded, because a NaN is not equal to itself.
  HEDDLE_CHECK(sameGraph(fusion, again) || printed.find("nan") != std::string::npos,
               "the parsed graph differs:\n{}", printed);
}

// Checks the text of a host program like checkFusion(). Exception: verify() may reject the program
// with a UserError.
void checkProgram(const std::string& text) {
  const host::Program program = host::parseProgram(text, "fuzz");
  const std::string printed = host::print(program);
  host::Program again;
  try {
    again = host::parseProgram(printed, "printed");
  } catch (const UserError& error) {
    HEDDLE_CHECK(false, "the text of print() does not parse: {}\n{}", error.what(), printed);
  }
  HEDDLE_CHECK(host::print(again) == printed, "printing the parsed text differs:\n{}\n{}", printed,
               host::print(again));
  HEDDLE_CHECK(host::sameProgram(program, again) || printed.find("nan") != std::string::npos,
               "the parsed program differs:\n{}", printed);
  host::verify(program);
}

constexpr int64_t kRanks = 4;  // all fusion examples support this number of ranks

// Returns the host programs to which the fusion examples are lowered. The .hostir examples are
// written by hand, and do not contain everything that lowering and the passes create.
std::vector<std::string> loweredPrograms(const std::vector<std::string>& fusions) {
  std::vector<std::string> programs;
  for (const std::string& text : fusions) {
    programs.push_back(host::print(host::compile(parseFusion(text, "example"), kRanks)));
  }
  return programs;
}

constexpr Target kTargets[] = {{"fusion", ".fusion", &checkFusion, nullptr},
                               {"program", ".hostir", &checkProgram, &loweredPrograms}};

}  // namespace

std::span<const Target> targets() { return kTargets; }

}  // namespace heddle::fuzz
