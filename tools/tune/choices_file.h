#pragma once

#include <map>
#include <string>
#include <string_view>

namespace heddle::tools {

// Maps keys to choices in text form:
// - The key of a kernel (host::choiceKey()) has the parameters of the chosen candidate. The
//   candidates of a kernel are the variants that code generation offers
//   (codegen/bind/candidates.h).
// - The key of a library call (host::algorithmKey()) has host::kAlgorithm and an algorithm.
// - The key of a job's programs (OverlapChoice::key) has kOverlap and a value of --overlap.
using Choices = std::map<std::string, std::string>;

inline constexpr std::string_view kOverlap = "overlap ";

// Converts choices to the text of a file and back. The first line is "heddle choices 1". Empty
// lines and lines that begin with '#' are ignored. Each remaining line has a key, a space and
// a choice. printChoices() adds a line "# " with `comment`. For a wrong line, parseChoices()
// throws UserError that names `origin` and the line.
std::string printChoices(const Choices& choices, std::string_view comment);
Choices parseChoices(std::string_view text, std::string_view origin);

// Reads a file of at most 16 MiB. Throws UserError if the file is larger, or cannot be read or
// parsed.
Choices readChoices(const std::string& path);

}  // namespace heddle::tools
