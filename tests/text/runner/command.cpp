#include "tests/text/runner/command.h"

#include <fmt/format.h>

#include <filesystem>

#include "codegen/compile/child_process.h"
#include "ir/base/check.h"
#include "ir/system/files.h"
#include "tests/text/runner/frame.h"

namespace heddle::text_tests {
namespace {

namespace fs = std::filesystem;

bool isHostProgram(const std::string& text) {
  return text.starts_with("program ") || text.find("\nprogram ") != std::string::npos;
}

}  // namespace

std::string runCommands(const std::string& text, const std::vector<std::string>& commands) {
  const codegen::TempFolder folder;
  const std::string name = isHostProgram(text) ? "case.hostir" : "case.fusion";
  // No newline follows the version line, so messages count lines from the first line of the input.
  writeFileOf(folder.path() + "/" + name, {"heddle 1 " + text});
  fs::create_symlink(fs::absolute("examples"), folder.path() + "/examples");
  const fs::path binary = fs::read_symlink("/proc/self/exe").parent_path() / "heddle";
  std::string out;
  for (const std::string& command : commands) {
    const codegen::ProcessResult result = codegen::runProcess(
        {"/bin/sh", "-c",
         fmt::format("cd {} && exec {} {}", folder.path(), binary.string(), command)});
    HEDDLE_USER_CHECK(result.started, "{}", result.output);
    out += outcomeOfLine(command, fmt::format("exit {}\n{}", result.exit_code, result.output));
  }
  return out;
}

}  // namespace heddle::text_tests
