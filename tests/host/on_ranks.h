#pragma once

#include <string>
#include <thread>
#include <vector>

#include "host/job/worlds.h"
#include "tests/host/executable_common.h"

namespace heddle::host::testing {

// Runs body(world) on one thread per rank. Returns the message of each rank's error, or an empty
// text.
template <class Body>
std::vector<std::string> onRanks(int ranks, const Body& body) {
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, ranks);
  std::vector<std::string> errors(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      errors[static_cast<size_t>(r)] = userErrorOf([&] { body(*worlds[static_cast<size_t>(r)]); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace heddle::host::testing
