#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace heddle::testing {

// Returns an ELF file with an empty section for each name in `sections`. Its parts are, in this
// order: the header, the names of the sections, the table of the sections.
inline std::string smallElf(const std::vector<std::string>& sections) {
  std::string names(1, '\0');
  std::vector<Elf64_Shdr> table(1);
  const auto add = [&](const std::string& name, uint32_t type) {
    Elf64_Shdr section{};
    section.sh_name = static_cast<uint32_t>(names.size());
    section.sh_type = type;
    section.sh_offset = sizeof(Elf64_Ehdr);
    table.push_back(section);
    names += name + '\0';
  };
  for (const std::string& name : sections) add(name, SHT_PROGBITS);
  add(".shstrtab", SHT_STRTAB);
  table.back().sh_size = names.size();
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof(header) + names.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<uint16_t>(table.size());
  header.e_shstrndx = static_cast<uint16_t>(table.size() - 1);
  std::string file(reinterpret_cast<const char*>(&header), sizeof(header));
  file += names;
  return file.append(reinterpret_cast<const char*>(table.data()), table.size() * sizeof(table[0]));
}

}  // namespace heddle::testing
