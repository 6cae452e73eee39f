#include "tools/profile/write_profile.h"

#include <vector>

#include "comm/process/process_info.h"
#include "host/run/profile/timeline.h"
#include "ir/base/check.h"
#include "ir/system/files.h"
#include "tools/profile/peak_rates.h"

namespace heddle::tools {

void writeTimeline(const Rank& rank, host::RunProfile& profile, const std::string& path) {
  const comm::World::Task task(rank.world, comm::RankTask::WritingTimeline);
  const std::string clock = comm::machineClock();
  const std::vector<std::string> all =
      rank.world->exchange(encode(host::RankTimeline{rank.rank, clock, profile.events()}));
  if (rank.rank != 0) return;
  std::vector<host::RankTimeline> timelines;
  for (const std::string& one : all) timelines.push_back(host::decodeTimeline(one));
  host::alignClocks(timelines);
  writeFileOf(path, {host::chromeTrace(timelines)});
}

void writeProfile(const Rank& rank, codegen::ImageCache& images, const TimesByInstruction& times,
                  const std::string& path) {
  const comm::World::Task task(rank.world, comm::RankTask::WritingTimeline);
  rank.world->barrier();
  const PeakRates rates = measurePeakRates(*rank.device, images, times,
                                           fmt::format("--profile {}, rank {}", path, rank.rank));
  const std::vector<std::string> all = rank.world->exchange(profileRows(rank.rank, times, rates));
  if (rank.rank == 0) writeFileOf(path, {profileHeader() + fmt::format("{}", fmt::join(all, ""))});
}

}  // namespace heddle::tools
