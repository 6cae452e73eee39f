#include "host/job/inject_fault.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "ir/base/check.h"

namespace heddle::host {
namespace {

constexpr int64_t kMostCorrupted = 1 << 20;
constexpr auto kFaultPolling = std::chrono::milliseconds(5);

template <class Number>
Number numberOf(std::string_view field, std::string_view text, std::string_view spec) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  HEDDLE_USER_CHECK(error == std::errc() && end == text.data() + text.size() && value >= 0,
                    "--inject {}: {}={} is not a number of at least 0", spec, field, text);
  return value;
}

double secondsOf(std::string_view text, std::string_view spec) {
  HEDDLE_USER_CHECK(text.ends_with('s'), "--inject {}: delay={} has no unit, write delay=5s", spec,
                    text);
  return numberOf<double>("delay", text.substr(0, text.size() - 1), spec);
}

std::optional<InjectedFault::Kind> kindOf(std::string_view text) {
  if (text == "die") return InjectedFault::Kind::Die;
  if (text == "throw") return InjectedFault::Kind::Throw;
  if (text == "stall") return InjectedFault::Kind::Stall;
  if (text == "delay") return InjectedFault::Kind::Delay;
  if (text == "corrupt") return InjectedFault::Kind::Corrupt;
  return std::nullopt;
}

comm::RankTask taskOf(std::string_view text, std::string_view spec) {
  const std::optional<comm::RankTask> task = comm::rankTaskOf(text);
  HEDDLE_USER_CHECK(task, "--inject {}: there is no task {}", spec, text);
  return *task;
}

// Blocks the calling thread for `seconds`, or without a limit if `forever` is true. Throws
// UserError if ended() returns true.
void waitUntilEnded(double seconds, bool forever, const std::function<bool()>& ended) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  while (forever || Clock::now() < until) {
    HEDDLE_USER_CHECK(!ended(), "injected: {}, ended because the job has failed",
                      forever ? "stall" : "delay");
    std::this_thread::sleep_for(kFaultPolling);
  }
}

}  // namespace

// The fields may come in any order.
InjectedFault parseFault(std::string_view spec) {
  InjectedFault fault;
  std::optional<InjectedFault::Kind> kind;
  bool has_rank = false;
  bool has_instruction = false;
  for (size_t at = 0; at <= spec.size();) {
    const size_t comma = std::min(spec.find(',', at), spec.size());
    const std::string_view field = spec.substr(at, comma - at);
    const size_t equals = std::min(field.find('='), field.size());
    const std::string_view name = field.substr(0, equals);
    const std::string_view value = field.substr(std::min(equals + 1, field.size()));
    if (name == "rank") {
      fault.rank = numberOf<int>(name, value, spec);
      has_rank = true;
    } else if (name == "instr") {
      fault.instruction = numberOf<InstructionIndex>(name, value, spec);
      has_instruction = true;
    } else if (name == "task") {
      fault.task = taskOf(value, spec);
      fault.instruction = -1;
    } else {
      const std::optional<InjectedFault::Kind> named = kindOf(name);
      const bool takes_value = named == InjectedFault::Kind::Delay;
      HEDDLE_USER_CHECK(named && takes_value == (equals < field.size()),
                        "--inject {}: found '{}', expected rank=R, instr=I, task=T, die, throw, "
                        "stall, delay=5s or corrupt",
                        spec, field);
      HEDDLE_USER_CHECK(!kind, "--inject {}: '{}' is a second fault, expected one", spec, field);
      if (takes_value) fault.seconds = secondsOf(value, spec);
      kind = named;
    }
    at = comma + 1;
  }
  HEDDLE_USER_CHECK(has_rank, "--inject {}: rank=R is missing", spec);
  const bool has_task = fault.task != comm::RankTask::None;
  HEDDLE_USER_CHECK(has_instruction || has_task, "--inject {}: instr=I or task=T is missing", spec);
  HEDDLE_USER_CHECK(!has_instruction || !has_task, "--inject {}: instr=I and task=T, expected one",
                    spec);
  HEDDLE_USER_CHECK(kind, "--inject {}: die, throw, stall, delay=5s or corrupt is missing", spec);
  fault.kind = *kind;
  HEDDLE_USER_CHECK(!has_task || fault.kind != InjectedFault::Kind::Corrupt,
                    "--inject {}: corrupt needs instr=I, because a task writes no tensor", spec);
  return fault;
}

void injectBefore(const InjectedFault& fault, Device& device, Stream stream, const Issue& issue,
                  std::function<bool()> ended) {
  switch (fault.kind) {
    case InjectedFault::Kind::Die:
      if (fault.is_process) std::raise(SIGKILL);
      userError("injected: die (an error, because this rank is a thread)");
    case InjectedFault::Kind::Throw:
      userError("injected: throw");
    case InjectedFault::Kind::Stall:
    case InjectedFault::Kind::Delay:
      return device.hostTask(
          [forever = fault.kind == InjectedFault::Kind::Stall, seconds = fault.seconds,
           ended = std::move(ended)] { waitUntilEnded(seconds, forever, ended); },
          stream, issue);
    case InjectedFault::Kind::Corrupt:
      return;
  }
}

// Copies the bytes to a host buffer, inverts them there, and copies them back. This works for
// memory of any device.
void injectAfter(const InjectedFault& fault, Device& device, void* memory, int64_t bytes,
                 Stream stream, const Issue& issue) {
  if (fault.kind != InjectedFault::Kind::Corrupt) return;
  const int64_t count = std::min(bytes, kMostCorrupted);
  HEDDLE_USER_CHECK(count > 0 && memory != nullptr,
                    "injected: corrupt, but the instruction writes nothing on this rank");
  auto staging = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(count));
  device.copy(staging->data(), memory, count, stream, issue);
  device.hostTask(
      [staging] {
        for (std::byte& byte : *staging) byte = ~byte;
      },
      stream, issue);
  device.copy(memory, staging->data(), count, stream, issue);
  // This task keeps the buffer alive until the copy has completed.
  device.hostTask([staging] {}, stream, issue);
}

TaskFault::TaskFault(comm::World& world, const InjectedFault& fault, std::function<bool()> ended)
    : world_(world), fault_(fault), ended_(std::move(ended)) {
  world_.addObserver(*this);
}

TaskFault::~TaskFault() { world_.removeObserver(*this); }

void TaskFault::requireInjected() const {
  const bool is_due = fault_.rank == world_.rank() && fault_.task != comm::RankTask::Leaving;
  HEDDLE_USER_CHECK(
      injected_ || !is_due,
      "the injected fault had no effect: rank {} has done its work, and began no task "
      "in which it {}",
      fault_.rank, describe(fault_.task));
}

void TaskFault::setTask(comm::RankTask task) {
  if (fault_.rank != world_.rank() || task != fault_.task) return;
  if (std::exchange(injected_, true)) return;
  switch (fault_.kind) {
    case InjectedFault::Kind::Die:
      if (fault_.is_process) std::raise(SIGKILL);
      userError("injected: die (an error, because this rank is a thread)");
    case InjectedFault::Kind::Throw:
      userError("injected: throw");
    case InjectedFault::Kind::Stall:
      // If the rank has its own process, the stall must not end with an error. The error would hide
      // the message of the job monitor's on_failure function, which `heddle run` prints before it
      // ends this process.
      if (fault_.is_process) ended_ = [] { return false; };
      return waitUntilEnded(0, true, ended_);
    case InjectedFault::Kind::Delay:
      return waitUntilEnded(fault_.seconds, false, ended_);
    case InjectedFault::Kind::Corrupt:
      return;
  }
}

}  // namespace heddle::host
