#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::fuzz {

// A text form of heddle and a function `check` that tests the reader of this form. check() reads a
// text. It returns normally for valid text, and throws UserError for invalid text. Any other
// exception is a failure of heddle, and so is a crash. A seed is a text from which the fuzzer
// creates mutated texts.
struct Target {
  std::string_view name;
  std::string_view extension;  // the example files with this extension are seeds
  void (*check)(const std::string& text);
  // Creates further seeds from the texts of the fusion examples. nullptr: there are no further
  // seeds.
  std::vector<std::string> (*more_seeds)(const std::vector<std::string>& fusions);
};

// Returns all targets. To fuzz another text form, add a row to the table in targets.cpp.
std::span<const Target> targets();

}  // namespace heddle::fuzz
