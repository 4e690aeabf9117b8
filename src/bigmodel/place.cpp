#include <hortator/bigmodel/big_models.hpp>
#include <hortator/error.hpp>
#include <ostream>

#include "core/text/text.hpp"

namespace hortator {

Place Place::cuda(int index) {
  if (index >= 0) return {Kind::cuda, index};
  throw UsageError({.what = text::concat("there is no CUDA device ", index), .hint = "they are counted from 0 on"});
}

Place Place::parse(std::string_view words) {
  constexpr std::string_view prefix = "cuda:";
  if (words == "cpu") return cpu();
  if (words == "disk") return disk();
  const auto number = words.starts_with(prefix) ? words.substr(prefix.size()) : words;
  constexpr long long most = 1 << 16;
  long long index = -1;
  if (text::parse_integer(number, index) && 0 <= index && index < most) return cuda(static_cast<int>(index));
  throw UsageError({.what = text::concat(text::quote(words), " is no place for a part of a model"),
                    .hint = "places are the numbers of CUDA devices, cpu and disk"});
}

std::ostream& operator<<(std::ostream& out, const Place& place) {
  if (place.is_cuda()) return out << "cuda:" << place.index_;
  return out << (place.is_cpu() ? "cpu" : "disk");
}

}  // namespace hortator
