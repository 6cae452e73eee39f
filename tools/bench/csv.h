#pragma once

#include <string>
#include <vector>

namespace heddle::tools {

// Returns one line of a CSV file. Encloses a cell in quotes if it contains a comma, a quote or a
// newline.
inline std::string csvLine(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ",";
    if (cells[i].find_first_of(",\"\n") == std::string::npos) {
      line += cells[i];
      continue;
    }
    line += "\"";
    for (char c : cells[i]) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += "\"";
  }
  return line + "\n";
}

}  // namespace heddle::tools
