#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "comm/monitor/job_monitor.h"
#include "host/device/device.h"
#include "host/job/inject_fault.h"
#include "host/program/program.h"

namespace heddle::tools {

// Describes the rank that a thread runs: its number, the number of ranks of the job, and the
// objects of this rank. Only rank 0 prints results.
struct Rank {
  int rank = 0;
  int ranks = 1;
  host::Device* device = nullptr;
  comm::World* world = nullptr;
  comm::JobMonitor* monitor = nullptr;
};

struct JobOptions {
  std::string device;        // "cpu", "cuda", "null"; empty: cuda if there is a GPU, else cpu
  int ranks = 0;             // 0: one rank, or all ranks of an mpirun job
  int64_t adversarial = -1;  // CPU: seed of the test mode that delays work; -1: off
  int64_t memory_limit = 0;  // CPU: bytes of each rank's device; 0: no limit
  double deadline = 10;      // seconds; see JobMonitorOptions::deadline (comm/monitor)
  double patience = 600;     // seconds; see JobMonitorOptions::patience (comm/monitor)
  double start = 60;         // seconds within which an mpirun job must start; 0: no limit
  // Returns the settings that must be equal on all ranks of an mpirun job, by name. runJob()
  // compares them after `prepare`.
  std::function<std::map<std::string, std::string>()> settings;
  // Returns the fault to inject when a rank of a job of `ranks` ranks begins a task
  // (comm::RankTask). nullopt: none.
  std::function<std::optional<host::InjectedFault>(int ranks)> task_fault;
};

// Creates a device. A CPU device uses `adversarial` and `memory_limit` of `options`. `ordinal` is
// the index of the GPU of a CUDA device.
std::unique_ptr<host::Device> makeDevice(host::DeviceKind kind, const JobOptions& options,
                                         int ordinal);

// Prints `heddle: reason` to stderr in one write, so that the lines of several ranks do not mix.
void say(const std::string& reason);

// Thrown if the job failed with a UserError and a process has already printed the reason.
struct AlreadySaid : std::exception {};

// The rank of a process that mpirun started.
struct ProcessRank {
  int rank = 0;
  int ranks = 1;
};
// Returns the rank of this process, or nullopt if mpirun has not started this process. May be
// called before MPI is initialised.
std::optional<ProcessRank> processRank();

// Runs `prepare` once per process. Then runs `body` for every rank of the process and waits for all
// ranks. A process of an mpirun job runs one rank, on the calling thread. Any other process runs
// all ranks, each on its own thread.
// - `prepare` receives the number of ranks and returns the program, which must be the same on all
//   ranks. `prepare` should do the work whose errors are equal on all ranks, such as reading files.
//   `world` is the World of the first rank of this process. `prepare` must not communicate; it uses
//   `world` only to record its tasks (World::setTask()).
// - In an mpirun job, a UserError may occur in `prepare`, or when the ranks compare their settings,
//   programs and compilers. If several ranks have the same error, only the first of these ranks
//   prints it. MPI is then finalized normally, and runJob throws AlreadySaid on all ranks.
// - A rank is lost if its `body` throws, or if its process is killed, is stopped or leaves. All
//   other ranks then end. All ranks also end if the job makes no progress for `patience` seconds.
// - In a job of one process, runJob() throws an error of `prepare`, or the error that made the
//   ranks end. In a job of several ranks, the message of an error that made the ranks end usually
//   names one of them.
// - In an mpirun job, each remaining process prints the cause and exits with code 2, or with code 3
//   if its own `body` has found a bug in heddle. A process that mpirun ends by a signal also prints
//   the cause, unless a rank has printed a UserError of the steps before `body`. Its exit code is
//   128 + signal if the job has not started yet or is already ending without an error, otherwise 2.
// - In a job of one process with several CUDA ranks, each rank gets its own GPU if there are enough
//   GPUs, and NCCL connects the ranks. Otherwise all ranks share GPU 0.
void runJob(const JobOptions& options,
            const std::function<const host::Program&(int ranks, comm::World& world)>& prepare,
            const std::function<void(const Rank&)>& body);

}  // namespace heddle::tools
