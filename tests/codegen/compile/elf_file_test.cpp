#include "codegen/compile/elf_file.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/codegen/compile/small_elf.h"

namespace heddle::codegen::elf_file_test {
namespace {

using heddle::testing::smallElf;

TEST(ElfFile, CompleteCubinHasItsKernels) {
  const std::string elf = smallElf({".text.k", ".text.long_name"});
  EXPECT_EQ(faultOfElf(elf), "");
  EXPECT_EQ(faultOfCubin(elf, "k"), "");
  EXPECT_EQ(faultOfCubin(elf, "long_name"), "");
  for (const std::string absent : {"l", "ong_name", "long", "text.k", ""}) {
    EXPECT_EQ(faultOfCubin(elf, absent), "it has no kernel " + absent);
  }
}

TEST(ElfFile, EveryTruncationIsFound) {
  const std::string elf = smallElf({".text.k"});
  EXPECT_EQ(faultOfElf(""), "it has 0 bytes");
  for (size_t bytes = 1; bytes < elf.size(); ++bytes) {
    const std::string fault = faultOfCubin(elf.substr(0, bytes), "k");
    const std::string expected = bytes < sizeof(Elf64_Ehdr)
                                     ? "it does not begin like an ELF file of 64 bits"
                                     : "its end is missing: it has " + std::to_string(bytes) +
                                           " bytes, and its headers name " +
                                           std::to_string(elf.size());
    EXPECT_EQ(fault, expected);
  }
}

TEST(ElfFile, SectionBehindTheEndIsFound) {
  std::string elf = smallElf({".text.k"});
  Elf64_Ehdr header;
  std::memcpy(&header, elf.data(), sizeof(header));
  const size_t at = header.e_shoff + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size);
  const uint64_t bytes = 5000;
  std::memcpy(elf.data() + at, &bytes, sizeof(bytes));
  EXPECT_EQ(faultOfElf(elf), "its end is missing: it has " + std::to_string(elf.size()) +
                                 " bytes, and its headers name 5064");
}

// The file may contain any bytes. The address sanitizer finds reads beyond the end of the file.
TEST(ElfFile, GarbageIsRead) {
  std::mt19937 random(1);
  const std::string elf = smallElf({".text.k"});
  for (int i = 0; i < 20000; ++i) {
    std::string garbage = elf;
    for (int change = 0; change < 3; ++change) {
      garbage[random() % garbage.size()] = static_cast<char>(random() % 4 == 0 ? 255 : random());
    }
    const std::vector<char> exact(garbage.begin(), garbage.end());
    faultOfCubin({exact.data(), exact.size()}, "k");
  }
  EXPECT_EQ(faultOfElf("garbage"), "it does not begin like an ELF file of 64 bits");
  EXPECT_EQ(faultOfElf(std::string(1000, 'x')), "it does not begin like an ELF file of 64 bits");
}

}  // namespace
}  // namespace heddle::codegen::elf_file_test
