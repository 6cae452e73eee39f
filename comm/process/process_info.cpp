#include "comm/process/process_info.h"

#include <unistd.h>

#include <climits>
#include <fstream>
#include <sstream>

namespace heddle::comm {
namespace {

std::string linkOf(const char* path) {
  char text[PATH_MAX];
  const ssize_t length = readlink(path, text, sizeof text);
  return length < 0 ? std::string() : std::string(text, static_cast<size_t>(length));
}

}  // namespace

// In /proc/PID/stat, the name of the program is in parentheses, and may itself contain spaces and
// parentheses. The fields are therefore counted from the last closing parenthesis.
ProcessState processState(int pid) {
  ProcessState result;
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return result;
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return result;
  std::istringstream fields(line.substr(name_end + 1));
  fields >> result.state;
  std::string skipped;
  constexpr int kBetweenStateAndStart = 18;
  for (int i = 0; i < kBetweenStateAndStart; ++i) fields >> skipped;
  fields >> result.started;
  return result;
}

std::string machineName() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return "?";
  return name;
}

std::string machineClock() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot.empty() ? machineName() : boot;
}

std::string machineKey() {
  return machineName() + " " + machineClock() + " " + linkOf("/proc/self/ns/pid") + " " +
         linkOf("/proc/self/ns/mnt");
}

}  // namespace heddle::comm
