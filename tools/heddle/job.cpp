#include "tools/heddle/job.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "comm/in_process/worlds.h"
#include "comm/process/start_timeout.h"
#include "host/device/cpu/cpu_device.h"
#include "host/device/load_module.h"
#include "host/device/null/null_device.h"
#include "host/job/communicators.h"
#include "host/job/worlds.h"
#include "ir/base/check.h"
#include "ir/system/start_thread.h"
#include "tools/heddle/job_end.h"
#include "tools/heddle/options.h"

namespace heddle::tools {
namespace {

host::DeviceKind kindOf(const JobOptions& options) {
  const host::DeviceKind kind = chooseDevice(options.device);
  const bool cpu = kind == host::DeviceKind::Cpu;
  HEDDLE_USER_CHECK(cpu || options.memory_limit == 0, "--memory-limit is for --device cpu, not {}",
                    host::name(kind));
  HEDDLE_USER_CHECK(cpu || options.adversarial < 0, "--adversarial is for --device cpu, not {}",
                    host::name(kind));
  return kind;
}

int gpus() {
  std::string why;
  return host::cudaDeviceCount(why);
}

const char* firstSet(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name)) return value;
  }
  return nullptr;
}

// Returns the index of the GPU for this process: the index of its rank among the ranks on this
// machine. Returns 0 for other devices. Throws UserError if this machine has no GPU with this
// index.
int gpuOfThisProcess(host::DeviceKind kind) {
  if (kind != host::DeviceKind::Cuda) return 0;
  const char* local_rank =
      firstSet({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"});
  const int ordinal = local_rank == nullptr ? 0 : std::atoi(local_rank);
  const int count = gpus();
  HEDDLE_USER_CHECK(
      ordinal < count,
      "rank {} of this machine needs its own GPU, but there are {}; several ranks can "
      "share one GPU in one process: --ranks N without mpirun",
      ordinal, count);
  return ordinal;
}

comm::JobMonitorOptions controlOf(const JobOptions& options) {
  comm::JobMonitorOptions monitor_options;
  monitor_options.deadline = options.deadline;
  monitor_options.patience = options.patience;
  monitor_options.start = options.start;
  return monitor_options;
}

using Prepare = std::function<const host::Program&(int ranks, comm::World& world)>;
using Body = std::function<void(const Rank&)>;

void injectInto(std::optional<host::TaskFault>& injected, comm::World& world,
                comm::JobMonitor& monitor, const JobOptions& options) {
  if (!options.task_fault) return;
  const auto fault = options.task_fault(world.size());
  if (fault) injected.emplace(world, *fault, [&monitor] { return monitor.failed(); });
}

// Records the current task of the rank for the message of the signal handler.
class TaskRecorder : public comm::WorldObserver {
 public:
  void beginWait(bool) override {}
  void endWait() override {}
  void setTask(comm::RankTask task) override { setProcessTask(task); }
};

void runThread(comm::World& world, host::Device& device, const JobOptions& options,
               RankErrors& errors, const Body& body) {
  comm::JobMonitorOptions monitor_options = controlOf(options);
  monitor_options.end_signal = &endSignal();
  monitor_options.on_failure = [&world](const comm::JobFailure& failure) {
    if (failure.signal == 0) return world.interrupt(failure.text);
    endBySignal(world.size(), failure);
  };
  comm::JobMonitor monitor(world, monitor_options);
  std::optional<WatcherPoll> looks;
  if (world.rank() == 0) looks.emplace(monitor, 0);
  std::optional<host::TaskFault> fault;
  try {
    injectInto(fault, world, monitor, options);
    body({world.rank(), world.size(), &device, &world, &monitor});
    if (fault) fault->requireInjected();
    const comm::World::Task task(&world, comm::RankTask::Leaving);
    world.barrier();
  } catch (const std::exception& error) {
    monitor.fail(error.what());
    errors.keep(std::current_exception(), world.rank(), &monitor);
    world.abort(error.what());
  }
}

void runThreads(const JobOptions& options, int size, const Prepare& prepare, const Body& body) {
  catchEndSignal(false);
  const host::DeviceKind kind = kindOf(options);
  const bool a_gpu_each = kind == host::DeviceKind::Cuda && size > 1 && gpus() >= size;
  TaskRecorder recorder;
  std::vector<std::unique_ptr<comm::World>> worlds =
      a_gpu_each ? comm::makeInProcessWorlds(size) : host::makeInProcessWorldsFor(kind, size);
  worlds[0]->addObserver(recorder);
  prepare(size, *worlds[0]);
  RankErrors errors;
  std::vector<std::thread> threads;
  const auto runRank = [&](int rank) {
    std::unique_ptr<comm::World> world = std::move(worlds[rank]);
    try {
      const int ordinal = a_gpu_each ? rank : 0;
      std::unique_ptr<host::Device> device = makeDevice(kind, options, ordinal);
      if (a_gpu_each) world = host::makeNcclWorld(std::move(world), ordinal);
      runThread(*world, *device, options, errors, body);
    } catch (const std::exception& error) {
      errors.keep(std::current_exception(), rank, nullptr);
      if (world) world->abort(error.what());
    }
  };
  threads.reserve(size);
  for (int rank = 0; rank < size; ++rank) {
    try {
      threads.push_back(
          startThread(fmt::format("rank {} of {}", rank, size), [&, rank] { runRank(rank); }));
    } catch (const std::exception& error) {
      // Without this abort(), the other ranks would wait for this rank.
      errors.keep(std::current_exception(), rank, nullptr);
      worlds[rank]->abort(error.what());
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
  errors.rethrow(size);
}

std::string errorOf(const std::function<void()>& work) {
  try {
    work();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// Calls work(). Returns whether it succeeded on all ranks of the job, that is, threw no UserError.
// All ranks must call this function. If several ranks have the same error, the first of these ranks
// prints it. All ranks wait until the errors are printed, because mpirun ends all processes as soon
// as one process exits with an error code.
bool agreed(comm::World& world, const std::function<void()>& work) {
  const std::string mine = errorOf(work);
  const std::vector<std::string> all = world.exchange(mine);
  const auto failed = [](const std::string& text) { return !text.empty(); };
  if (std::none_of(all.begin(), all.end(), failed)) return true;
  const auto first = std::find(all.begin(), all.end(), mine);
  if (!mine.empty() && first - all.begin() == world.rank()) {
    const bool everywhere = std::count(all.begin(), all.end(), mine) == world.size();
    say(everywhere ? mine : fmt::format("rank {}: {}", world.rank(), mine));
  }
  world.barrier();
  setErrorReported();
  return false;
}

// Calls agreed() for a comparison of all ranks. `compare` communicates, and must throw the same
// error on all ranks: if only one rank threw, the other ranks would wait for this rank. A fault
// that is injected into `task` throws on one rank only. The task therefore begins in a separate
// step before `compare`.
bool agreedAfter(comm::RankTask task, comm::World& world, const std::function<void()>& compare) {
  const auto begin = [&] { const comm::World::Task begins(&world, task); };
  return agreed(world, begin) && agreed(world, compare);
}

// Throws the same UserError on all ranks if a setting differs between ranks. The error names the
// first setting that differs.
void checkSettings(const std::map<std::string, std::string>& mine, comm::World& world) {
  using Settings = std::map<std::string, std::string>;
  const comm::World::Task task(&world, comm::RankTask::ComparingSettings);
  std::vector<Settings> all;
  for (const std::string& text : world.exchange(nlohmann::json(mine).dump())) {
    all.push_back(nlohmann::json::parse(text).get<Settings>());
  }
  const auto valueIn = [](const Settings& settings, const std::string& name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::string("not given") : found->second;
  };
  for (size_t rank = 1; rank < all.size(); ++rank) {
    Settings both = all[0];
    both.insert(all[rank].begin(), all[rank].end());
    for (const auto& [name, value] : both) {
      const std::string first = valueIn(all[0], name);
      const std::string other = valueIn(all[rank], name);
      HEDDLE_USER_CHECK(first == other,
                        "{} differs between ranks, and must not: {} on rank 0, {} on rank {}", name,
                        first, other, rank);
    }
  }
}

// Runs the rank of this process. An error ends the process without closing the transports, because
// transports (such as MPI and NCCL) cannot be closed normally after an error.
void runRankOfProcess(comm::World& world, host::Device& device, comm::JobMonitor& monitor,
                      const std::optional<host::TaskFault>& fault, const Body& body) {
  int code = 2;
  std::string reason;
  try {
    body({world.rank(), world.size(), &device, &world, &monitor});
    if (fault) fault->requireInjected();
    const comm::World::Task task(&world, comm::RankTask::Leaving);
    world.barrier();
    return;
  } catch (const UserError& error) {
    reason = error.what();
  } catch (const std::bad_alloc&) {
    reason = "out of memory";
  } catch (const std::exception& error) {
    reason = error.what();
    code = 3;
  }
  monitor.fail(reason);
  endFailedProcess(monitor, reason, code);
}

// Runs this process's rank of an mpirun job. Returns false if the job could not start.
// The order of the steps matters. Until the job monitor exists, only `timeout` limits how long this
// rank waits. agreed() compares the errors of each step: ranks with equal errors print one message,
// and MPI is finalized normally. NCCL is connected last, because after an error it cannot be closed
// normally.
bool runProcess(const JobOptions& options, const Prepare& prepare, const Body& body) {
  const comm::MpiModule& mpi = host::mpiModule();
  catchEndSignal(true);
  std::optional<comm::StartTimeout> timeout(std::in_place, options.start, &endSignal(),
                                            "all ranks to start and to find each other by MPI",
                                            endBeforeStart);
  TaskRecorder recorder;
  std::unique_ptr<comm::World> world = mpi.makeWorld();
  world->addObserver(recorder);
  // The job monitor compares the limits too, but then every rank prints the error. Here one rank
  // prints the error for all.
  const auto compareLimits = [&] {
    checkSettings({{"--deadline", fmt::format("{} s", options.deadline)},
                   {"--patience", fmt::format("{} s", options.patience)}},
                  *world);
  };
  if (!agreed(*world, compareLimits)) return false;
  timeout->nowWaitsFor("the other ranks to create the job monitor");
  const int size = world->size();
  comm::JobMonitorOptions monitor_options = controlOf(options);
  monitor_options.end_signal = &endSignal();
  monitor_options.on_failure = [rank = world->rank()](const comm::JobFailure& failure) {
    endProcess(rank, failure);
  };
  host::DeviceKind kind = host::DeviceKind::Cpu;
  int ordinal = 0;
  std::unique_ptr<host::Device> device;
  comm::JobMonitor monitor(*world, monitor_options);
  const WatcherPoll looks(monitor, options.deadline);
  std::optional<host::TaskFault> fault;
  timeout.reset();
  const host::Program* program = nullptr;
  const auto begin = [&] {
    HEDDLE_USER_CHECK(options.ranks == 0 || options.ranks == size,
                      "--ranks {} under mpirun, whose job has {} rank(s); leave --ranks out",
                      options.ranks, size);
    kind = kindOf(options);
    ordinal = gpuOfThisProcess(kind);
    if (kind == host::DeviceKind::Cuda) host::ncclModule();
    device = makeDevice(kind, options, ordinal);
    injectInto(fault, *world, monitor, options);
    program = &prepare(size, *world);
  };
  if (!agreed(*world, begin)) return false;
  const auto compare = [&] {
    if (options.settings) checkSettings(options.settings(), *world);
  };
  if (!agreedAfter(comm::RankTask::ComparingSettings, *world, compare)) return false;
  const auto compareProgram = [&] { host::checkAgreement(*program, *world); };
  if (!agreedAfter(comm::RankTask::ComparingPrograms, *world, compareProgram)) return false;
  const auto compareCompilers = [&] { host::checkCompilers(*program, *device, *world); };
  if (!agreed(*world, compareCompilers)) return false;
  if (kind == host::DeviceKind::Cuda) {
    world = host::makeNcclWorld(std::move(world), ordinal);
  }
  runRankOfProcess(*world, *device, monitor, fault, body);
  return true;
}

}  // namespace

std::unique_ptr<host::Device> makeDevice(host::DeviceKind kind, const JobOptions& options,
                                         int ordinal) {
  switch (kind) {
    case host::DeviceKind::Null:
      return host::makeNullDevice();
    case host::DeviceKind::Cuda:
      return host::makeCudaDevice(ordinal);
    case host::DeviceKind::Cpu:
      break;
  }
  host::CpuOptions cpu;
  if (options.adversarial >= 0) {
    cpu.adversarial_seed = static_cast<uint64_t>(options.adversarial);
  }
  cpu.memory_limit = options.memory_limit;
  return host::makeCpuDevice(cpu);
}

void say(const std::string& reason) {
  std::fprintf(stderr, "heddle: %s\n", reason.c_str());
  std::fflush(stderr);
}

std::optional<ProcessRank> processRank() {
  if (!host::startedByMpi()) return std::nullopt;
  const char* rank = firstSet({"OMPI_COMM_WORLD_RANK", "PMI_RANK"});
  const char* ranks = firstSet({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
  return ProcessRank{rank == nullptr ? 0 : std::atoi(rank),
                     ranks == nullptr ? 1 : std::max(1, std::atoi(ranks))};
}

void runJob(const JobOptions& options, const Prepare& prepare, const Body& body) {
  if (!host::startedByMpi()) return runThreads(options, std::max(options.ranks, 1), prepare, body);
  if (!runProcess(options, prepare, body)) throw AlreadySaid();
}

}  // namespace heddle::tools
