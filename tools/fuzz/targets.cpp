#include "tools/fuzz/targets.h"

#include "host/compile.h"
#include "host/executable.h"
#include "host/text/program_text.h"
#include "host/verify/verify.h"
#include "ir/base/error.h"
#include "ir/graph/verify.h"
#include "ir/text/fusion_text.h"

namespace heddle::fuzz {
namespace {

// What parses must verify, and must print as a text that parses to the same graph.
void checkFusion(const std::string& text) {
  const Fusion fusion = parseFusion(text, "fuzz");
  verify(fusion);
  const std::string printed = print(fusion);
  Fusion again;
  try {
    again = parseFusion(printed, "printed");
  } catch (const UserError& error) {
    HEDDLE_CHECK(false, "what print() made does not parse: {}\n{}", error.what(), printed);
  }
  HEDDLE_CHECK(print(again) == printed, "printing what was printed differs:\n{}\n{}", printed,
               print(again));
  // A nan among the attributes differs from itself.
  HEDDLE_CHECK(sameGraph(fusion, again) || printed.find("nan") != std::string::npos,
               "another graph came back:\n{}", printed);
}

// The same for a host program, but verify may refuse what parses.
void checkProgram(const std::string& text) {
  const host::Program program = host::parseProgram(text, "fuzz");
  const std::string printed = host::print(program);
  host::Program again;
  try {
    again = host::parseProgram(printed, "printed");
  } catch (const UserError& error) {
    HEDDLE_CHECK(false, "what print() made does not parse: {}\n{}", error.what(), printed);
  }
  HEDDLE_CHECK(host::print(again) == printed, "printing what was printed differs:\n{}\n{}", printed,
               host::print(again));
  HEDDLE_CHECK(host::sameProgram(program, again) || printed.find("nan") != std::string::npos,
               "another program came back:\n{}", printed);
  host::verify(program);
}

// What the examples are lowered to: the examples show what people write, these what lowering does.
constexpr int64_t kRanks = 4;  // which all of them can take
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
