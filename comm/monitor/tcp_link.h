#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <utility>  // Asio needs it and does not include it

#include "comm/monitor/rank_locations.h"
#include "comm/monitor/rank_status.h"

namespace heddle::comm {

// Carries statuses (RankStatus) between machines. On each machine other than the machine of rank 0,
// the process of the lowest rank has a TCP connection to the process of rank 0. Every 200 ms, each
// of these machines sends the statuses of its ranks to rank 0, and rank 0 sends each of them the
// statuses of all ranks that are not on it. If a connection breaks without a last message
// (close()), the state of the lowest rank of the machine at the other end becomes Gone. All other
// ranks whose statuses came over this connection later count as silent, because their heartbeats no
// longer arrive. One thread at a time may use a TcpLink. Only connect() and close() wait.
class TcpLink {
 public:
  // Connects the machines. Collective over the job. `statuses` has one entry per rank, and the
  // ranks of this machine share it. Returns nullptr if the job has only one machine, or if this
  // rank is not the lowest rank of its machine. Throws UserError on all ranks if a machine does not
  // connect within `deadline` seconds.
  static std::unique_ptr<TcpLink> connect(World& world, const RankLocations& locations,
                                          std::shared_ptr<RankStatus[]> statuses, double deadline);
  ~TcpLink();

  // Receives the statuses that have arrived, and detects broken connections. If 200 ms have passed
  // since statuses were sent, sends the current statuses. If an earlier send is incomplete, only
  // sends its rest.
  void poll();
  // Sends a last message on each connection, so that the process at the other end does not report
  // the end of the connection as a failure. Waits at most 1 s.
  void close();

 private:
  using Clock = std::chrono::steady_clock;
  struct Wire;
  struct Connection;
  TcpLink(const RankLocations& locations, std::shared_ptr<RankStatus[]> statuses, int rank);
  std::string listen();
  void acceptAll(Clock::time_point until);
  void join(const std::string& invitation, Clock::time_point until);
  void receive(Connection& connection);
  void apply(Connection& connection, const RankSnapshot& status);
  void send(Connection& connection, bool last);

  const RankLocations locations_;
  std::shared_ptr<RankStatus[]> statuses_;
  int rank_;
  std::unique_ptr<Wire> wire_;
  Clock::time_point next_;
};

}  // namespace heddle::comm
