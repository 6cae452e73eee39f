#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"

namespace heddle::comm::conformance {

// Runs `body` for every World on its own thread. An exception of a rank aborts the job. Returns the
// messages of the exceptions, by rank; an empty text for a rank without one.
inline std::vector<std::string> runRanks(std::vector<std::unique_ptr<World>> worlds,
                                         const std::function<void(std::unique_ptr<World>&)>& body) {
  std::vector<std::string> errors(worlds.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < worlds.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        body(worlds[i]);
      } catch (const std::exception& error) {
        errors[i] = error.what();
        if (worlds[i]) worlds[i]->abort(error.what());
      }
      worlds[i].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

inline void expectAllWell(const std::vector<std::string>& errors) {
  for (size_t i = 0; i < errors.size(); ++i) {
    if (!errors[i].empty()) ADD_FAILURE() << "rank " << i << ": " << errors[i];
  }
}

}  // namespace heddle::comm::conformance
