#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "comm/monitor/detection.h"
#include "comm/monitor/job_monitor.h"
#include "comm/monitor/tcp_link.h"

namespace heddle::comm {

// A thread that serves all monitors (JobMonitor) of one job in one process. In each poll the thread
// increases the heartbeats of the ranks of its process. If the process has a TcpLink, the thread
// also exchanges statuses with other machines. It then applies the rules of
// comm/monitor/detection.h, and reports failures to the monitors. The thread measures time by
// counting its own polls. Therefore a process that was stopped and then continued does not report
// the other ranks as silent.
class Watcher {
 public:
  // Returns the watcher of `statuses` in this process. The first call creates the watcher.
  static std::shared_ptr<Watcher> of(const std::shared_ptr<RankStatus[]>& statuses,
                                     const RankLocations& locations,
                                     const JobMonitorOptions& options, int rank);
  Watcher(std::shared_ptr<RankStatus[]> statuses, const RankLocations& locations,
          const JobMonitorOptions& options, int rank);
  ~Watcher();

  // Adds a monitor. `link` is the result of TcpLink::connect(), which may be nullptr.
  void add(JobMonitor& monitor, std::unique_ptr<TcpLink> link);
  // Removes a monitor. After the return the watcher does not use the monitor any more.
  void remove(JobMonitor& monitor);
  // Starts the next poll at once.
  void wake();

 private:
  struct Client {
    JobMonitor* monitor;
    int64_t grace_polls = 0;  // number of polls for which report() has delayed the report
    bool reported = false;
  };
  struct Held {  // a finding of the previous poll
    uint64_t evidence;
    int64_t polls;  // number of polls for which the finding has lasted with this evidence
  };

  void serve();
  void poll();
  void judge();
  void report(Client& client);
  int absentFor(const JobMonitor& monitor) const;
  int64_t pollsIn(double seconds) const;

  std::shared_ptr<RankStatus[]> statuses_;
  std::chrono::microseconds interval_;
  const std::atomic<int>* end_signal_;

  std::mutex mutex_;  // guards link_ and clients_; held during a poll
  std::unique_ptr<TcpLink> link_;
  std::vector<Client> clients_;

  // Only the thread of this object uses these members.
  JobView job_;
  std::map<std::pair<Finding::Rule, int>, Held> held_;  // by (Finding::rule, subject)
  // Ranks that have left, although another rank is in a later run or waits for them in a call of
  // its World.
  std::vector<int> left_early_;

  std::mutex sleep_mutex_;
  std::condition_variable woken_;
  bool stop_ = false;
  bool wake_ = false;
  std::thread thread_;
};

}  // namespace heddle::comm
