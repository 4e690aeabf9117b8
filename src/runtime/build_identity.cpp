#include "runtime/build_identity.hpp"

#include <ATen/Version.h>
#include <elf.h>
#include <link.h>
#include <torch/version.h>

#include <cstring>
#include <hortator/version.hpp>
#include <string_view>

#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/environment.hpp"

namespace hortator::runtime {
namespace {

constexpr std::size_t shown_digits = 8;

struct SectionSearch {
  std::uintptr_t address = 0;  ///< somewhere in the library that is looked for
  std::string build_id = {};
};

bool contains(const dl_phdr_info& library, std::uintptr_t address) {
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const auto& segment = library.dlpi_phdr[i];
    const auto begin = library.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address < begin + segment.p_memsz) return true;
  }
  return false;
}

std::string hexadecimal(const unsigned char* bytes, std::size_t count) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

// A note is a header, its owner's name and its content, each padded to four bytes.
std::string build_id_in(const char* notes, std::size_t bytes) {
  for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof note);
    const char* name = notes + at + sizeof note;
    const char* content = name + padded(note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && std::string_view(name, note.n_namesz) == std::string_view("GNU\0", 4)) {
      return hexadecimal(reinterpret_cast<const unsigned char*>(content), note.n_descsz);
    }
    at += sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
  }
  return "";
}

int look_into(dl_phdr_info* library, std::size_t, void* data) {
  auto& search = *static_cast<SectionSearch*>(data);
  if (!contains(*library, search.address)) return 0;
  for (int i = 0; i < library->dlpi_phnum && search.build_id.empty(); ++i) {
    const auto& segment = library->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    search.build_id = build_id_in(reinterpret_cast<const char*>(library->dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return 1;
}

std::string own_build_id() {
  SectionSearch search{.address = reinterpret_cast<std::uintptr_t>(&own_build_id)};
  dl_iterate_phdr(look_into, &search);
  return search.build_id.substr(0, shown_digits);
}

// LibTorch describes itself as "..., COMMIT_SHA=..., TORCH_VERSION=2.15.0, ...".
std::string torch_setting(std::string_view name) {
  const auto config = at::show_config();
  const auto at = config.find(text::concat(name, '='));
  if (at == std::string::npos) return "";
  const auto begin = at + name.size() + 1;
  return config.substr(begin, config.find_first_of(", \n", begin) - begin);
}

std::string in_brackets(std::string_view noun, const std::string& id) {
  return id.empty() ? "" : text::concat(" (", noun, ' ', id.substr(0, shown_digits), ')');
}

}  // namespace

std::string libtorch_version() {
  const auto version = torch_setting("TORCH_VERSION");
  return version.empty() ? TORCH_VERSION : version;
}

std::string build_identity() {
  return text::concat("hortator ", HORTATOR_VERSION, in_brackets("build", own_build_id()), ", LibTorch ",
                      libtorch_version(), in_brackets("commit", torch_setting("COMMIT_SHA")), ", ",
                      mpi::library_version());
}

void check_same_build(const mpi::Communicator& comm, const std::string& identity) {
  mpi::same_on_all(comm, identity, "the build");
}

}  // namespace hortator::runtime
