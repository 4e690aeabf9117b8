#include "formats/torch/pickle/input.hpp"

#include <bit>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "formats/torch/pickle/machine.hpp"

namespace hortator::formats::pickle {

void Input::fail(std::string_view why) const {
  throw PickleFault(hortator::text::concat(why, " (at byte ", at_, " of the pickle)"));
}

std::string_view Input::take(std::uint64_t count) {
  if (count > pickle_.size() - at_) fail("it ends too early");
  const auto taken = pickle_.substr(at_, count);
  at_ += count;
  return taken;
}

std::string Input::text(std::uint64_t bytes) {
  const auto taken = take(bytes);
  if (!core::is_utf8(taken)) fail("it holds a text that is not UTF-8");
  return std::string(taken);
}

std::string Input::line() {
  const auto end = pickle_.find('\n', at_);
  if (end == std::string_view::npos) fail("it ends within a name");
  auto taken = text(end - at_);
  ++at_;
  return taken;
}

double Input::real() { return std::bit_cast<double>(__builtin_bswap64(number<std::uint64_t>())); }

std::optional<std::int64_t> Input::long_number() {
  const auto digits = take(byte());
  if (digits.size() > sizeof(std::int64_t)) return {};
  std::uint64_t value = !digits.empty() && (digits.back() & 0x80) != 0 ? ~std::uint64_t{0} : 0;
  if (!digits.empty()) std::memcpy(&value, digits.data(), digits.size());
  return std::bit_cast<std::int64_t>(value);
}

}  // namespace hortator::formats::pickle
