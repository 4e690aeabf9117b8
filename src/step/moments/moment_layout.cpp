#include "step/moments/moment_layout.hpp"

#include <array>

namespace hortator::step {
namespace {

struct Prefix {
  std::string_view text;
  MomentLayout layout;
};
constexpr std::array<Prefix, 3> prefixes = {
    {{"bytes/", MomentLayout::bytes}, {"blocks/", MomentLayout::blocks}, {"whole/", MomentLayout::whole}}};

}  // namespace

MomentLayout moment_layout(std::string_view moment) {
  for (const auto& prefix : prefixes) {
    if (moment.starts_with(prefix.text)) return prefix.layout;
  }
  return MomentLayout::elements;
}

core::Range moment_range(MomentLayout layout, core::Range parameter) {
  if (layout != MomentLayout::blocks) return parameter;
  const auto begin = parameter.begin / moment_block;
  return {begin, begin + blocks_of(parameter.size())};
}

MomentPath split_moment_path(std::string_view path) {
  auto slash = path.rfind('/');
  for (const auto& prefix : prefixes) {
    const auto before = path.substr(0, slash + 1);
    if (before.ends_with(prefix.text) && before.size() > prefix.text.size() &&
        before[before.size() - prefix.text.size() - 1] == '/') {
      slash = before.size() - prefix.text.size() - 1;
      break;
    }
  }
  return {.parameter = std::string(path.substr(0, slash)), .moment = std::string(path.substr(slash + 1))};
}

}  // namespace hortator::step
