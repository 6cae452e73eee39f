#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>  // Asio needs it and does not include it
#include <vector>

#include "comm/monitor/status_memory.h"

namespace heddle::comm {

// The control job monitors of several hosts as one: over TCP the first process of each host tells
// rank 0's host of its ranks, and hears of all others from there, a few times a second. Used by one
// thread at a time, which never waits; what is lost is the peers' heartbeat, so they notice.
class TcpLink {
 public:
  // Collective over the job. nullptr where there is nothing to do: one host, or not its first rank.
  // UserError on all ranks when a host cannot be reached within `deadline` seconds.
  static std::unique_ptr<TcpLink> connect(World& world, const JobPlaces& places,
                                          StatusMemory& memory, double deadline);
  ~TcpLink();

  // Sends and hears what there is.
  void turn();
  // The last turn: from here on nobody is to expect signs of life through this end.
  void close();

 private:
  struct Wire;
  struct Connection;
  TcpLink(const JobPlaces& places, StatusMemory& memory, int rank);
  void listen();
  std::string invitation() const;
  void acceptAll(std::chrono::steady_clock::time_point until);
  void join(const std::string& invitation, std::chrono::steady_clock::time_point until);
  void introduce();
  void hear(Connection& connection);
  void take(Connection& connection, const std::string& frame);
  void send(Connection& connection, bool last);

  const JobPlaces places_;
  StatusMemory& memory_;
  int rank_;
  std::unique_ptr<Wire> wire_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace heddle::comm
