#include "cli/env/loaded_libraries.hpp"

#include <link.h>

#include "base/text.hpp"

namespace hortator::cli::env {
namespace {

struct Search {
  const std::vector<std::string_view>& beginnings;
  std::map<std::string, std::string> found = {};
};

int look_at(dl_phdr_info* library, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const std::string_view path = library->dlpi_name;
  for (const auto beginning : search.beginnings) {
    if (text::file_name(path).starts_with(beginning)) search.found.emplace(beginning, path);
  }
  return 0;
}

}  // namespace

std::map<std::string, std::string> loaded_libraries(const std::vector<std::string_view>& beginnings) {
  Search search{beginnings};
  dl_iterate_phdr(look_at, &search);
  return std::move(search.found);
}

}  // namespace hortator::cli::env
