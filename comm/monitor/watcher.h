#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/monitor/job_monitor.h"
#include "comm/monitor/tcp_link.h"

namespace heddle::comm {

// Why `blamed` is lost, whose runs are not those of `right`.
std::string differenceOf(const RankSnapshot& blamed, const RankSnapshot& right);

// The thread of a process that writes the heartbeats of its ranks and looks at those of all others,
// for every job monitor of that job in the process. Times are counted in its own turns, so that a
// process that was stopped and goes on does not take its peers for dead.
class Watcher {
 public:
  // The one of `memory`, or a new one.
  static std::shared_ptr<Watcher> of(const std::shared_ptr<StatusMemory>& memory,
                                     const JobPlaces& places, const JobMonitorOptions& options,
                                     int rank);
  Watcher(std::shared_ptr<StatusMemory> memory, const JobPlaces& places,
          const JobMonitorOptions& options, int rank);
  ~Watcher();

  // `link`: of the first rank of a host, else nullptr.
  void add(JobMonitor& monitor, std::unique_ptr<TcpLink> link);
  // When it returns no more is called on the job monitor.
  void remove(JobMonitor& monitor);
  // There is something to be seen.
  void hurry();

 private:
  struct Peer {
    uint64_t heartbeat = 0;
    int64_t quiet_turns = 0;
    int64_t agreeing_run = 0;     // in which it compares with its peers
    int64_t overtaken_turns = 0;  // while another was in a later run
  };
  struct End {
    JobMonitor* monitor;
    int64_t alone_turns = 0;   // in a run that a rank has left
    int64_t failed_turns = 0;  // since its own failure
    bool told = false;
  };

  void serve();
  void turn();
  void beat();
  void lookAtPeer(int rank);
  void lookFor(End& end);
  bool tellLost(End& end);
  bool tellLeft(End& end);
  bool tellSignal(End& end);
  void tell(End& end, int rank, std::string what, int signal = 0);
  void lookForMovement();
  void lookForStuck();
  void lookForUnposted();
  void lookForEnded();
  void lookForDifferentPlans();
  bool lookForDifferentHistories();
  void lookForOvertaken();
  int64_t turnsIn(double seconds) const;

  std::shared_ptr<StatusMemory> memory_;
  JobPlaces places_;
  JobMonitorOptions options_;
  std::vector<int> mine_;   // ranks of this process
  std::vector<bool> here_;  // by rank: its process can be looked at
  std::chrono::microseconds pause_;

  std::mutex mutex_;  // held for a turn
  std::unique_ptr<TcpLink> link_;
  std::vector<End> ends_;

  // The thread's own.
  std::vector<Peer> peers_;
  int waiting_ = -1;  // the rank that alone is not past the run that it waits in
  uint64_t waiting_progress_ = 0;
  int64_t waiting_turns_ = 0;
  int64_t ended_turns_ = 0;  // in which a rank begins no more runs and another is in a later one
  uint64_t picture_ = 0;
  int64_t still_turns_ = 0;
  int64_t differing_turns_ = 0;
  int64_t signal_turns_ = 0;

  std::mutex sleep_mutex_;
  std::condition_variable woken_;
  bool stop_ = false;
  bool hurry_ = false;
  std::thread thread_;
};

}  // namespace heddle::comm
