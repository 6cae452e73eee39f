#pragma once

#include "tests/text/runner/case_file.h"

namespace heddle::text_tests {

// Runs the stage on the input of the case. Returns an error of the stage as the outcome. Throws
// UserError for a wrong option or stage.
Outcome runCase(const std::string& stage, const Case& test);

}  // namespace heddle::text_tests
