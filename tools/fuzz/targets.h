#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::fuzz {

// One reader of text. `check` returns normally or throws UserError for text that is wrong; anything
// else it throws, or a crash, is a failure.
struct Target {
  std::string_view name;
  std::string_view extension;  // the seeds: examples/*<extension>
  void (*check)(const std::string& text);
  // Seeds made of the texts of the fusion examples; null: none.
  std::vector<std::string> (*more_seeds)(const std::vector<std::string>& fusions);
};

// Every target; a new reader of text is a row of the table in targets.cpp.
std::span<const Target> targets();

}  // namespace heddle::fuzz
