#include "codegen/compile/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// Reads the headers of an ELF file. Every number in these headers may be wrong.
class ElfReader {
 public:
  ElfReader(const ReadAt& read, uint64_t size) : read_(read), size_(size) {}

  // Returns what is wrong with the file, or an empty text.
  std::string fault() {
    const char* const begin = "it does not begin like an ELF file of 64 bits";
    if (size_ == 0) return "it has 0 bytes";
    if (!get(0, header_)) return size_ < sizeof(header_) ? begin : "it cannot be read";
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
        header_.e_ident[EI_CLASS] != ELFCLASS64) {
      return begin;
    }
    need(header_.e_shoff, uint64_t{header_.e_shnum} * sizeof(Elf64_Shdr));
    need(header_.e_phoff, uint64_t{header_.e_phnum} * sizeof(Elf64_Phdr));
    if (end_ <= size_) needParts();
    if (end_ <= size_) return "";
    return fmt::format("its end is missing: it has {} bytes, and its headers name {}", size_, end_);
  }

  // Returns whether the file has a section with this name. Requires that fault() has returned an
  // empty text.
  bool hasSection(const std::string& name) {
    Elf64_Shdr names;
    if (header_.e_shstrndx >= header_.e_shnum || !section(header_.e_shstrndx, names)) return false;
    std::string found(name.size() + 1, ' ');
    for (uint64_t i = 0; i < header_.e_shnum; ++i) {
      Elf64_Shdr entry;
      if (!section(i, entry) || entry.sh_name >= names.sh_size) continue;
      if (found.size() > names.sh_size - entry.sh_name) continue;
      if (!read_(names.sh_offset + entry.sh_name, found.data(), found.size())) continue;
      if (found.back() == '\0' && found.compare(0, name.size(), name) == 0) return true;
    }
    return false;
  }

 private:
  template <class Part>
  bool get(uint64_t offset, Part& part) const {
    return offset <= size_ && sizeof(part) <= size_ - offset && read_(offset, &part, sizeof(part));
  }
  bool section(uint64_t i, Elf64_Shdr& to) const {
    return get(header_.e_shoff + i * sizeof(to), to);
  }
  // Notes that the file must contain these bytes.
  void need(uint64_t offset, uint64_t bytes) {
    if (bytes == 0) return;
    end_ = std::max(end_, offset > UINT64_MAX - bytes ? UINT64_MAX : offset + bytes);
  }
  // Calls need() for all sections and program headers. Sections without bytes in the file
  // (SHT_NOBITS), and sections of types that are reserved for processors and applications
  // (SHT_LOPROC and above), need not be in the file.
  void needParts() {
    for (uint64_t i = 0; i < header_.e_shnum; ++i) {
      Elf64_Shdr part;
      if (!section(i, part)) return need(UINT64_MAX, 1);
      if (part.sh_type != SHT_NOBITS && part.sh_type < SHT_LOPROC) {
        need(part.sh_offset, part.sh_size);
      }
    }
    for (uint64_t i = 0; i < header_.e_phnum; ++i) {
      Elf64_Phdr part;
      if (!get(header_.e_phoff + i * sizeof(part), part)) return need(UINT64_MAX, 1);
      need(part.p_offset, part.p_filesz);
    }
  }

  const ReadAt& read_;
  uint64_t size_;
  Elf64_Ehdr header_{};
  uint64_t end_ = 0;  // the size that the headers require
};

ReadAt readFrom(std::string_view image) {
  return [image](uint64_t offset, void* to, uint64_t bytes) {
    if (offset > image.size() || bytes > image.size() - offset) return false;
    std::memcpy(to, image.data() + offset, bytes);
    return true;
  };
}

}  // namespace

std::string faultOfElf(const ReadAt& read, uint64_t size) { return ElfReader(read, size).fault(); }

std::string faultOfElf(std::string_view image) { return faultOfElf(readFrom(image), image.size()); }

std::string faultOfCubin(std::string_view image, const std::string& entry) {
  const ReadAt read = readFrom(image);
  ElfReader elf(read, image.size());
  if (std::string fault = elf.fault(); !fault.empty()) return fault;
  return elf.hasSection(".text." + entry) ? "" : "it has no kernel " + entry;
}

}  // namespace heddle::codegen
