#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace heddle::codegen {

// Reads `bytes` bytes at `offset` of a file into `to`. Returns false if this fails.
using ReadAt = std::function<bool(uint64_t offset, void* to, uint64_t bytes)>;

// Checks that an ELF file of `size` bytes contains the sections and segments that its headers name.
// Sections of types that are reserved for processors and applications may be missing. Returns what
// is wrong, for example "it has 0 bytes". Returns an empty text if nothing is wrong. Compiled
// kernels are ELF files: shared libraries for the CPU, cubins for CUDA. Call this before dlopen()
// or the CUDA driver loads an image. If the end of the image is missing, dlopen() can end the
// process, and the driver does not say why it refuses the image.
std::string faultOfElf(const ReadAt& read, uint64_t size);
std::string faultOfElf(std::string_view image);

// Returns what is wrong with a cubin: the result of faultOfElf(), or that it has no kernel `entry`.
// Returns an empty text if nothing is wrong.
std::string faultOfCubin(std::string_view image, const std::string& entry);

}  // namespace heddle::codegen
