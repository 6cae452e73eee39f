#pragma once

#include <string>
#include <string_view>

#include "ir/graph/fusion.h"

namespace heddle {

// The text form of a Fusion (grammar: docs/text_format.md). print(parse(x)) == x for any x that
// print() made; parse(print(f)) is sameGraph as f. Floats print shortest and exact.
std::string print(const Fusion& fusion);

// UserError "<origin>:<line>:<column>: found 'x', expected y". `origin` names the file in messages.
Fusion parseFusion(std::string_view text, std::string_view origin = "<text>");

// Parts that the text form of a host program contains too.
std::string printExpression(const Fusion& fusion, const Expression& expr);  // `%a = add(%x, %y)`
std::string printMeshes(const Meshes& meshes);                              // one line a mesh
std::string printFusionBody(
    const Fusion& fusion);  // `fusion name(...) {...}` without header, meshes

// The version line that opens every file.
inline constexpr std::string_view kVersionLine = "heddle 1";

}  // namespace heddle
