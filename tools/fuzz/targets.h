#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::fuzz {

// A reader of one text form of heddle. `check` returns normally, or throws UserError for invalid
// text. Any other exception is a failure of heddle, and so is a crash.
struct Target {
  std::string_view name;
  std::string_view extension;  // the example files with this extension are seeds
  void (*check)(const std::string& text);
  // Creates further seeds (texts that the fuzzer mutates) from the texts of the fusion examples.
  // nullptr: there are no further seeds.
  std::vector<std::string> (*more_seeds)(const std::vector<std::string>& fusions);
};

// Returns all targets. To add a reader of text, add a row to the table in targets.cpp.
std::span<const Target> targets();

}  // namespace heddle::fuzz
