#pragma once

#include <string>
#include <string_view>

#include "ir/graph/fusion.h"

namespace heddle {

// Prints the text form of a fusion (grammar: docs/text_format.md). The text omits ids, source
// lines, annotations, and the guards that parseFusion() creates again from the ops. Lines such as
// `guard a <= b "text"` before the first op are the guards that composite ops and passes added. The
// text preserves everything else:
//  - print(parseFusion(x)) == x for every text x that print() returned.
//  - sameGraph(parseFusion(print(f)), f) is true for every fusion f.
//  - A float is printed with the fewest digits that parse to the same value.
// Exception: ops can build a size of more than 1000 operators, and parseFusion() refuses its text.
std::string print(const Fusion& fusion);

// Parses a fusion. Throws UserError if the text is not valid, for example
// "<origin>:<line>:<column>: found 'x', expected y". `origin` is the name of the file.
Fusion parseFusion(std::string_view text, std::string_view origin = "<text>");

// These functions print parts of the text form. The text form of a host program contains the same
// parts.
std::string printExpression(const Fusion& fusion, const Expression& expr);  // `%a = add(%x, %y)`
std::string printMeshes(const Meshes& meshes);                              // one line per mesh
// Prints `fusion name(...) {...}`, without the version line and the meshes.
std::string printFusionBody(const Fusion& fusion);

// The version line. It is the first line of every text of a fusion or a host program.
inline constexpr std::string_view kVersionLine = "heddle 1";

}  // namespace heddle
