#pragma once

#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "comm/monitor/job_monitor.h"
#include "host/device/device.h"
#include "host/program/program.h"

namespace heddle::tools {

// One rank of the job, as its thread sees it. Rank 0 prints.
struct Rank {
  int rank = 0;
  int ranks = 1;
  host::Device* device = nullptr;
  comm::World* world = nullptr;
  comm::JobMonitor* monitor = nullptr;
};

struct JobOptions {
  std::string device;        // "cpu", "cuda", "null"; empty: the best present
  int ranks = 0;             // 0: one, or all of an mpirun job
  int64_t adversarial = -1;  // CPU: seed, or -1
  int64_t memory_limit = 0;  // CPU: bytes of each rank's device, or 0
  double deadline = 10;      // of the monitor_options job monitor
  double patience = 600;
  double start = 60;  // seconds for the ranks of the job to come together; 0: for ever
  // What all ranks of an mpirun job must have been given alike, by name: compared after `prepare`.
  std::function<std::map<std::string, std::string>()> settings;
};

// `heddle: reason` on stderr, in one piece.
void say(const std::string& reason);

// The caller's fault, which this or another process of the job has said already.
struct AlreadySaid : std::exception {};

// The place of a process that mpirun started, known before the job has come together.
struct ProcessRank {
  int rank = 0;
  int ranks = 1;
};
std::optional<ProcessRank> processRank();

// Runs `prepare` once a process and then `body` on every rank that lives in it, each on a thread of
// its own, and waits. `prepare` gets the number of ranks, does what fails alike on all of them and
// answers with the program, which must be the same everywhere. Errors up to there are said by one
// rank each (by the first of those that have the same), and MPI ends in good order. A rank whose
// `body` throws, or whose process is killed, stopped or leaves, takes the others down: in one
// process the cause is thrown again here, naming the rank when there are several; a process of an
// mpirun job prints it and ends with 2 (3 for a bug of ours), also when mpirun tells it to end.
// CUDA ranks of one process share GPU 0 or, when there are enough GPUs, have one each with NCCL
// between them.
void runJob(const JobOptions& options,
            const std::function<const host::Program&(int ranks)>& prepare,
            const std::function<void(const Rank&)>& body);

}  // namespace heddle::tools
