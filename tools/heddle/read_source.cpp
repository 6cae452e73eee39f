// Reads the file of a command, and adds the file and the line to error messages about the file.
#include <regex>

#include "host/program/visit.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"
#include "ir/system/files.h"
#include "tools/heddle/job_end.h"
#include "tools/heddle/source.h"

namespace heddle::tools {
namespace {

// Adds the file and the line to a message that names an op or a value of a fusion with its line, as
// in "%y at line 3".
std::string withLineOfFusion(const std::string& message, const std::string& file) {
  static const std::regex at_line("[%A-Za-z0-9_.]+ at line ([0-9]+)[:, ]");
  const std::string first = message.substr(0, message.find('\n'));
  std::smatch found;
  if (!std::regex_search(first, found, at_line)) return message;
  return fmt::format("{}:{}: {}", file, found[1].str(), message);
}

// Returns whether the message names an instruction of a host program. The message contains the
// index that the instruction has after all calls are inlined.
bool namesInstruction(const std::string& message, std::smatch& found) {
  static const std::regex named_instruction("instruction ([0-9]+) [(`]");
  return std::regex_search(message, found, named_instruction);
}

std::string withLineOfProgram(const std::string& message, const std::string& file,
                              const host::Program& program) {
  std::smatch found;
  if (!namesInstruction(message, found)) return message;
  // A message about a callee may contain the index of the instruction in the callee. The line is
  // therefore used only if the message also contains the text of the instruction with this index.
  int line = 0;
  const int64_t named = std::stoll(found[1]);
  try {
    const host::Program inlined = host::inlineCalls(program);
    host::forEachInstruction(inlined.body,
                             [&](const host::Instruction& x, host::InstructionIndex index) {
                               if (index != named) return;
                               const std::string text = host::printInstruction(inlined, x);
                               if (message.find(text) != std::string::npos) line = x.line;
                             });
  } catch (const UserError&) {
    // The program is wrong, so its calls cannot be inlined. `message` says why.
  }
  return line > 0 ? fmt::format("{}:{}: {}", file, line, message) : message;
}

std::string withLine(const std::string& message, const std::string& file, const Source& source) {
  const auto* program = std::get_if<host::Program>(&source);
  return program == nullptr ? withLineOfFusion(message, file)
                            : withLineOfProgram(message, file, *program);
}

}  // namespace

Source readSource(const std::string& path) {
  const ProcessTask task(comm::RankTask::Reading);
  constexpr int64_t kLargestText = int64_t{1} << 26;
  const std::string text = readTextFile(path, kLargestText);
  try {
    return host::parseFile(text, path);
  } catch (const UserError& error) {
    if (std::string_view(error.what()).starts_with(path + ":")) throw;
    const std::string located = withLineOfFusion(error.what(), path);
    userError("{}", located == error.what() ? fmt::format("{}: {}", path, located) : located);
  }
}

std::string withFile(const std::string& message, const std::string& file, const Source& source) {
  if (message.starts_with(file + ":") || message.starts_with("--")) return message;
  const std::string located = withLine(message, file, source);
  return located == message ? file + ": " + message : located;
}

std::string withLineOfRun(const std::string& message, const std::string& file, const Source& source,
                          const host::Program& program) {
  std::string located = withLine(message, file, source);
  if (located == message) located = withLineOfProgram(message, file, program);
  std::smatch found;
  const bool needs_file = located == message && namesInstruction(message, found);
  return needs_file ? file + ": " + message : located;
}

}  // namespace heddle::tools
