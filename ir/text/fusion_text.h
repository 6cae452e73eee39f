#pragma once

#include <string>
#include <string_view>

#include "ir/graph/fusion.h"

namespace heddle {

// Prints the text form of a fusion (grammar: docs/text_format.md). Printing and parsing lose
// nothing:
//  - print(parse(x)) == x for every x that print() returned.
//  - sameGraph(parse(print(f)), f).
//  - Floats print with the fewest digits that read back exactly.
std::string print(const Fusion& fusion);

// Parses a fusion. Throws UserError "<origin>:<line>:<column>: found 'x', expected y"; `origin` is
// the name of the file.
Fusion parseFusion(std::string_view text, std::string_view origin = "<text>");

// Print parts that also occur in the text form of a host program.
std::string printExpression(const Fusion& fusion, const Expression& expr);  // `%a = add(%x, %y)`
std::string printMeshes(const Meshes& meshes);                              // one line a mesh
std::string printFusionBody(
    const Fusion& fusion);  // `fusion name(...) {...}` without header, meshes

// The version line that opens every file.
inline constexpr std::string_view kVersionLine = "heddle 1";

}  // namespace heddle
