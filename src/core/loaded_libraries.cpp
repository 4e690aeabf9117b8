#include "core/loaded_libraries.hpp"

#include <link.h>

#include "core/text/text.hpp"

namespace hortator::core {
namespace {

struct Search {
  std::string_view beginning;
  std::vector<std::string> found = {};
};

int look_at(dl_phdr_info* library, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const std::string_view path = library->dlpi_name;
  if (text::file_name(path).starts_with(search.beginning)) search.found.emplace_back(path);
  return 0;
}

}  // namespace

std::vector<std::string> loaded_libraries(std::string_view beginning) {
  Search search{beginning};
  dl_iterate_phdr(look_at, &search);
  return std::move(search.found);
}

}  // namespace hortator::core
