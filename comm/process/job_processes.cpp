#include "comm/process/job_processes.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>

#include "comm/process/process_info.h"
#include "ir/base/check.h"

namespace heddle::comm {
namespace {

namespace fs = std::filesystem;

// The names of the environment variables that a launcher (such as mpirun) sets for each rank.
struct Launcher {
  const char *job, *rank, *ranks, *ranks_here;
};
constexpr std::array kLaunchers = {
    Launcher{"PMIX_NAMESPACE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
             "OMPI_COMM_WORLD_LOCAL_SIZE"},
    Launcher{"PMI_JOBID", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
};

const Launcher* launcherOfThis() {
  for (const Launcher& one : kLaunchers) {
    if (std::getenv(one.job) && std::getenv(one.rank) && std::getenv(one.ranks)) return &one;
  }
  return nullptr;
}

struct Process {
  int pid = 0;
  // Several processes can have the environment variables of one rank, for example the rank and the
  // shell that started it. The process with the largest weight counts as the rank. 2: stopped; 1:
  // runs the same program as this process; 0: any other process.
  int weight = 0;
  std::string doing;
};

// Returns the rank of a process, or nullopt if the process does not belong to the job.
std::optional<int> rankOf(const fs::path& process, const Launcher& launcher, std::string_view job) {
  std::ifstream file(process / "environ", std::ios::binary);
  std::string entry;
  bool same_job = false;
  std::optional<int> rank;
  const auto value = [&](const char* name) -> const char* {
    const size_t length = std::string_view(name).size();
    const bool named = entry.compare(0, length, name) == 0 && entry[length] == '=';
    return named ? entry.c_str() + length + 1 : nullptr;
  };
  while (std::getline(file, entry, '\0')) {
    if (const char* text = value(launcher.job)) same_job = text == job;
    if (const char* text = value(launcher.rank)) rank = std::atoi(text);
  }
  return same_job ? rank : std::nullopt;
}

bool waitsForStart(const fs::path& process) {
  std::error_code error;
  for (const fs::directory_entry& thread : fs::directory_iterator(process / "task", error)) {
    std::string name;
    std::getline(std::ifstream(thread.path() / "comm"), name);
    if (name == kStartThread) return true;
  }
  return false;
}

Process stateOf(const fs::path& process, int pid) {
  std::error_code error;
  const bool same =
      fs::read_symlink(process / "exe", error) == fs::read_symlink("/proc/self/exe", error);
  if (processState(pid).isStopped()) return {pid, 2, "stopped"};
  if (same && waitsForStart(process)) return {pid, 1, "waits for the other ranks"};
  return {pid, same ? 1 : 0, "alive, does not wait for the other ranks"};
}

std::map<int, Process> processesHere(const Launcher& launcher) {
  const std::string job = std::getenv(launcher.job);
  std::map<int, Process> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid == 0) continue;
    const std::optional<int> rank = rankOf(entry.path(), launcher, job);
    if (!rank) continue;
    Process process = stateOf(entry.path(), pid);
    const auto [kept, fresh] = found.try_emplace(*rank, process);
    if (!fresh && process.weight > kept->second.weight) kept->second = std::move(process);
  }
  return found;
}

}  // namespace

std::string describeJobProcesses() {
  const Launcher* const launcher = launcherOfThis();
  if (launcher == nullptr) return {};
  const int ranks = std::atoi(std::getenv(launcher->ranks));
  const char* const here = std::getenv(launcher->ranks_here);
  const bool one_machine = here != nullptr && std::atoi(here) == ranks;
  const std::map<int, Process> processes = processesHere(*launcher);
  std::string text;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto found = processes.find(rank);
    if (!text.empty()) text += "\n";
    text += fmt::format("  rank {}", rank);
    if (found != processes.end()) {
      text +=
          fmt::format(" (pid {} on {}): {}", found->second.pid, machineName(), found->second.doing);
    } else {
      text += one_machine ? ": its process has ended"
                          : fmt::format(": no process on {}", machineName());
    }
  }
  return text;
}

}  // namespace heddle::comm
