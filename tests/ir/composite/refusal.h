#pragma once

#include <string>

#include "ir/base/error.h"
#include "ir/text/fusion_text.h"

namespace heddle::testing {

// Returns the error of a statement, without its position in the text. `inputs` declares the inputs
// of the fusion, among them %x.
inline std::string refusalOf(const std::string& inputs, const std::string& statement) {
  try {
    parseFusion("heddle 1 fusion f(" + inputs + ") { " + statement + " return %x }", "f");
  } catch (const UserError& error) {
    std::string message = error.what();
    for (const std::string place : {"f:1: ", " at line 1"}) {
      for (size_t at; (at = message.find(place)) != std::string::npos;) {
        message.erase(at, place.size());
      }
    }
    return message;
  }
  return "no error";
}

}  // namespace heddle::testing
