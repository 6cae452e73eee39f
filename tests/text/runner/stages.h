#pragma once

#include "tests/text/runner/case_file.h"

namespace heddle::text_tests {

// Runs the stage on the input of the case. An error of the stage is returned as the outcome. A
// wrong option or stage is a UserError.
Outcome runCase(const std::string& stage, const Case& test);

}  // namespace heddle::text_tests
