#include "core/environment/openmp.hpp"

#include "core/text/text.hpp"

namespace hortator::core {

std::optional<int> asked_threads(const Variables& variables) {
  const auto text = variables("OMP_NUM_THREADS");
  long long value = 0;
  if (!text || !text::parse_integer(text::split(*text, ',').front(), value)) return std::nullopt;
  constexpr long long max = 1 << 16;
  return value >= 1 && value <= max ? std::optional<int>(static_cast<int>(value)) : std::nullopt;
}

bool has_wait_policy(const Variables& variables) {
  return variables("OMP_WAIT_POLICY") || variables("GOMP_SPINCOUNT") || variables("KMP_BLOCKTIME");
}

}  // namespace hortator::core
