#include "core/loaded_libraries.hpp"

#include <link.h>

#include "core/text/text.hpp"

namespace hortator::core {
namespace {

struct Search {
  std::string_view prefix;
  std::vector<std::string> found = {};
};

int add_match(dl_phdr_info* library, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const std::string_view path = library->dlpi_name;
  if (text::file_name(path).starts_with(search.prefix)) search.found.emplace_back(path);
  return 0;
}

}  // namespace

std::vector<std::string> loaded_libraries(std::string_view prefix) {
  Search search{prefix};
  dl_iterate_phdr(add_match, &search);
  return std::move(search.found);
}

}  // namespace hortator::core
