#include "formats/hdf5/library.hpp"

#include <dlfcn.h>
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <hortator/error.hpp>

#include "core/loaded_libraries.hpp"
#include "core/text/text.hpp"
#include "formats/hdf5/handle.hpp"

namespace hortator::formats {
namespace {

std::string loaded_hdf5_version() {
  const Hdf5Lock lock;
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  return text::concat("HDF5 ", major, '.', minor, '.', release);
}

// Libraries for other languages and tools have longer names: "libhdf5_openmpi_hl.so.100".
bool is_hdf5_part(std::string_view path) {
  static constexpr std::array<std::string_view, 6> parts = {"hl", "cpp", "fortran", "f90", "tools", "java"};
  const auto name = text::file_name(path);
  const auto stem = name.substr(0, name.find(".so"));
  return std::ranges::any_of(parts, [&](auto part) { return stem.find(part) != std::string_view::npos; });
}

std::vector<std::string> loaded_hdf5_files() {
  auto files = core::loaded_libraries("libhdf5");
  std::erase_if(files, is_hdf5_part);
  return files;
}

// The library that Hortator's own calls use; empty: the program itself.
std::string own_hdf5_file(const std::vector<std::string>& files) {
  Dl_info found{};
  if (dladdr(reinterpret_cast<const void*>(&H5Fopen), &found) == 0 || found.dli_fname == nullptr) return "";
  std::error_code error;
  const auto own = std::filesystem::canonical(found.dli_fname, error).string();
  const auto is_own = [&](const std::string& file) { return std::filesystem::canonical(file, error).string() == own; };
  const auto loaded = std::ranges::find_if(files, is_own);
  return loaded == files.end() ? "" : *loaded;
}

// Looks the symbol up in the library: calling a missing function would abort the process.
bool has_parallel_calls(const std::string& file) {
  void* const library = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return true;
  const bool has_calls = dlsym(library, "H5Pset_fapl_mpio") != nullptr;
  dlclose(library);
  return has_calls;
}

constexpr auto hdf5_hint =
    "load the HDF5 module that Hortator was built with, and no other, and build programs with it; `hortator doctor` "
    "says what is loaded";

}  // namespace

std::string built_hdf5_version() {
  return text::concat("HDF5 ", H5_VERS_MAJOR, '.', H5_VERS_MINOR, '.', H5_VERS_RELEASE);
}

Hdf5Library loaded_hdf5() {
  Hdf5Library library{.version = loaded_hdf5_version(), .file = "", .others = loaded_hdf5_files()};
  library.file = own_hdf5_file(library.others);
  std::erase(library.others, library.file);
  library.is_parallel = library.file.empty() || has_parallel_calls(library.file);
  return library;
}

void check_hdf5(std::string_view built, const Hdf5Library& loaded) {
  const auto minor_release = [](std::string_view version) { return version.substr(0, version.rfind('.')); };
  if (minor_release(built) != minor_release(loaded.version)) {
    throw Error({.what = text::concat("The loaded HDF5 is ", loaded.version, ", this Hortator was built with ", built),
                 .why = "their data structures differ",
                 .hint = hdf5_hint});
  }
  if (!loaded.is_parallel) {
    throw Error({.what = text::concat("The loaded HDF5, ", loaded.file,
                                      ", is serial; this Hortator was built with a parallel ", built),
                 .why = "ranks write checkpoints together, which it cannot",
                 .hint = hdf5_hint});
  }
}

}  // namespace hortator::formats
