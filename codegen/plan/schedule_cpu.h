#pragma once

#include "codegen/plan/schedule.h"

namespace heddle::codegen {

// These functions set the members of a schedule for Target::Cpp. Schedule::kind must be set. Only
// chooseSchedule() (codegen/plan/schedule.h) calls them.
void scheduleCpuPointwise(const Space& space, Schedule& s);
// `may_split`: see chooseSchedule().
void scheduleCpuReduction(const Space& space, Schedule& s, bool may_split);

}  // namespace heddle::codegen
