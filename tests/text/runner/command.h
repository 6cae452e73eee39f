#pragma once

#include <string>
#include <vector>

namespace heddle::text_tests {

// Runs commands such as `run case.fusion --device cpu` in a new folder, and returns what each of
// them prints. The folder contains `text` as case.fusion, or as case.hostir if it is a host
// program, and a link to the examples of the project.
std::string runCommands(const std::string& text, const std::vector<std::string>& commands);

}  // namespace heddle::text_tests
