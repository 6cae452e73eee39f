#pragma once

#include "codegen/compile/image_cache.h"
#include "host/device/device.h"
#include "tools/profile/instruction_times.h"

namespace heddle::tools {

// Measures the copy bandwidth of the device (tools/bench/copy_runs.h), and the rate of a large
// square matrix product of each kind in `times`. If the device has too little memory for a
// measurement, prints a message about `subject`, and leaves the rate unknown. Measures nothing on
// the null device (host/device/null), which computes nothing.
PeakRates measurePeakRates(host::Device& device, codegen::ImageCache& images,
                           const TimesByInstruction& times, const std::string& subject);

}  // namespace heddle::tools
