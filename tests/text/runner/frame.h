#pragma once

#include <optional>
#include <string>
#include <vector>

namespace heddle::text_tests {

// The input of a case that tries several lines in one frame:
//
//   fusion f(%x: f32[2, 6]) {
//     ...
//     return %x
//   }
//   --- each
//   %r = mean(%x, %x)
//   %r = mean(%x, axes=[2])
//
// The runner replaces `...` by one line after the other, and runs the stage on each text.
struct Frame {
  std::string text;                // the text before `--- each`
  std::vector<std::string> lines;  // the lines after `--- each`, without empty lines

  // Returns the text with the line in place of `...`. Throws UserError if the text has no `...`.
  std::string with(const std::string& line) const;
};

// Returns the frame of an input. Returns nothing if the input has no line `--- each`. Throws
// UserError if there is no line after it.
std::optional<Frame> frameOf(const std::string& input);

// Returns a text that contains the line and, indented below it, its outcome.
std::string outcomeOfLine(const std::string& line, const std::string& outcome);

}  // namespace heddle::text_tests
